"""The documents, and the blocks of code in them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_INCLUDED = re.compile(r'^--8<-- "(.+)"$')


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        page: The page, under ``docs``.
        line: Where it begins.
        language: What it says that it is.
        code: What stands in it.
    """

    page: str
    line: int
    language: str
    code: str

    @property
    def included(self):
        """The file of the repository that stands in its place, or None."""
        found = _INCLUDED.fullmatch(self.code.strip())
        return found[1] if found else None


def blocks_of(path):
    """The blocks of a page, in order."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(
            page=path.relative_to(DOCS).as_posix(),
            line=text.count("\n", 0, found.start()) + 1,
            language=found[2],
            code=textwrap.dedent(found[3]),
        )
        for found in _BLOCK.finditer(text)
    ]


def all_blocks():
    """The blocks of all pages."""
    return [block for path in sorted(DOCS.rglob("*.md")) for block in blocks_of(path)]


def run_program(code):
    """Run a program as it stands, as the main module of a process would be."""
    exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102 - the documents are ours, and are to be run
