"""Every block of code in the documents is run: programs as they stand, commands by the command line's own reading of them."""

import itertools
import re
import shlex
import tomllib

import click
import pytest

from gnl_middleware.cli.app import _demo_command, app
from tests.docs.conftest import ROOT, all_blocks, run_program

BLOCKS = all_blocks()
LANGUAGES = {"python", "console", "text"}
RUN_ELSEWHERE = {
    # Each page of an error has a test of its own; testing.md is a test file, which tests/toolkit runs.
    *(block.page for block in BLOCKS if block.page.startswith("errors/")),
    "testing.md",
}
PAGES = sorted(
    {
        block.page
        for block in BLOCKS
        if block.language == "python" and not block.included and block.page not in RUN_ELSEWHERE
    }
)
EXAMPLES_RUN_BY_TESTS = {
    "langchain_support_agent": "tests/demo/test_example.py",
    "langgraph_graph": "tests/langgraph/test_examples.py",
    "langgraph_refund_approval": "tests/langgraph/test_examples.py",
    "langgraph_streaming_chat": "tests/langgraph/test_examples.py",
    "openai_agents_support_agent": "tests/openai_agents/test_examples.py",
    "openai_agents_handoffs": "tests/openai_agents/test_examples.py",
    "openai_agents_streaming": "tests/openai_agents/test_examples.py",
    "openai_agents_approval": "tests/openai_agents/test_examples.py",
}


def test_blocks_are_of_known_languages():
    """No block says nothing of what it is, which would keep it from being run."""
    assert [block for block in BLOCKS if block.language not in LANGUAGES] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_s_programs_run(page, tmp_path, monkeypatch):
    """The programs of a page run one after the other, as a reader would paste them, and what they assert holds."""
    programs = [
        block for block in BLOCKS if block.page == page and block.language == "python" and not block.included
    ]
    # Line numbers as in the page, so that a failure points there.
    lines: list[str] = []
    for block in programs:
        lines += [""] * (block.line - len(lines)) + block.code.splitlines()

    monkeypatch.chdir(tmp_path)

    run_program("\n".join(lines))


def test_included_programs_are_run_by_tests():
    """A program that a page shows from a file of the repository is one that a test runs."""
    included = {block.included for block in BLOCKS if block.included}

    assert included == {f"examples/{name}.py" for name in EXAMPLES_RUN_BY_TESTS}
    for name, test in EXAMPLES_RUN_BY_TESTS.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert name in text or name.removeprefix("openai_agents_").removeprefix("langgraph_") in text


def commands():
    """The lines of all console blocks, with where they stand."""
    for block in BLOCKS:
        if block.language == "console":
            for number, line in enumerate(block.code.splitlines(), block.line + 1):
                yield pytest.param(line, id=f"{block.page}:{number}")


@pytest.mark.parametrize("line", list(commands()))
def test_commands_can_be_given(line, monkeypatch):
    """A command in the documents is one that the command line understands, option by option; an extra is one that there is."""
    monkeypatch.setattr(click.Path, "convert", lambda _self, value, *_: value)  # the files are the reader's
    asked = re.findall(r"\$\((gnl [^)]*)\)", line) or [part.strip() for part in line.split("|")]
    for command in asked:
        words = shlex.split(command, comments=True)
        words = list(itertools.dropwhile(lambda word: re.match(r"[A-Z_]+=", word), words))
        if words[:1] == ["gnl"]:
            understood(words[1:])
        elif words[:2] == ["pip", "install"]:
            assert extras_of(words[-1]) <= known_extras()
        else:
            assert words[0] in {
                "eval",
                "source",
                "python3",
                "bash",
                ".venv/bin/pytest",
                ".venv/bin/python",
            }, line


def understood(words):
    """Let click read a command; nothing is carried out."""
    command, context = app, click.Context(app, info_name="gnl")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(context, words[0])
        assert command is not None, words
        context, words = click.Context(command, info_name=words[0], parent=context), words[1:]
    if command.name == "demo":  # its options are those of the demo that is installed
        command = _demo_command()
    if words != ["--help"]:
        command.parse_args(context, words)


def extras_of(requirement):
    """The extras that a requirement asks for."""
    return set(re.search(r"\[(.*)\]", requirement)[1].split(","))


def known_extras():
    """The extras of the distribution."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return set(project["optional-dependencies"])
