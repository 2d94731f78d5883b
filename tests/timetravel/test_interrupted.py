"""Calls that were interrupted, and failures, in a fork: settled as they would have been in their run."""

import subprocess
import sys

import pytest

from gnl_middleware import (
    Done,
    Failed,
    ForkedEffectError,
    NotDone,
    RecordedError,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)
from tests.timetravel.acting import Killed, World
from tests.timetravel.stored import payloads_of


def interrupted(journal, policy=never):
    """A run that was killed inside of its charge; gives the key that the charge was given."""
    world = World(raises={"charge": Killed()})
    with pytest.raises(Killed):
        program(journal, world, "order-7", policy)
    return world.keys["charge"]


def program(journal, world, run_id, policy=never):
    with journal.run(run_id):
        world.act("look_up", safe)
        return world.act("charge", policy, 7)


def test_recover_is_asked_in_the_fork(journal):
    """An interrupted call is carried along: recover gets the key that the call was given, and its answer counts."""
    key, asked = interrupted(journal), []

    def recover(call):
        asked.append((call.run_id, call.idempotency_key, call.arguments))
        return Done("charged before")

    journal.fork("order-7", "b")

    for _ in range(2):
        assert program(journal, World(), "b", never(recover=recover)) == "charged before"
    assert [(run_id, found) for run_id, found, _ in asked] == [("b", key)]
    # What may still change is the fork's own; what cannot is shared.
    assert payloads_of(journal, "b") == 2


def test_a_worker_that_really_died(journal, url):
    """A process that died inside of a call leaves it to the fork as well: it is asked about under its key, and runs nowhere."""
    source = """if True:
        import os, sys
        from gnl_middleware import Journal, current_step, journaled, never

        def body():
            print(current_step().idempotency_key, flush=True)
            os._exit(9)

        with Journal(sys.argv[1]).run("order-7"):
            journaled(body, replay=never, name="charge")()
    """
    died = subprocess.run([sys.executable, "-c", source, url], capture_output=True, text=True, check=False)
    assert died.returncode == 9, died.stderr
    asked = []
    journal.fork("order-7", "b")

    def recover(call):
        asked.append(call.idempotency_key)
        return Done("charged")

    with journal.run("b"):
        assert journaled(lambda: "again", replay=never(recover=recover), name="charge")() == "charged"

    assert asked == [died.stdout.strip()]


def test_without_recover_the_fork_is_blocked_too(journal):
    """Where nobody can tell, the fork stops as its run does, and a person decides each for itself."""
    key = interrupted(journal)
    journal.fork("order-7", "b")

    with pytest.raises(SideEffectRetryBlockedError) as caught:
        program(journal, World(), "b")

    assert (caught.value.run_id, caught.value.idempotency_key) == ("b", key)
    journal.resolve("b", "charge", Done("it was charged"), by="ada")
    assert program(journal, World(), "b") == "it was charged"
    with pytest.raises(SideEffectRetryBlockedError):
        program(journal, World(), "order-7")


@pytest.mark.parametrize("policy", [never(recover=lambda call: NotDone()), keyed])
def test_it_runs_again_only_with_effects(journal, policy):
    """A call that may run again runs in a fork with effects, with the key that it was given first; else it is withheld."""
    key = interrupted(journal, policy)
    journal.fork("order-7", "mind")
    journal.fork("order-7", "live", effects=True)
    world = World()

    with pytest.raises(ForkedEffectError):
        program(journal, world, "mind", policy)
    assert world.ran == []
    assert program(journal, world, "live", policy) == "charge done"

    assert world.keys == {"charge": key}
    journal.fork("live", "later")
    assert program(journal, World(), "later", policy) == "charge done"


def test_an_interrupted_call_can_be_edited(journal):
    """An outcome that nobody knows can be imagined: the fork goes on from it."""
    interrupted(journal)
    journal.fork("order-7", "b", edits={"charge": Done("imagined")})
    journal.fork("order-7", "c", edits={"charge": Failed("declined")})

    assert program(journal, World(), "b") == "imagined"
    for _ in range(2):
        with pytest.raises(RecordedError, match="declined"):
            program(journal, World(), "c")


def test_a_handled_failure_stays_one(journal):
    """A failure from which the run went on is read back as that error, though what went on from it is behind the cut."""
    world = World(raises={"charge": ConnectionError("down")})

    def handling(run_id):
        with journal.run(run_id):
            try:
                world.act("charge", never)
            except ConnectionError as error:
                told = str(error)
            return world.act("note", safe, told), world.act("mail", never)

    given = handling("order-7")
    journal.fork("order-7", "b", before="note")
    world.ran.clear()

    with pytest.raises(ForkedEffectError, match="mail"):
        handling("b")

    assert world.ran == ["note"]
    assert journal.steps("b")[0].error == journal.steps("order-7")[0].error
    journal.resolve("b", "mail", Done(given[1]), by="ada")
    assert handling("b") == given


def test_a_failure_that_ended_the_run_is_open_in_the_fork(journal):
    """A failure that nobody went on from is settled in the fork, as it would be in the run."""
    world = World(raises={"charge": ConnectionError("down")})
    with pytest.raises(ConnectionError):
        program(journal, world, "order-7")
    journal.fork("order-7", "b", effects=True)

    with pytest.raises(SideEffectRetryBlockedError):
        program(journal, World(), "b")

    again = World()
    assert program(journal, again, "b", never(recover=lambda call: NotDone())) == "charge done"
    assert again.keys["charge"] == world.keys["charge"]
