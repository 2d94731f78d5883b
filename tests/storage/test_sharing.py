"""Journals of one file in one process share a writer; closing one leaves the others working."""

import gc
import threading

import pytest

from gnl_middleware import Journal, JournalUnavailableError, journaled, never


@pytest.fixture
def charge():
    """A side effect."""
    return journaled(lambda: "charged", replay=never, name="charge")


def writers_alive():
    """How many writer threads live in this process."""
    return sum(thread.name == "gnl-writer" for thread in threading.enumerate())


def test_two_journals_of_one_file_share_a_writer(path, charge):
    """Two Journal objects of one path have one writer thread, so that their writes share commits."""
    before = writers_alive()
    with Journal(path) as first, Journal(f"sqlite:///{path}") as second:  # noqa: SIM117 - journals outlive runs
        with first.run("order-7"), second.run("order-8"):
            charge()

            assert writers_alive() == before + 1
            assert first._database() is second._database()
    assert writers_alive() == before


def test_relative_and_absolute_path_are_one_journal(path, charge, monkeypatch):
    """The same file is the same journal, however its path is written, and stays it when the folder changes."""
    monkeypatch.chdir(path.parent)
    with Journal("runs.db") as relative, Journal(path) as absolute:
        monkeypatch.chdir("/")
        with relative.run("order-7"):
            charge()

        assert [record.run_id for record in absolute.runs()] == ["order-7"]


def test_closing_one_leaves_the_other_working(path, charge):
    """A journal that is closed takes nothing from another one of the same file, not even an open run."""
    first, second = Journal(path), Journal(path)
    with second.run("order-7"):
        first.runs()
        first.close()
        assert charge() == "charged"

    assert second.runs()[0].status == "completed"
    second.close()


def test_forgetting_one_leaves_the_other_working(path, charge):
    """The same where the first one is collected."""
    with Journal(path) as second, second.run("order-7"):
        Journal(path).runs()
        gc.collect()
        assert charge() == "charged"


def test_closing_twice_does_nothing(path):
    """Closing a closed journal does nothing, also not to another journal of the file."""
    with Journal(path) as other:
        other.runs()
        first = Journal(path)
        first.runs()
        first.close()
        first.close()

        assert other.runs() == []


def test_reopened_journal_finds_what_was_written(path, charge):
    """A file that was closed and opened again in one process holds what was acknowledged."""
    for attempt in (1, 2, 3):
        with Journal(path) as journal, journal.run("order-7") as run:
            assert (charge(), run.attempt) == ("charged", attempt)


def test_closed_journal_says_how_to_go_on(path):
    """Using a closed journal is an error that names it and says what to do."""
    journal = Journal(path)
    journal.close()

    for use in (journal.runs, lambda: journal.steps("order-7"), lambda: journal.run("order-7").__enter__()):
        with pytest.raises(JournalUnavailableError) as caught:
            use()

        assert caught.value.url == journal.url
        assert "closed" in str(caught.value)
        assert f"Journal({str(path)!r})" in str(caught.value)


def test_run_of_a_closed_journal_stops(path, charge):
    """A run whose journal was closed under it runs nothing more, and its error names the journal."""
    journal = Journal(path)
    with pytest.raises(JournalUnavailableError) as caught, journal.run("order-7"):
        journal.close()
        charge()

    assert caught.value.url == journal.url
    assert "closed" in str(caught.value)
    with Journal(path) as again:
        assert again.steps("order-7") == []


def test_many_threads_open_one_file_at_once(path, charge):
    """Journals of one file that are made, used and closed by many threads at once do not get in each other's way."""
    start = threading.Barrier(8)
    failures = []

    def work(number):
        try:
            start.wait()
            for turn in range(5):
                with Journal(path) as journal, journal.run(f"order-{number}-{turn}"):
                    charge()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    with Journal(path) as journal:
        assert len(journal.runs(status="completed")) == 40
