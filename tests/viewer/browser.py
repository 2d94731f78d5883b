"""The Chromium of this machine: needs one, in CI; is skipped elsewhere, where there is none."""

import os
import shutil

from playwright.sync_api import Error, sync_playwright

from tests.lacking import lack

VARIABLE = "GNL_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def found_chromium():
    """The path of a Chromium; where there is none, the test fails in CI and is skipped elsewhere."""
    named = os.environ.get(VARIABLE)
    path = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        problem = f"no Chromium to test pages in: install it (apt-get install chromium), or set {VARIABLE} to its path"
        lack(problem)
    return path


def launched():
    """A browser, and what stops it."""
    path = found_chromium()
    driver = sync_playwright().start()
    try:
        browser = driver.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
    except Error:
        driver.stop()
        raise
    return driver, browser
