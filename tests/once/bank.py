"""A bank that refunds each order once, with its effects in a file that outlives every process."""

import asyncio

from gnl_middleware import Done, Journal, NotDone, Unknown, current_step, journaled, never
from tests.once.world import PATIENCE, per_order
from tests.worlds import Log

ANSWERS = ("looks", "unknown", "no hook", "raises", "answers nonsense")
"""What `recover` does; "looks" tells the truth."""


class Bank:
    """What the processes of one test share: the journal's file and the effects.

    Args:
        folder: Where both are.
        answers: One of ``ANSWERS``.
        window: How far the key of a refund reaches.
        asynchronous: Whether the refund is a coroutine function.
    """

    def __init__(self, folder, answers="looks", *, window="journal", asynchronous=False):
        self.folder, self._effects, self.asynchronous = folder, Log(folder / "effects"), asynchronous
        hooks = {
            "looks": self.look,
            "unknown": lambda call: Unknown(),
            "no hook": None,
            "raises": _raise,
            "answers nonsense": lambda call: "perhaps",
        }
        policy = never(once_per=per_order, window=window, recover=hooks[answers])
        self.refund = journaled(self._coroutine() if asynchronous else self._function(), replay=policy)

    def _function(self):
        def refund(order, note):
            return self._act(order, note)

        return refund

    def _coroutine(self):
        async def refund(order, note):
            return self._act(order, note)

        return refund

    def _act(self, order, note):
        self._effects.add(f"{order} {current_step().idempotency_key}")
        return f"refunded {order} for {note}"

    def effects(self, order="o-7"):
        """The idempotency keys with which an order was refunded."""
        return [line.split()[1] for line in self._effects.lines() if line.split()[0] == order]

    def look(self, call):
        """Find in the world whether the owner's refund happened."""
        order = call.arguments["order"]
        happened = call.idempotency_key in self.effects(order)
        return Done(f"refunded {order}: found") if happened else NotDone()

    def journal(self):
        """The journal on its file."""
        return Journal(self.folder / "runs.db")

    def refund_in(self, run_id, *notes, order="o-7", scopes=()):
        """One attempt that asks for a refund with each note; gives what each call gave.

        Args:
            run_id: The run.
            *notes: The calls.
            order: What is refunded.
            scopes: Names of branches, one for each call.
        """
        with self.journal() as journal:
            return asyncio.run(
                asyncio.wait_for(self._refund_in(journal, run_id, notes, order, scopes), PATIENCE)
            )

    async def _refund_in(self, journal, run_id, notes, order, scopes):
        async with journal.run(run_id) as run:
            results = []
            for place, note in enumerate(notes):
                with run.scope(scopes[place] if scopes else "all"):
                    ended = self.refund(order, note)
                    results.append(await ended if self.asynchronous else ended)
            return results


def _raise(_call):
    raise ConnectionError("the bank does not answer")


def refund_in(folder, answers, window, asynchronous, run_id, *notes):
    """One attempt, for a process of its own."""
    Bank(folder, answers, window=window, asynchronous=asynchronous).refund_in(run_id, *notes)
