"""What a fork keeps, and what it refuses."""

import contextlib

import pytest

from gnl_middleware import (
    Done,
    ForkedEffectError,
    ForkRefusedError,
    RunBusyError,
    RunErasedError,
    RunInputMismatchError,
    RunNotFoundError,
    keyed,
    never,
    safe,
)
from gnl_middleware.storage.schema import runs
from tests.timetravel.acting import World
from tests.timetravel.stored import decisions, payload_bytes, write


def order(journal, world, run_id="order-7", **options):
    """Look up, charge, mail; gives what each gave, and the time that was read."""
    with journal.run(run_id, **options) as run:
        looked = world.act("look_up", safe)
        time = run.now()
        return [looked, time, world.act("charge", never), world.act("mail", keyed)]


def test_what_is_before_the_cut_is_read_back(journal):
    """Values and effects of before the cut are the source's; what comes after it runs, with keys of the fork's own."""
    source, forked = World(), World()
    given = order(journal, source)

    journal.fork("order-7", "b", before="mail", effects=True)

    assert order(journal, forked, "b") == given
    assert (source.ran, forked.ran) == (["look_up", "charge", "mail"], ["mail"])
    assert forked.keys["mail"] != source.keys["mail"]


@pytest.mark.parametrize(
    "named",
    [lambda step: step.key, lambda step: step.number, lambda step: str(step.number), lambda step: step.name],
    ids=["key", "number", "digits", "name"],
)
def test_a_step_is_named_by_key_number_or_name(journal, named):
    """The cut is where its step is, however it is named."""
    order(journal, World())
    charge = journal.steps("order-7")[2]

    journal.fork("order-7", "b", before=named(charge))

    assert [step.name for step in journal.steps("b")] == ["look_up", "now"]


def test_no_effect_happens_behind_the_cut(journal):
    """Without effects=True a never or keyed call is withheld and listed, and the next attempt stops at it again."""
    order(journal, World())
    journal.fork("order-7", "b", before=1)
    world = World()

    for _ in range(2):
        with pytest.raises(ForkedEffectError) as caught:
            order(journal, world, "b")

    assert world.ran == ["look_up"]
    assert (caught.value.run_id, caught.value.forked_from, caught.value.tool) == ("b", "order-7", "charge")
    assert [run.status for run in journal.runs() if run.run_id == "b"] == ["blocked"]
    (withheld,) = [step for step in journal.steps("b") if step.blocked]
    assert (withheld.key, withheld.status, withheld.attempts) == (caught.value.step_key, "started", 0)


def test_a_swallowed_stop_stops_all_the_same(journal):
    """Code that swallows the error cannot go on to the next effect, nor end the run as if all were well."""
    journal.fork(*_forked(journal), before=1)
    world = World()

    with pytest.raises(ForkedEffectError), journal.run("b"):
        for name in ("charge", "mail"):
            with contextlib.suppress(ForkedEffectError):
                world.act(name, never)

    assert world.ran == []
    assert [step.name for step in journal.steps("b")] == ["charge"]


def _forked(journal):
    order(journal, World())
    return "order-7", "b"


def test_an_edit_is_kept_for_audit(journal):
    """An edited outcome is marked, and who edited it and why is kept, in the fork only."""
    order(journal, World())

    journal.fork("order-7", "b", before="mail", edits={"charge": Done({"paid": 7})}, by="ada", note="trial")

    (charge,) = [step for step in journal.steps("b") if step.name == "charge"]
    assert (charge.value, charge.resolution, charge.status) == ({"paid": 7}, "edited", "done")
    assert decisions(journal, "b") == [("edited", "ada", "trial")]
    assert decisions(journal, "order-7") == []


def test_a_whole_run_is_copied(journal):
    """Without a step the fork keeps all, and its code reads everything back; the journal's payloads do not grow."""
    given, size = order(journal, World(), input="seven", metadata={"customer": 7}), payload_bytes(journal)

    record = journal.fork("order-7", "b")

    assert (record.status, record.attempts, record.metadata) == ("interrupted", 0, {"customer": 7})
    assert payload_bytes(journal) == size
    world = World()
    assert order(journal, world, "b", input="seven") == given
    assert world.ran == []
    with pytest.raises(RunInputMismatchError):
        order(journal, World(), "b", input="eight")


def test_a_fork_of_a_fork(journal):
    """A fork can be forked: it keeps what its source kept and did, and shares with the run that first gave it."""
    given, size = order(journal, World()), payload_bytes(journal)
    journal.fork("order-7", "b", before="charge", effects=True)
    order(journal, World(), "b")
    grown = payload_bytes(journal)

    journal.fork("b", "c", before="mail", effects=True)

    assert payload_bytes(journal) == grown
    world = World()
    assert order(journal, world, "c") == given
    assert world.ran == ["mail"]
    assert size < grown


def test_a_lost_acknowledgement_is_no_refusal(journal, monkeypatch):
    """A fork whose commit was not acknowledged is made once, and its caller hears that it was made."""
    order(journal, World())
    database = journal._database()
    once = database.fork
    monkeypatch.setattr(database, "fork", lambda forking: (once(forking), once(forking)))

    journal.fork("order-7", "b", before="mail", edits={"charge": Done(1)}, by="ada")

    assert len(journal.steps("b")) == 3
    assert decisions(journal, "b") == [("edited", "ada", "")]


def test_a_fork_is_found_as_its_source_is(journal):
    """Tags and metadata are carried along: whoever looks for a customer's runs, or erases them, finds the forks, too."""
    order(journal, World(), metadata={"customer": 7}, tags=["vip"])

    journal.fork("order-7", "b")

    assert {run.run_id for run in journal.runs(metadata={"customer": 7}, tags=["vip"])} == {"order-7", "b"}


def test_a_run_without_a_lock(journal):
    """A run without a lock is not forked while a worker is at it; its fork is one without a lock, too."""
    with journal.run("order-7", lock=False):
        World().act("look_up", safe)
        with pytest.raises(RunBusyError):
            journal.fork("order-7", "b")
    journal.fork("order-7", "b", effects=False)
    world = World()

    with pytest.raises(ForkedEffectError), journal.run("b", lock=False):
        world.act("look_up", safe)
        world.act("charge", never)

    assert world.ran == []


def test_a_run_that_is_held_is_not_forked(journal):
    """A run that a worker holds changes, so it is not copied; its holder is named."""
    with journal.run("order-7"):
        World().act("look_up", safe)

        with pytest.raises(RunBusyError) as caught:
            journal.fork("order-7", "b")

    assert caught.value.run_id == "order-7"
    assert journal.fork("order-7", "b").forked_from == "order-7"


def test_refusals(journal):
    """What there is not, what there is already and what is ambiguous is refused, and nothing is left behind."""
    with journal.run("order-7"):
        for place in range(2):
            World().act("look_up", safe, place)

    for source, target, options, kind, told in (
        ("order-8", "b", {}, RunNotFoundError, "order-8"),
        ("order-7", "order-7", {}, ForkRefusedError, "of that name already"),
        ("order-7", "b", {"before": "mail"}, ForkRefusedError, r"no step 'mail'; its steps: 1 \(look_up\)"),
        ("order-7", "b", {"before": "look_up"}, ForkRefusedError, "fits several steps: 1 "),
        ("order-7", "b", {"edits": {1: Done(1), "1": Done(2)}}, ForkRefusedError, "name the same step"),
        ("order-7", " ", {}, ValueError, "1 to 512"),
    ):
        with pytest.raises(kind, match=told):
            journal.fork(source, target, **options)
    assert [run.run_id for run in journal.runs()] == ["order-7"]


@pytest.mark.parametrize("erased", ["order-7", "b"])
def test_an_erased_run_is_neither_source_nor_target(journal, erased):
    """A run that was erased has no past to copy, and its name is not given to another one."""
    for run_id in ("order-7", "b"):
        with journal.run(run_id):
            pass
    write(journal, runs.update().where(runs.c.run_id == erased).values(status="erased"))

    with pytest.raises(RunErasedError) as caught:
        journal.fork("order-7", "b")

    assert caught.value.run_id == erased


def test_once_per_key_is_carried_along(journal):
    """What happened once in the run counts as happened in its fork; what is behind the cut does not."""
    once = never(once_per="args")
    for name, effects in (("order-7", True), ("b", False), ("c", True)):
        if name != "order-7":
            journal.fork("order-7", name, before=2, effects=effects)
        with journal.run(name) as run:
            world = World()
            first = world.act("refund", once, 7)
            with run.scope("again"):
                assert world.act("refund", once, 7) == first
            assert world.ran == ([] if name != "order-7" else ["refund"])


def test_once_in_the_journal_is_shared_by_forks_without_effects(journal):
    """A call whose effect the source owns for the whole journal gets the source's outcome, though it may not run."""
    once = never(once_per="args", window="journal")

    def program(run_id, world):
        with journal.run(run_id):
            return world.act("look_up", safe), world.act("refund", once, 7)

    given, world = program("order-7", World()), World()
    journal.fork("order-7", "b", before="refund")

    assert program("b", world) == given
    assert world.ran == []
