"""Each error has a page, which its message names and whose program raises it."""

import re

import pytest

from gnl_middleware import errors
from tests.docs.conftest import DOCS, blocks_of, run_program
from tests.errors.samples import BASES, RECORDED, SAMPLES

PAGES = DOCS / "errors"
NAMES = sorted({sample.kind.__name__ for sample in SAMPLES} | {RECORDED.kind.__name__})


def test_each_error_has_one_page():
    """No error is without its page, and no page without its error; the list of all names each."""
    pages = {path.stem for path in PAGES.glob("*Error.md")}
    listed = set(re.findall(r"\]\((\w+)\.md\)", (PAGES / "index.md").read_text(encoding="utf-8")))

    assert pages == listed == set(NAMES)
    assert {kind.__name__ for kind in BASES}.isdisjoint(pages)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.kind.__name__)
def test_the_message_leads_to_the_page(sample):
    """A message ends in the command that shows its page; what an adapter makes of an error leads to the same page."""

    class OfAFramework(sample.kind):
        """As adapters make them."""

    error = sample.make()

    assert str(error).endswith(f"\nMore: gnl explain {sample.kind.__name__}")
    assert str(OfAFramework.from_error(error)) == str(error)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_s_program_raises_it(name, tmp_path, monkeypatch):
    """What a page says brings its error about: its program, run as it stands, ends in exactly that."""
    page = PAGES / f"{name}.md"
    (program,) = (block for block in blocks_of(page) if block.language == "python")
    headings = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    monkeypatch.chdir(tmp_path)

    with pytest.raises(getattr(errors, name)) as raised:
        run_program(program.code)

    assert raised.value.page == name
    assert headings == [f"# {name}", "## Why it matters", "## What to do", "## How it comes about"]
