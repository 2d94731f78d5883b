"""Programs of the process tests: they open, share, forget and leave journals as users do. Warnings are errors there."""

import asyncio
import gc
import os
import sys
import threading
from typing import Any

from gnl_middleware import Done, Journal, RunBusyError, current_run, journaled, never, safe
from tests.processes.children import Line


@journaled(replay=never)
def charge(order: str) -> str:
    """A side effect."""
    return f"charged {order}"


@journaled(replay=never)
async def charge_async(order: str) -> str:
    """The same as a coroutine."""
    return f"charged {order}"


@journaled(replay=safe)
def look_up(order: str) -> str:
    """Something that may run twice."""
    return f"found {order}"


def threads_of_ours() -> list[str]:
    """The names of the library's threads that live."""
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("gnl"))


def close(line: Line, path: str) -> None:
    """Use a journal in all ways and close it; say which threads lived before and after."""
    with Journal(path) as journal:
        with journal.run("order-7"):
            charge("7")
            line.say(threads_of_ours())
        asyncio.run(_charge(journal, "order-8"))
        journal.runs()
    gc.collect()
    line.say(threads_of_ours())


async def _charge(journal: Journal, run_id: str) -> str:
    async with journal.run(run_id):
        return await charge_async(run_id)


def forget(line: Line, path: str) -> None:
    """Use a journal and forget it, in the shortest form of the documentation."""
    with Journal(path).run("order-7"):
        charge("7")
        line.say(threads_of_ours())
    gc.collect()
    line.say(threads_of_ours())


def forget_open_run(line: Line, path: str) -> None:
    """Forget a journal together with a run that was never left."""
    Journal(path).run("order-7").__enter__()
    gc.collect()
    line.say(len(threads_of_ours()) > 0)
    current: Any = current_run()
    assert current is not None
    current._entered.close()
    del current
    gc.collect()
    line.say(threads_of_ours())


def never_used(line: Line, path: str) -> None:
    """Make journals that are never used."""
    journal = Journal(path)
    line.say(threads_of_ours())
    journal.close()
    del journal
    Journal(path)
    gc.collect()
    line.say(threads_of_ours())


def exit_with_open_run(line: Line, path: str, way: str) -> None:
    """End the interpreter in the middle of a run, in one of several ways."""
    journal = Journal(path)
    journal.run("order-7").__enter__()
    charge("7")
    look_up("7")
    line.say(threads_of_ours())
    if way == "exit":
        sys.exit(3)
    if way == "error":
        raise RuntimeError("the program broke")
    if way == "thread":
        # A thread that still works when the main thread ends: the interpreter waits for it, and it may go on.
        threading.Thread(target=_work_after_the_end, args=(journal,)).start()


def _work_after_the_end(journal: Journal) -> None:
    threading.main_thread().join()
    with journal.run("order-8"):
        charge("8")


def two_loops(line: Line, path: str) -> None:
    """One journal from two event loops in turn, from threads, and from synchronous code."""
    journal = Journal(path)
    for number in (1, 2):
        line.say(asyncio.run(_charge(journal, f"loop-{number}")))
    threads = [
        threading.Thread(target=asyncio.run, args=(_charge(journal, f"thread-{number}"),))
        for number in (1, 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with journal.run("plain"):
        line.say(charge("plain"))
    line.say(sorted(record.run_id for record in journal.runs(status="completed")))
    journal.close()


def sync_inside_a_loop(line: Line, path: str) -> None:
    """Synchronous calls on the thread of a running event loop, as in a notebook."""

    async def cell() -> None:
        journal = Journal(path)
        with journal.run("order-7") as run:
            line.say(charge("7"))
            line.say(str(run.value("moment", lambda: "now")))
        line.say([record.status for record in journal.runs()])
        journal.close()

    asyncio.run(cell())


def sync_beside_async(line: Line, path: str) -> None:
    """Synchronous and asynchronous calls of one run, from tasks of one loop."""

    async def work(number: int) -> str:
        return charge(f"sync-{number}") if number % 2 else await charge_async(f"async-{number}")

    async def cell() -> None:
        async with Journal(path).run("order-7"):
            line.say(await asyncio.gather(*[work(number) for number in range(10)]))

    asyncio.run(cell())


@journaled(replay=never)
def charge_beside(order: str) -> str:
    """Another side effect of the same run."""
    return f"charged {order}"


def interrupt_async(line: Line, path: str) -> None:
    """Die in the body of an asynchronous side effect."""

    @journaled(replay=never, name="refund")
    async def refund() -> str:
        os._exit(1)

    async def work() -> None:
        async with Journal(path).run("order-7"):
            await refund()

    asyncio.run(work())


def sync_beside_recover(line: Line, path: str) -> None:
    """Call a synchronous side effect while an asynchronous ``recover`` of the same loop thinks."""

    async def work() -> None:
        asked, beside = asyncio.Event(), asyncio.Event()

        async def recover(call: object) -> Done:
            asked.set()
            await beside.wait()
            return Done("recovered")

        @journaled(replay=never(recover=recover), name="refund")
        async def refund() -> str:
            raise AssertionError("the side effect ran a second time")

        async def call_beside() -> str:
            await asked.wait()
            try:
                return charge_beside("beside")
            except Exception as error:  # noqa: BLE001
                return str(error)
            finally:
                beside.set()

        async with Journal(path).run("order-7"):
            line.say(await asyncio.gather(refund(), call_beside()))

    asyncio.run(work())


def wait_for_oneself(line: Line, path: str) -> None:
    """Open a run, waiting for whoever holds it, inside itself: in plain code, in a task, and in plain code on a loop."""
    journal = Journal(path)

    def again() -> str:
        try:
            with journal.run("order-7", on_busy="wait"):
                return "two workers on one run"
        except RunBusyError:
            return "RunBusyError"

    async def in_a_task() -> None:
        async with journal.run("order-7"):
            line.say(again())
            try:
                async with journal.run("order-7", on_busy="wait"):
                    line.say("two workers on one run")
            except RunBusyError:
                line.say("RunBusyError")

    with journal.run("order-7"):
        line.say(again())
    asyncio.run(in_a_task())
    journal.close()
