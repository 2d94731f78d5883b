"""A call that would wait for itself is refused: it is part of the very call that owns the effect (DESIGN 3.4)."""

import asyncio
import threading

import pytest

from gnl_middleware import EffectCycleError, journaled, never, safe
from tests.once.refunds import (
    IN_JOURNAL,
    PATIENCE,
    both_windows,
    per_order,
    run_status,
    started_thread,
)
from tests.processes.hanging import alarm


@pytest.fixture(autouse=True)
def not_for_ever():
    """What waits for itself must fail instead."""
    with alarm(PATIENCE):
        yield


@both_windows
class TestInOneRun:
    def test_directly(self, journal, policy):
        """A refund whose body asks for the same refund."""
        ran = []

        @journaled(replay=policy)
        def refund(order, note):
            ran.append(note)
            return refund(order, "inner")

        with pytest.raises(EffectCycleError) as raised, journal.run("run"):
            refund("o-7", "outer")

        assert (raised.value.run_id, raised.value.name) == ("run", "refund")
        assert ran == ["outer"]

    def test_in_a_coroutine(self, journal, policy):
        """The same for coroutines."""
        ran = []

        @journaled(replay=policy)
        async def refund(order, note):
            ran.append(note)
            return await refund(order, "inner")

        async def run():
            async with journal.run("run"):
                await refund("o-7", "outer")

        with pytest.raises(EffectCycleError):
            asyncio.run(asyncio.wait_for(run(), PATIENCE))

        assert ran == ["outer"]

    def test_through_steps_between(self, journal, policy):
        """However many other steps stand between the two."""

        @journaled(replay=safe)
        def handle(order):
            return check(order)

        @journaled(replay=never)
        def check(order):
            return refund(order, "inner")

        @journaled(replay=policy)
        def refund(order, note):
            return handle(order)

        with pytest.raises(EffectCycleError), journal.run("run"):
            refund("o-7", "outer")

    def test_in_a_thread_of_the_body(self, journal, policy):
        """A thread that the body starts and waits for is part of the body."""

        @journaled(replay=policy)
        def refund(order, note):
            return started_thread(lambda: refund(order, "inner")).result(PATIENCE)

        with pytest.raises(EffectCycleError), journal.run("run"):
            refund("o-7", "outer")

    def test_that_is_swallowed(self, journal, policy):
        """A body that swallows the error does not get away with it: the run stops."""

        @journaled(replay=policy)
        def refund(order, note):
            try:
                return refund(order, "inner")
            except Exception:  # noqa: BLE001 - what user code does
                return "all is well"

        with pytest.raises(EffectCycleError), journal.run("run"):
            refund("o-7", "outer")

        assert run_status(journal) == "failed"


class TestThroughAnotherRun:
    """The body opens a run of its own, which asks for the same refund: it must not wait for the run around it."""

    def test_opened_inside_the_body(self, journal):
        """A function that opens a run."""

        @journaled(replay=IN_JOURNAL)
        def refund(order, note):
            with journal.run("inner"):
                return refund(order, "inner")

        with pytest.raises(EffectCycleError) as raised, journal.run("outer"):
            refund("o-7", "outer")

        assert raised.value.run_id == "outer"

    def test_opened_inside_a_coroutine(self, journal):
        """A coroutine that opens a run."""

        @journaled(replay=IN_JOURNAL)
        async def refund(order, note):
            async with journal.run("inner"):
                return await refund(order, "inner")

        async def run():
            async with journal.run("outer"):
                await refund("o-7", "outer")

        with pytest.raises(EffectCycleError) as raised:
            asyncio.run(asyncio.wait_for(run(), PATIENCE))

        assert raised.value.run_id == "outer"


class TestNoCycle:
    def test_another_key_inside(self, journal):
        """A refund that asks for another order's refund waits for nobody."""

        @journaled(replay=never(once_per=per_order))
        def refund(order, note):
            return [order, *(refund("o-8", "inner") if order == "o-7" else [])]

        with journal.run("run"):
            assert refund("o-7", "outer") == ["o-7", "o-8"]

    def test_the_same_key_of_another_tool_inside(self, journal):
        """A key belongs to its tool."""

        @journaled(replay=IN_JOURNAL)
        def mail(order, note):
            return "mailed"

        @journaled(replay=IN_JOURNAL)
        def refund(order, note):
            return mail(order, note)

        with journal.run("run"):
            assert refund("o-7", "outer") == "mailed"

    def test_afterwards(self, journal):
        """Once the outer call has ended, its key is as any other."""
        ran = []

        @journaled(replay=IN_JOURNAL)
        def refund(order, note):
            ran.append(note)
            return "refunded"

        @journaled(replay=safe)
        def handle():
            return refund("o-7", "inner")

        with journal.run("run"):
            results = [refund("o-7", "before"), handle(), refund("o-7", "after")]

        assert (results, ran) == (["refunded"] * 3, ["before"])

    def test_a_thread_that_does_not_belong_to_the_body(self, journal):
        """A sibling that runs at the same time is no ancestor: it waits."""
        began, finish = threading.Event(), threading.Event()

        @journaled(replay=IN_JOURNAL)
        def refund(order, note):
            began.set()
            assert finish.wait(PATIENCE)
            return note

        with journal.run("run"):
            owner = started_thread(lambda: refund("o-7", "owner"))
            assert began.wait(PATIENCE)
            sibling = started_thread(lambda: refund("o-7", "sibling"))
            finish.set()
            assert [owner.result(PATIENCE), sibling.result(PATIENCE)] == ["owner"] * 2
