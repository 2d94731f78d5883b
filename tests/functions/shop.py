"""A shop whose orders are paid by a journalled function, with its effects in a file that outlives every process."""

import asyncio

from gnl_middleware import Done, Journal, NotDone, current_step, journaled, keyed, never, safe

RUN = "order-7"
POLICIES = ("safe", "keyed", "never", "never_with_recover")


class Shop:
    """What the processes of one test share: the journal's file and the effects.

    Args:
        folder: Where both are.
        policy: How paying is labelled; one of `POLICIES`.
        asynchronous: Whether its functions are coroutines.
    """

    def __init__(self, folder, policy, *, asynchronous):
        self.folder, self.policy, self.asynchronous = folder, policy, asynchronous
        self.prepare = self._step("prepare", safe)
        self.pay = self._step("pay", self._labelled())
        self.finish = self._step("finish", safe)

    def _labelled(self):
        if self.policy == "never_with_recover":
            return never(recover=self.look)
        return {"safe": safe, "keyed": keyed, "never": never}[self.policy]

    def _step(self, name, policy):
        def body(order):
            with (self.folder / name).open("a", encoding="utf-8") as effects:
                effects.write(f"{current_step().idempotency_key}\n")
            return f"{name} {order}: {len(self.effects(name))}"

        async def coroutine(order):
            return body(order)

        return journaled(coroutine if self.asynchronous else body, replay=policy, name=name)

    def effects(self, name):
        """The idempotency keys that the function was executed with, in order."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def look(self, call):
        """What `recover` finds in the world."""
        happened = call.idempotency_key in self.effects("pay")
        return Done("pay o-7: found") if happened else NotDone()

    def journal(self):
        """The journal on its file."""
        return Journal(self.folder / "runs.db")

    def sell(self):
        """One attempt at the whole order; gives what each step gave."""
        with self.journal() as journal:
            if self.asynchronous:
                return asyncio.run(self._sell_async(journal))
            with journal.run(RUN):
                return [step("o-7") for step in (self.prepare, self.pay, self.finish)]

    async def _sell_async(self, journal):
        async with journal.run(RUN):
            return [await step("o-7") for step in (self.prepare, self.pay, self.finish)]


def sell(folder, policy, asynchronous):
    """One attempt, for a process of its own."""
    Shop(folder, policy, asynchronous=asynchronous).sell()
