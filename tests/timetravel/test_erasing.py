"""Payloads that runs share: whoever is erased, the others keep theirs, and nothing outlives the last one."""

import pytest

from gnl_middleware import Done, JournalCorruptError, keyed, never, safe
from gnl_middleware.storage import operations
from tests.timetravel.acting import World
from tests.timetravel.stored import payload_bytes, payloads_of

KEPT = ("look_up", "charge")


def program(journal, run_id):
    """Three steps with payloads of their own; gives what they gave."""
    world = World()
    with journal.run(run_id):
        given = [
            world.act(name, policy, name, value=f"{name} for {run_id}")
            for name, policy in (("look_up", safe), ("charge", never), ("mail", keyed))
        ]
    return given, world


def erase(journal, run_id):
    """Remove a run; gives how many payloads are gone for good."""
    (proof,) = journal.erase(run_id, rewrite=False, by="ada").runs
    return proof.payloads


def test_a_fork_survives_its_source(journal):
    """A fork is read back whole after its source's payloads were deleted; what only the source used is gone."""
    given, _ = program(journal, "order-7")
    journal.fork("order-7", "b", before="mail", effects=True)

    gone = erase(journal, "order-7")

    assert (gone, payloads_of(journal, "order-7")) == (2, 4)
    again, world = program(journal, "b")
    assert (again[:2], world.ran) == (given[:2], ["mail"])


def test_nothing_outlives_the_last_fork(journal):
    """What an erased run left for its forks goes with the last of them, a fork of a fork included."""
    program(journal, "order-7")
    journal.fork("order-7", "b", before="mail")
    journal.fork("b", "c", edits={"charge": Done("imagined")})
    for run_id, left in (("order-7", True), ("b", True), ("c", False)):
        erase(journal, run_id)

        assert (payload_bytes(journal) > 0) is left
        if run_id == "b":
            assert [step.value for step in journal.steps("c")] == ["look_up for order-7", "imagined"]


def test_erasing_a_fork_leaves_its_source(journal):
    """A fork that is erased takes what is its own, and nothing of a run that still uses it."""
    given, _ = program(journal, "order-7")
    size = payload_bytes(journal)
    journal.fork("order-7", "b", before="mail", edits={"charge": Done("imagined")}, effects=True)
    program(journal, "b")

    erase(journal, "b")

    assert payload_bytes(journal) == size
    assert program(journal, "order-7")[0] == given


def test_what_is_to_be_kept_is_kept(journal):
    """Payloads that the caller wants to keep, such as those of a once-per key's owner, are spared as well."""
    program(journal, "order-7")
    database = journal._database()
    kept = [step.value_hash for step in database.load("order-7", 0.0)]

    database.write(lambda connection: operations.delete_payloads(connection, "order-7", keep=kept))

    assert payloads_of(journal, "order-7") == len(kept)


def test_a_shared_payload_that_is_gone_is_noticed(journal):
    """Payloads deleted past that function leave a fork that says so, never one that invents a value."""
    program(journal, "order-7")
    journal.fork("order-7", "b")
    journal._database().write(lambda connection: connection.exec_driver_sql(_deletion(connection)) and None)

    with pytest.raises(JournalCorruptError, match="run 'b'"):
        journal.steps("b")


def _deletion(connection):
    schema = (connection.get_execution_options().get("schema_translate_map") or {}).get(None)
    return f"DELETE FROM {schema + '.' if schema else ''}gnl_blobs"
