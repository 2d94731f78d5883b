"""Moments at which two workers could do one thing twice: a lease that nobody renews, clocks that differ, a fork."""

from dataclasses import replace

import pytest

from gnl_middleware import Journal, SideEffectRetryBlockedError, journaled, never
from gnl_middleware.storage.protocol import Intent, Verdict
from tests.workers import programs
from tests.workers.programs import RUN


def check_unrenewed(crowd, place, effects, locked, lease):
    """A body outlasts its lease, which is not renewed: the second worker may take the run, and never the step."""
    (first,) = crowd(programs.sleep_without_renewal, (place, effects, locked, lease))
    assert first.hear() == "charging"
    with Journal(place) as journal:
        with pytest.raises(SideEffectRetryBlockedError), journal.run(RUN, lock=locked, on_busy="wait") as run:
            (step,) = run.session.record.steps.values()
            again = replace(step, token="another", fence=run.session.lease.fence)
            claim = run.session.database.submit(Intent(again, expected="", claim=None if locked else lease))
            assert claim.ended.result() is Verdict.TAKEN
            journaled(lambda: programs.note(effects, "charge"), replay=never, name="charge")()
        first.tell("charged")
        assert first.hear() == "left"

        assert programs.happened(effects) == {"charge": 1}
        assert [(step.status, step.value) for step in journal.steps(RUN)] == [("done", "charged")]


@pytest.mark.parametrize("locked", [True, False], ids=["lock", "no lock"])
def test_claim_of_a_step_is_refused_by_its_key(crowd, place, effects, locked):
    """Without renewal a second worker gets the run while the body still sleeps; its claim of the step is refused."""
    check_unrenewed(crowd, place, effects, locked, 2.0)


@pytest.mark.long
@pytest.mark.parametrize("locked", [True, False], ids=["lock", "no lock"])
def test_claim_of_a_step_is_refused_by_its_key_after_five_seconds(crowd, place, effects, locked):
    """The same with a lease of five seconds."""
    check_unrenewed(crowd, place, effects, locked, 5.0)


@pytest.mark.parametrize("hours", [1, -1])
def test_clock_skew_takes_nothing_over(crowd, server_url, effects, hours):
    """On PostgreSQL a worker whose clock is an hour ahead, or behind, neither takes a held run nor loses its own."""
    url = _database(server_url)
    (first,) = crowd(programs.open_and_charge, (url, effects, -3600.0 * hours, {}))
    assert first.hear() == "open"
    (second,) = crowd(programs.open_and_charge, (url, effects, 3600.0 * hours, {}))
    assert second.hear() == "RunBusyError"
    first.tell()

    assert (first.hear()[:7], first.hear()) == ("charged", "left")
    with Journal(url) as journal:
        (record,) = journal.runs()
        assert (record.status, record.attempts) == ("completed", 1)


def test_clock_skew_makes_no_claim_stale(crowd, server_url, effects):
    """The same without a lock: workers two hours apart wait for each other's claims, and charge once."""
    url = _database(server_url)
    options = {"lock": False}
    workers = [
        *crowd(programs.open_and_charge, (url, effects, -3600.0, options)),
        *crowd(programs.open_and_charge, (url, effects, 3600.0, options)),
    ]
    assert [worker.hear() for worker in workers] == ["open", "open"]
    for worker in workers:
        worker.tell()

    said = {worker.hear() for worker in workers}
    assert len(said) == 1
    assert programs.happened(effects) == {"charge": 1}


def _database(server_url):
    from tests.postgres.server import create_database

    return create_database(server_url)


def test_process_that_forks(crowd, place, effects):
    """A process that forks after it opened a journal works on in parent and child, also at one run at once."""
    (child,) = crowd(programs.fork_and_go_on, (place, effects))
    assert child.hear() == 0

    assert programs.happened(effects) == {"before": 1, "child": 1, "parent": 1, "both": 1}
    with Journal(place) as journal:
        assert {record.status for record in journal.runs()} == {"completed"}
