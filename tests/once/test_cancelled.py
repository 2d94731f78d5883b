"""Equal calls of which one is cancelled: who waits goes away, an owner hands over or is settled (DESIGN 3.4)."""

import asyncio

import pytest

from gnl_middleware import Done, SideEffectRetryBlockedError
from tests.once.refunds import IN_RUN, PATIENCE, Refund, both_windows, steps


def test_a_call_that_waits_can_be_cancelled(journal):
    """Cancelling one that waits leaves nothing behind: the owner goes on, and the call can be made again."""
    began, finish = asyncio.Event(), asyncio.Event()

    async def slowly(order, note):
        began.set()
        await finish.wait()
        return "refunded"

    refund = Refund(slowly, policy=IN_RUN, asynchronous=True)

    async def run():
        async with journal.run("run"):
            owner = asyncio.ensure_future(refund.call("o-7", "owner"))
            await began.wait()
            waiter = asyncio.ensure_future(refund.call("o-7", "waiter"))
            await asyncio.sleep(0.2)
            waiter.cancel()
            await asyncio.wait([waiter])
            finish.set()
            return waiter.cancelled(), await owner, await refund.call("o-7", "waiter")

    results = asyncio.run(asyncio.wait_for(run(), PATIENCE))

    assert (results, refund.ran) == ((True, "refunded", "refunded"), ["owner"])
    assert steps(journal) == [("done", None), ("done", "shared")]


@both_windows
def test_an_owner_cancelled_before_its_body_hands_over(journal, watch_points, policy):
    """An owner whose intent was withdrawn has performed nothing: the next call runs, without asking anybody."""
    refund = Refund(policy=policy, asynchronous=True)

    async def run():
        async with journal.run("run"):
            owner = asyncio.ensure_future(refund.call("o-7", "owner"))
            watch_points(lambda point, *_: point == "before_intent" and owner.cancel())
            await asyncio.wait([owner])
            watch_points(None)
            return owner.cancelled(), await refund.call("o-7", "next"), await refund.call("o-7", "owner")

    results = asyncio.run(asyncio.wait_for(run(), PATIENCE))

    assert (results, refund.ran) == ((True, "refunded", "refunded"), ["next"])


@both_windows
def test_an_owner_cancelled_in_its_body_is_settled(journal, policy):
    """Inside the body nobody knows: the next call asks `recover` about the owner, and blocks where nothing can tell."""
    asked = []
    began = []

    async def hang(order, note):
        began[-1].set()
        await asyncio.Event().wait()

    knowing = Refund(
        hang, policy=policy(recover=lambda call: asked.append(call) or Done("found")), asynchronous=True
    )
    ignorant = Refund(hang, policy=policy, asynchronous=True, name="other refund")

    async def run(refund, run_id):
        began.append(asyncio.Event())
        async with journal.run(run_id):
            owner = asyncio.ensure_future(refund.call("o-7", "owner"))
            await began[-1].wait()
            owner.cancel()
            await asyncio.wait([owner])
            return await refund.call("o-7", "next")

    found = asyncio.run(asyncio.wait_for(run(knowing, "knowing"), PATIENCE))
    with pytest.raises(SideEffectRetryBlockedError):
        asyncio.run(asyncio.wait_for(run(ignorant, "ignorant"), PATIENCE))

    assert (found, knowing.ran, ignorant.ran) == ("found", ["owner"], ["owner"])
    assert [call.arguments["note"] for call in asked] == ["owner"]
