"""What the lease tests share: a journal's file, and the file in which effects happen."""

import pytest

from gnl_middleware import Journal
from tests.leases.clocks import SharedClock, TurnedClock
from tests.storage import writers


@pytest.fixture
def path(tmp_path):
    """Where the journal of a test is, or will be."""
    return tmp_path / "runs.db"


@pytest.fixture
def effects(tmp_path):
    """The file in which effects happen."""
    return tmp_path / "effects"


@pytest.fixture
def open_journal(path):
    """Open a journal of the test's file, closed after the test."""
    opened = []

    def open_one(**options):
        opened.append(Journal(path, **options))
        return opened[-1]

    yield open_one
    for journal in opened:
        journal.close()


@pytest.fixture
def shared_clock(tmp_path):
    """A clock of the test and of all its processes, which the test turns."""
    return SharedClock(tmp_path / "clock")


@pytest.fixture
def held_writer():
    """Keep a journal's writer busy for as long as a block lasts, without any lock on the file."""
    return writers.held


@pytest.fixture
def frozen(open_journal):
    """The journal of a worker whose clock stands still: no deadline of its ever passes."""
    return open_journal(clock=TurnedClock(frozen=True))


@pytest.fixture
def ahead(path):
    """The journal of a worker that lives long after every lease, and shares nothing with the others but the file."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    with Journal(link, clock=TurnedClock(ahead=10_000)) as journal:
        yield journal
