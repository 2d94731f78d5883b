"""Where a step happened: named branches replay in any order, and what happens inside a step is counted there."""

import asyncio
import contextvars
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import NoActiveRunError, current_run, current_step, journaled, never, safe
from tests.functions.scripted import RUN, Function, Killed, attempt

BRANCHES = ["billing", "shipping", "mailing", "archive"]


def shuffled(seed):
    """Another order for each seed, the same on every machine."""
    return random.Random(seed)  # noqa: RUF100, S311


@journaled(replay=safe)
async def lookup(question):
    """A step whose value is another one at each execution."""
    await asyncio.sleep(0)
    return f"{question} {random.random()}"  # noqa: RUF100, S311


async def work(branch, order):
    """Two equal calls, a value and a nested branch; `order` shuffles how the branches take turns."""
    run = current_run()
    with run.scope(branch):
        for _ in range(order.randrange(4)):
            await asyncio.sleep(0)
        answers = [await lookup("same question"), await lookup("same question"), run.random()]
        with run.scope("inner"):
            answers.append(await lookup("same question"))
    return answers


async def work_in_branches(journal, order):
    """All branches at once, started in a shuffled order; gives their answers and how many steps ran."""
    branches = order.sample(BRANCHES, len(BRANCHES))
    async with journal.run(RUN) as run:
        answers = await asyncio.gather(*(work(branch, order) for branch in branches))
        return dict(zip(branches, answers, strict=True)), run.steps_ran


def test_branches_replay_in_any_order(journal):
    """Concurrent branches with names of their own replay the same results in each of 100 shuffled orders."""
    recorded, ran = asyncio.run(work_in_branches(journal, shuffled(0)))

    replays = [asyncio.run(work_in_branches(journal, shuffled(seed))) for seed in range(1, 101)]

    assert ran == 4 * len(BRANCHES)
    assert replays == [(recorded, 0)] * 100


def test_branches_replay_in_any_order_from_threads(journal):
    """Branches in executor threads replay the same results, whichever thread is faster."""
    pay = Function(never, *range(100), name="pay")

    def branch(name):
        with current_run().scope(name):
            return [pay.call(), pay.call()]

    def all_branches(names):
        with journal.run(RUN) as run, ThreadPoolExecutor(len(names)) as pool:
            contexts = [contextvars.copy_context() for _ in names]
            futures = [
                pool.submit(context.run, branch, name) for context, name in zip(contexts, names, strict=True)
            ]
            return dict(zip(names, [future.result() for future in futures], strict=True)), run.steps_ran

    recorded, ran = all_branches(BRANCHES)
    replays = [all_branches(shuffled(seed).sample(BRANCHES, 4)) for seed in range(20)]

    assert ran == len(pay.ran) == 8
    assert replays == [(recorded, 0)] * 20


def test_branch_taken_up_again_counts_on(journal):
    """A name used again later in the same attempt is the same branch: its calls are counted on, not read back."""
    pay = Function(never, "first", "second")

    def two_visits():
        results = []
        with journal.run(RUN) as run:
            for _ in range(2):
                with run.scope("billing"):
                    results.append(pay.call())
        return results

    assert two_visits() == two_visits() == ["first", "second"]
    assert len(pay.ran) == 2


def test_step_lists_where_it_happened(journal):
    """A listed step names its scope: nothing for the run itself, else the branch or the enclosing step."""
    inner = Function(safe, "inner", name="inner")
    outer = journaled(inner.call, replay=safe, name="outer")

    with journal.run(RUN) as run, run.scope("billing"):
        outer()

    outer_step, inner_step = journal.steps(RUN)
    assert outer_step.scope == "billing/"
    assert inner_step.scope == f"{outer_step.key}/"


def test_leaving_a_branch_returns_to_the_scope_around_it(journal):
    """After a branch, also one that raised, calls happen in the scope around it again."""

    def fail():
        raise TimeoutError

    with journal.run(RUN) as run:
        with pytest.raises(TimeoutError), run.scope("billing"), run.scope("inner"):
            run.value("inside", fail)
        run.value("after", lambda: 2)

    assert [(step.name, step.scope) for step in journal.steps(RUN)] == [
        ("inside", "billing/inner/"),
        ("after", ""),
    ]


class TestInsideAStep:
    """Functions that call functions: the enclosing step is the scope."""

    def test_inner_steps_are_read_back(self, journal):
        """A step that was interrupted is entered again, and what it had done inside is read back."""
        charge = Function(never, "charged", name="charge")
        mail = Function(safe, Killed(), "mailed", name="mail")
        order = Function(safe, None, name="order")
        order.call = journaled(lambda: [charge.call(), mail.call()], replay=safe, name="order")

        with pytest.raises(Killed):
            attempt(journal, order)
        results = attempt(journal, order)

        assert results == [["charged", "mailed"]]
        assert (len(charge.ran), len(mail.ran)) == (1, 2)

    def test_equal_calls_inside_two_steps_are_told_apart(self, journal):
        """The same inner call inside two outer calls is two steps, each counted from 1."""
        drawn = iter(range(100))
        outer = journaled(
            lambda order: current_run().value("draw", lambda: next(drawn)), replay=safe, name="outer"
        )

        with journal.run(RUN):
            recorded = [outer("a"), outer("b"), outer("a")]
        with journal.run(RUN):
            replayed = [outer("a"), outer("a"), outer("b")]

        assert recorded == [0, 1, 2]
        assert replayed == [0, 2, 1]
        assert len({step.key for step in journal.steps(RUN)}) == 6

    def test_step_called_again_reads_back_what_it_did(self, journal):
        """A step that failed and is called again is the same step: its counters restart, its inner effects stand."""
        charge = Function(never, "charged", name="charge")
        mail = Function(safe, TimeoutError("no answer"), "mailed", name="mail")

        @journaled(replay=safe)
        def order():
            return [charge.call(), mail.call()]

        with journal.run(RUN):
            with pytest.raises(TimeoutError):
                order()
            result = order()

        assert result == ["charged", "mailed"]
        assert (len(charge.ran), len(mail.ran)) == (1, 2)

    def test_step_called_again_reads_back_its_branches(self, journal):
        """The counters of branches inside a step restart with it, too."""
        charge = Function(never, "charged", name="charge")
        endings = [TimeoutError("no answer"), None]

        @journaled(replay=safe)
        def order():
            with current_run().scope("billing"):
                charge.call()
            if (ending := endings.pop(0)) is not None:
                raise ending
            return "done"

        with journal.run(RUN):
            with pytest.raises(TimeoutError):
                order()
            result = order()

        assert (result, len(charge.ran)) == ("done", 1)

    def test_neighbour_with_a_longer_name_keeps_its_counters(self, journal):
        """Restarting the counters inside one step does not restart those of a step whose key begins the same way."""
        charge = Function(never, "first", "second", name="charge")
        endings = [TimeoutError("no answer"), "done"]

        @journaled(replay=safe)
        def order():
            ending = endings.pop(0)
            if isinstance(ending, TimeoutError):
                raise ending
            return ending

        with journal.run(RUN) as run:
            with run.scope("orders"):
                first = charge.call()
            with pytest.raises(TimeoutError):
                order()
            order()
            with run.scope("orders"):
                second = charge.call()

        assert [first, second] == ["first", "second"]

    def test_scope_does_not_leak_out_of_a_body(self, journal):
        """After a body ended, by a value or an error, calls happen outside it again."""
        failing = Function(safe, ValueError("no"), name="failing")

        with journal.run(RUN) as run:
            with pytest.raises(ValueError, match="no"):
                failing.call()
            with pytest.raises(NoActiveRunError):
                current_step()
            run.random()

        assert [step.scope for step in journal.steps(RUN)] == ["", ""]
