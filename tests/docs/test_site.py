"""The site is built without a complaint, and loads nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser

from tests.docs.conftest import DOCS, ROOT

LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
HARMLESS = ("canonical", "prev", "next")
PUBLIC = ("erase", "prune", "resolve", "never", "run_durable", "JournalToolNode", "DurableRunner", "perform")


class Loaded(HTMLParser):
    """What a page loads by itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if (name := LOADING.get(tag)) and given.get(name) and given.get("rel") not in HARMLESS:
            self.found.append(given[name])


def test_the_site_is_whole_and_needs_no_network(tmp_path):
    """The site builds without a complaint, has each document, loads nothing from elsewhere, and explains the public names."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert [page for page in pages if not (tmp_path / page).exists()] == []
    assert list(loaded_from_elsewhere(tmp_path)) == []
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f'.{name}"' not in reference] == []


def loaded_from_elsewhere(site):
    """What pages and styles ask other hosts for."""
    for path in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(path.read_text(encoding="utf-8"))
        yield from (place for place in loaded.found if re.match(r"(https?:)?//", place))
    for path in site.rglob("*.css"):
        yield from re.findall(r"url\(['\"]?(?:https?:)?//", path.read_text(encoding="utf-8"))
