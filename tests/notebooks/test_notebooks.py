"""The notebooks run from top to bottom, with no network and no key, and show what they show in the repository."""

import nbformat
import pytest

from tests.run_notebooks import FOLDER, executed, texts

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 100_000  # bytes: a notebook with its pictures opens at once


@pytest.fixture(scope="module", autouse=True)
def sealed():
    """Kernels inherit an environment without keys, so that nothing can depend on one."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LANGSMITH_API_KEY", "GNL_RECORD"):
            patch.delenv(name, raising=False)
        patch.setenv("LANGSMITH_TRACING", "false")
        yield


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the sockets to the kernel are the runner's
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_shows_what_it_showed(path):
    """Run anew, every cell works and shows the committed text, and a picture where there was one."""
    committed = nbformat.read(str(path), as_version=4)

    assert texts(executed(path)) == texts(committed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_small_and_tells_nothing_of_a_machine(path):
    """A notebook is committed with its outputs and one picture at least, stays small, and holds no path of a machine."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)

    assert "a picture" in [shown for cell in texts(notebook) for shown in cell]
    assert len(text) < LARGEST
    assert [word for word in ("/tmp", "/home", "/root", "Traceback") if word in text] == []  # noqa: S108


def test_the_five_stories_are_there():
    """There are five notebooks, numbered in the order in which they are read."""
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3", "4", "5"]
