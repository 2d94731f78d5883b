"""Erasing removes all that a run recorded, proves it, and lets nothing be repeated."""

import hashlib
import time

import pytest

from gnl_middleware import LeaseLostError, RunBusyError, RunErasedError, journaled, never
from gnl_middleware.lease import Holder
from gnl_middleware.testing import observe_points
from tests.retention.jobs import job, rows, statuses


def test_only_tombstone_and_proof_stay(journal):
    """No table holds anything of an erased run but its name and the proof; other runs keep all of theirs."""
    job(journal, "a", metadata={"customer": "ann"}, tags=["vip"])
    job(journal, "b")
    before = rows(journal, "b")

    proof = journal.erase("a", by="privacy desk", note="ticket 9")

    assert rows(journal, "a") == {"gnl_runs": 1, "gnl_removals": 1}
    assert rows(journal, "b") == before
    assert statuses(journal) == {"b": "completed"}
    assert statuses(journal, status="erased") == {"a": "erased"}
    assert (journal.find("a").metadata, journal.find("a").tags, journal.steps("a")) == ({}, (), [])
    assert journal.removals("a") == list(proof.runs)


def test_the_proof_names_exactly_what_is_gone(journal):
    """The proof counts steps and payloads, and its digest can be made again from a backup."""
    job(journal, "a")
    keys = [step.key for step in journal.steps("a")]
    hashes = {
        digest
        for row in journal._database().load("a", time.time())
        for digest in (row.arguments_hash, row.value_hash)
    }
    lines = [*sorted(keys), *sorted(hashes)]

    (proof,) = journal.erase("a", by="ann").runs

    assert (proof.kind, proof.by, proof.steps, proof.payloads) == ("erased", "ann", 2, len(hashes))
    assert proof.bytes > 0
    assert proof.digest == hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def test_nothing_stays_in_the_file(tmp_path):
    """No byte of what an erased run said is left in the file, its log or unused places."""
    from gnl_middleware import Journal

    path, text = tmp_path / "runs.db", "geheim-4711"
    with Journal(path) as journal:
        for number in range(40):
            job(journal, f"{number}", f"{text}-{number}" * 20, metadata={"customer": "ann"})
        job(journal, "other", "harmless")
        assert any(text.encode() in file.read_bytes() for file in tmp_path.iterdir())

        proof = journal.erase(metadata={"customer": "ann"})

        assert len(proof.runs) == 40
        assert proof.rewritten
        assert not any(text.encode() in file.read_bytes() for file in tmp_path.iterdir())
        assert len(journal.steps("other")) == 2


def test_by_metadata(journal):
    """All runs of one customer go, whatever their status, and nobody else's."""
    job(journal, "a", metadata={"customer": "ann"})
    job(journal, "b", metadata={"customer": "ann"}, ends="interrupted")
    job(journal, "c", metadata={"customer": "bob"})

    assert {run.run_id for run in journal.erase(metadata={"customer": "ann"}, dry_run=True).runs} == {
        "a",
        "b",
    }
    assert statuses(journal) == {"a": "completed", "b": "interrupted", "c": "completed"}
    assert {run.run_id for run in journal.erase(metadata={"customer": "ann"}).runs} == {"a", "b"}
    assert statuses(journal) == {"c": "completed"}
    assert journal.erase(metadata={"customer": "ann"}).runs == ()


def test_a_late_redelivery_repeats_nothing(journal):
    """Opening an erased run raises; with restart=True it begins anew, as a new run with marks of its own."""
    job(journal, "a", metadata={"customer": "ann"})
    journal.erase("a")

    with pytest.raises(RunErasedError, match="restart=True"):
        job(journal, "a")
    job(journal, "a", metadata={"customer": "bob"}, restart=True)

    assert journal.find("a").attempts == 1
    assert [record.run_id for record in journal.runs(metadata={"customer": "bob"})] == ["a"]
    assert [step.status for step in journal.steps("a")] == ["done", "done"]
    assert len(journal.removals("a")) == 1


def test_restart_changes_no_other_run(journal):
    """restart=True begins only an erased run anew; any other goes on from its record."""
    job(journal, "a")
    job(journal, "a", restart=True)

    assert journal.attempts("a")[1].steps_read_back == 2


def test_a_run_that_is_held_stays(journal):
    """What a worker holds is not removed under its hands: alone it is an error, among others it is listed."""
    with journal.run("a", metadata={"customer": "ann"}) as run:
        run.uuid4()
        with pytest.raises(RunBusyError):
            journal.erase("a")
        job(journal, "b", metadata={"customer": "ann"})

        proof = journal.erase(metadata={"customer": "ann"})

        assert ([run.run_id for run in proof.runs], proof.busy) == (["b"], ("a",))
    assert len(journal.steps("a")) == 1


def test_what_to_erase_must_be_said(journal):
    """Without a run and without a condition nothing is erased, least of all everything."""
    job(journal, "a")

    for arguments in ({}, {"metadata": {}}, {"run_id": "a", "tags": ["vip"]}):
        with pytest.raises(ValueError, match="say what to erase"):
            journal.erase(**arguments)
    assert statuses(journal) == {"a": "completed"}


def test_an_unknown_run_leaves_no_tombstone(journal):
    """Erasing what is not there removes nothing and reserves no name."""
    assert journal.erase("nobody").runs == ()
    assert rows(journal, "nobody") == {}


def test_a_worker_that_fell_silent_brings_nothing_back(journal, monkeypatch):
    """A worker whose lease ran out finishes its call after the run was erased: no payload of it is stored again."""

    def erase_now(point, number, _name):
        if (point, number) == ("before_outcome", 2):
            monkeypatch.setattr(Holder, "is_dead", lambda _self: True)
            journal.erase("a", rewrite=False)

    observe_points(erase_now)
    try:
        with pytest.raises(LeaseLostError):
            job(journal, "a")
    finally:
        observe_points(None)

    assert rows(journal, "a") == {"gnl_runs": 1, "gnl_removals": 1}


def test_journal_window_keys_outlive_an_erasure(journal):
    """The key of a once-per call stays without its outcome: a later call with it stops and asks."""
    from gnl_middleware import SideEffectRetryBlockedError

    ran = []

    @journaled(replay=never(once_per="args", window="journal"))
    def refund(order):
        ran.append(order)
        return f"refunded {order}"

    with journal.run("a"):
        refund("7")
    journal.erase("a")

    with pytest.raises(SideEffectRetryBlockedError, match="erased"), journal.run("b"):
        refund("7")
    assert ran == ["7"]


def test_keys_within_the_run_go_with_it(journal):
    """A key whose window is the run goes with the run: begun anew, it may happen again."""
    ran = []

    @journaled(replay=never(once_per="args"))
    def refund(order):
        ran.append(order)

    for restart in (False, True):
        with journal.run("a", restart=restart):
            refund("7")
        journal.erase("a")

    assert ran == ["7", "7"]


def test_a_person_s_note_goes_too(journal):
    """What a person wrote about a call is part of the record, and goes with it."""
    from gnl_middleware import Done, SideEffectRetryBlockedError

    job(journal, "a", ends="interrupted")
    with pytest.raises(SideEffectRetryBlockedError):
        job(journal, "a")
    journal.resolve("a", "send", Done("sent"), by="ops", note="ann said so")
    assert [(found.by, found.note) for found in journal.resolutions("a")] == [("ops", "ann said so")]

    journal.erase("a")

    assert journal.resolutions("a") == []
