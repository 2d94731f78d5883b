"""Which journal a command opens, and that looking never makes or changes one."""

import sqlite3
from pathlib import Path

import pytest

from gnl_middleware import Journal

LOOKING = {
    "runs": ["runs"],
    "show": ["show", "order-1"],
    "resolve": ["resolve", "order-1", "1", "--happened", "--by", "ops"],
}


def database_of_somebody_else(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("arguments", LOOKING.values(), ids=LOOKING)
def test_looking_creates_no_journal(gnl, journal_path, arguments):
    """Where there is no journal, exit code 1 names the path and the way to another; no file is created."""
    result = gnl(*arguments, exit_code=1)

    assert f"{journal_path} does not exist" in result.stderr
    assert "--journal" in result.stderr
    assert list(journal_path.parent.iterdir()) == []


@pytest.mark.parametrize("arguments", LOOKING.values(), ids=LOOKING)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (database_of_somebody_else, "is a database, but no journal"),
        (Path.touch, "is a database, but no journal"),
        (lambda path: path.write_text("Dear reader, this is no database.\n" * 100), "is no journal"),
    ],
    ids=["database", "empty", "text"],
)
def test_what_is_no_journal_is_left_as_it_is(gnl, journal_path, arguments, make, said):
    """A file of somebody else's is refused with exit code 1, and not a byte of it changes."""
    make(journal_path)
    before = journal_path.read_bytes()

    result = gnl(*arguments, exit_code=1)

    assert said in result.stderr
    assert journal_path.read_bytes() == before


def test_a_folder_is_no_journal(gnl, tmp_path):
    """A path to a folder is refused with exit code 1."""
    result = gnl("runs", journal=tmp_path, exit_code=1)

    assert "is no file" in result.stderr


def test_a_journal_of_a_newer_version_is_refused(gnl, one_run, journal_path):
    """A journal that a newer version wrote is refused with the command that upgrades."""
    one_run()
    with sqlite3.connect(journal_path) as connection:
        connection.execute("UPDATE gnl_schema SET version = 99")
    connection.close()

    result = gnl("runs", exit_code=1)

    assert "99" in result.stderr
    assert "pip install --upgrade gnl-middleware" in result.stderr


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://relative.db", ""])
def test_a_url_that_names_no_journal_is_a_usage_error(gnl, url):
    """A URL of another kind is refused with exit code 2 and what is wrong with it."""
    result = gnl("runs", "--journal", url, exit_code=2)

    assert "--journal" in result.stderr


def test_option_beats_environment_beats_default(gnl_process, tmp_path):
    """`--journal` wins over GNL_JOURNAL, which wins over ./gnl.db."""
    for name in ("gnl.db", "environment.db", "option.db"):
        with Journal(tmp_path / name) as journal, journal.run(name):
            pass

    default = gnl_process("runs", environment={"GNL_JOURNAL": ""})
    environment = gnl_process("runs", environment={"GNL_JOURNAL": "environment.db"})
    option = gnl_process(
        "runs", "--journal", "sqlite:///option.db", environment={"GNL_JOURNAL": "environment.db"}
    )

    assert " gnl.db " in default.stdout
    assert " environment.db " in environment.stdout
    assert " option.db " in option.stdout


def test_a_journal_can_be_read_while_it_is_written(gnl_process, journal_path):
    """Another process may look while a worker is in the middle of a run."""
    with Journal(journal_path) as journal, journal.run("order-1") as run:
        run.uuid4()

        shown = gnl_process("show", "order-1")

    assert shown.returncode == 0, shown.stderr
    assert "value uuid4" in shown.stdout
    assert "held by pid" in shown.stdout
