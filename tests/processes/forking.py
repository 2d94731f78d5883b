"""Programs that fork, as preforking servers and task queues do, with a journal that is open already."""

import contextlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable

from gnl_middleware import Journal, LeaseLostError, journaled, never
from tests.leases.clocks import TurnedClock
from tests.processes.children import Line

# Python 3.12 warns of forks with threads; a journal opened before the fork is exactly that.
warnings.filterwarnings("ignore", "This process.*is multi-threaded", DeprecationWarning)

_PATIENCE = 10
"""Seconds after which a child that hangs is killed: the alarm clock of the parent is not inherited."""


@journaled(replay=never)
def charge(order: str) -> str:
    """A side effect."""
    return f"charged {order}"


def forked(work: Callable[[], object]) -> int:
    """Do the work in a forked child and end it there; gives the child's process id."""
    if child := os.fork():
        return child
    code = 1
    signal.alarm(_PATIENCE)
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def code_of(child: int) -> int:
    """How a child ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def order(journal: Journal, run_id: str) -> None:
    """One run with one effect."""
    with journal.run(run_id):
        assert charge(run_id) == f"charged {run_id}"


def children_and_parent(line: Line, path: str) -> None:
    """Children write runs of their own while the parent goes on with its own."""
    journal = Journal(path)
    with journal.run("parent"):
        charge("before")
        children = [forked(lambda number=number: order(journal, f"child-{number}")) for number in range(3)]
        charge("after")
        line.say([code_of(child) for child in children])
    line.say(sorted(record.run_id for record in journal.runs(status="completed")))
    journal.close()


def parent_closes_first(line: Line, path: str) -> None:
    """The parent closes its journal while its child still works: the child's writes must go to the same file."""
    journal = Journal(path)
    order(journal, "parent")
    closed, opened = os.pipe(), os.pipe()

    def work() -> None:
        order(journal, "child-1")
        os.write(opened[1], b".")
        os.read(closed[0], 1)
        order(journal, "child-2")
        assert "child-2" in [record.run_id for record in journal.runs()]
        order(journal, "child-3")

    child = forked(work)
    os.read(opened[0], 1)
    journal.close()
    os.write(closed[1], b".")
    line.say(code_of(child))


def in_the_middle(line: Line, path: str, forks: int) -> None:
    """Fork again and again while other threads write: the child gets whatever they hold at that moment."""
    journal = Journal(path)
    stop = threading.Event()

    def keep_writing(number: int) -> None:
        turn = 0
        while not stop.is_set():
            order(journal, f"parent-{number}-{turn}")
            turn += 1

    threads = [threading.Thread(target=keep_writing, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(forks):
        line.say(code_of(forked(lambda number=number: order(journal, f"child-{number}"))))
    stop.set()
    for thread in threads:
        thread.join()
    line.say(sorted(r.run_id for r in journal.runs(status="completed") if r.run_id.startswith("child")))
    journal.close()


def child_leaves_the_run(line: Line, path: str) -> None:
    """A child that falls out of the parent's run, as `sys.exit` lets it, does not give the parent's lease away."""
    # A clock that stands still: however long the fork takes, the lease is lost to nobody but the child.
    journal = Journal(path, clock=TurnedClock(frozen=True))
    run = journal.run("order-7", lease=1.0)
    run.__enter__()
    (before,) = journal.runs()

    def fall_out() -> None:
        with contextlib.suppress(LeaseLostError):
            run.__exit__(SystemExit, SystemExit(0), None)

    line.say(code_of(forked(fall_out)))
    (after,) = journal.runs()
    line.say([after.holder == before.holder, after.status])
    line.say(charge("7"))
    run.__exit__(None, None, None)
    line.say(journal.runs()[0].status)
    journal.close()


def child_goes_on_in_the_run(line: Line, path: str, effects: str) -> None:
    """A child that goes on inside the parent's run: parent and child must not both perform the effect."""

    @journaled(replay=never)
    def refund(number: int) -> int:
        with open(effects, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{number}\n")
        return number

    journal = Journal(path)
    with journal.run("order-7"):
        children = [forked(lambda: refund(1)) for _ in range(2)]
        codes = [code_of(child) for child in children]
        try:
            line.say([codes, refund(1)])
        except Exception as error:  # noqa: BLE001
            line.say([codes, type(error).__name__])


def exits_normally(line: Line, path: str) -> None:
    """A child that ends as programs do, with all its clean-up, leaves the parent's journal alone."""
    journal = Journal(path)
    order(journal, "parent-1")
    if os.fork() == 0:
        order(journal, "child")
        sys.exit(0)
    os.wait()
    order(journal, "parent-2")
    line.say(sorted(record.run_id for record in journal.runs(status="completed")))
