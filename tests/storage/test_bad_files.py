"""What is no journal of ours is refused with a typed error, and nothing in it is changed."""

import contextlib
import gc
import random
import sqlite3

import pytest
import sqlalchemy as sa

from gnl_middleware import (
    Journal,
    JournalError,
    JournalUnavailableError,
    JournalVersionError,
    journaled,
    never,
)
from gnl_middleware.storage.link import RETRIES
from gnl_middleware.storage.schema import SCHEMA_VERSION
from tests.storage import rows

RUN = "order-7"


@pytest.fixture
def uses(journal):
    """The ways in which a program may meet a file first; each with a body that must not run."""
    ran = []
    charge = journaled(lambda: ran.append("charge"), replay=never, name="charge")

    def work():
        with journal.run(RUN):
            charge()

    yield [work, journal.runs, lambda: journal.steps(RUN)]
    assert ran == []


@pytest.mark.parametrize(
    "url",
    [
        "oracle://host/runs",
        "http://host/runs.db",
        "file://runs.db",
        "sqlite+aiosqlite:///runs.db",
    ],
)
def test_unknown_scheme_is_refused(url):
    """A URL that this version cannot open is refused when the journal is made, and the error names the scheme."""
    with pytest.raises(ValueError, match=rf"not {url.partition('://')[0].replace('+', '[+]')}://"):
        Journal(url)


@pytest.mark.parametrize("url", ["mysql://host/runs", "mysql+pymysql://host/runs", "mariadb://host/runs"])
def test_mysql_is_refused_by_name(url):
    """Whoever asks for MySQL or MariaDB is told that they are not supported, why, and what to take instead."""
    with pytest.raises(
        ValueError, match=r"MySQL and MariaDB are not supported: .* Use a path, or postgresql://"
    ):
        Journal(url)


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "sqlite:///:memory:", ":memory:", "runs\x00.db"]
)
def test_url_without_a_file_is_refused(url):
    """A journal must survive its process: what names no file is refused."""
    with pytest.raises(ValueError, match=r"names no file|two slashes too few"):
        Journal(url)


@pytest.mark.parametrize(
    "content",
    [
        b"not a database, but notes of somebody\n",
        random.Random(1).randbytes(20_000),
        b"SQLite format 3\x00" + b"x" * 5000,
    ],
    ids=["text", "random bytes", "header only"],
)
def test_file_of_another_kind_is_refused_and_kept(path, uses, content):
    """A file that is no database is refused by every use, by name, and not a byte of it is changed."""
    path.write_bytes(content)

    for use in uses:
        with pytest.raises(JournalError) as caught:
            use()
        assert str(path) in str(caught.value)

    assert path.read_bytes() == content


def test_database_of_another_program_is_refused_and_kept(path, uses):
    """The SQLite file of another program is refused: no tables of ours in it, its settings and rows as they were."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")
        connection.execute("INSERT INTO notes VALUES ('mine')")
        connection.commit()
    before = path.read_bytes()

    for use in uses:
        with pytest.raises(JournalUnavailableError) as caught:
            use()
        for part in (str(path), "no journal", "another path"):
            assert part in str(caught.value)

    assert path.read_bytes() == before
    assert [name for (name,) in rows.rows(path, "SELECT name FROM sqlite_master")] == ["notes"]


def test_damaged_version_is_refused_at_once(path, journal, uses):
    """A journal that calls itself older than its tables are is refused at once: a column's name is no lock to wait for."""
    with Journal(path) as whole:
        assert whole.runs() == []
    rows.change(path, "UPDATE gnl_schema SET version = 1")
    tries = []
    sa.event.listen(journal._database().engine, "begin", tries.append)

    for use in uses:
        tries.clear()
        with pytest.raises(JournalUnavailableError, match="tables of another shape"):
            use()
        assert 0 < len(tries) <= RETRIES


def test_tables_of_another_shape_are_refused(path, uses):
    """Tables that only have our names are an error that says so, not one of the query."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table in ("gnl_runs", "gnl_steps"):
            connection.execute(f"CREATE TABLE {table} (x)")
        connection.execute("CREATE TABLE gnl_schema (version INTEGER)")
        connection.execute("INSERT INTO gnl_schema VALUES (1)")
        connection.commit()

    for use in uses:
        with pytest.raises(JournalError) as caught:
            use()
        assert str(path) in str(caught.value)


def test_empty_file_becomes_a_journal(path, journal):
    """An empty file, as `mktemp` makes it, is a journal that nothing was written to yet."""
    path.touch()

    assert journal.runs() == []


@pytest.fixture
def written(path):
    """A journal in which a run has completed."""
    with Journal(path) as journal, journal.run(RUN):
        journaled(lambda: "charged", replay=never, name="charge")()
    del journal
    gc.collect()


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 99])
def test_newer_schema_is_refused(written, path, uses, version):
    """A journal of a newer version is refused by every use; the error names both versions and how to upgrade."""
    rows.change(path, "UPDATE gnl_schema SET version = ?", version)
    before = rows.rows(path, "SELECT * FROM gnl_steps")

    for use in uses:
        with pytest.raises(JournalVersionError) as caught:
            use()
        assert caught.value.found == version
        assert caught.value.supported == SCHEMA_VERSION
        assert caught.value.url == f"sqlite:///{path}"
        assert "pip install --upgrade gnl-middleware" in str(caught.value)

    assert rows.rows(path, "SELECT * FROM gnl_steps") == before


@pytest.mark.parametrize("version", [0, -1, "one", None])
def test_unknown_schema_is_refused(written, path, uses, version):
    """A schema version that no version of the library has ever written is refused, and not guessed at."""
    if version is None:
        rows.change(path, "DELETE FROM gnl_schema")
    else:
        rows.on_file(path, lambda c: c.execute("CREATE TABLE versions AS SELECT * FROM gnl_schema"))
        rows.on_file(path, lambda c: c.execute("DROP TABLE gnl_schema"))
        rows.on_file(path, lambda c: c.execute("ALTER TABLE versions RENAME TO gnl_schema"))
        rows.change(path, "UPDATE gnl_schema SET version = ?", version)

    for use in uses:
        with pytest.raises(JournalVersionError) as caught:
            use()
        assert str(path) in str(caught.value)
        assert "schema version" in str(caught.value)


@pytest.mark.parametrize("missing", ["gnl_runs", "gnl_attempts", "gnl_steps", "gnl_blobs"])
def test_missing_table_is_refused(written, path, uses, missing):
    """A journal that lacks one of its tables is an error that names the file; no empty table takes its place."""
    rows.on_file(path, lambda connection: connection.execute(f"DROP TABLE {missing}"))

    with pytest.raises(JournalError) as caught:
        uses[0]()

    assert str(path) in str(caught.value)
    tables = [name for (name,) in rows.rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert missing not in tables


def test_truncated_file_is_refused(written, path, uses):
    """A file that lost its end, as after a copy that broke off, is an error, and no body runs."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    for use in uses:
        with pytest.raises(JournalError):
            use()
