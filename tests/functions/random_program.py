"""Programs made up from a seed: calls of every label, nested steps, branches, caught errors, retries and values."""

import os
import random
from pathlib import Path

from gnl_middleware import Done, Journal, NotDone, current_run, current_step, journaled, keyed, never, safe
from gnl_middleware.testing import CRASH_EXIT_CODE, observe_points

RUN = "order-7"
LABELS = ("safe", "keyed", "never")
KINDS = ("call", "call", "call", "caught", "flaky", "value", "nested", "branch")
MOST_STEPS = 4
DEEPEST = 2


def made_up(seed):
    """The operations of a program: (kind, label, argument, inner operations)."""
    source = random.Random(seed)

    def operations(depth):
        kinds = KINDS if depth < DEEPEST else KINDS[:-2]
        chosen = [source.choice(kinds) for _ in range(source.randint(1, MOST_STEPS))]
        return [
            (
                kind,
                source.choice(LABELS),
                source.randrange(3),
                operations(depth + 1) if kind in KINDS[-2:] else [],
            )
            for kind in chosen
        ]

    return operations(0)


class World:
    """What outlives a worker: the journal's file, and the effects with their idempotency keys."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def effects(self, of="effects"):
        """The idempotency keys of what happened, in order."""
        path = self.folder / of
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    def note(self, key, of="effects"):
        """Let something happen."""
        with (self.folder / of).open("a", encoding="utf-8") as file:
            file.write(f"{key}\n")

    def look(self, call):
        """What `recover` finds."""
        happened = call.idempotency_key in self.effects()
        return Done(f"{call.tool} {call.arguments['argument']}") if happened else NotDone()

    def policy(self, label):
        """A label; `never` with a hook that looks, and none gives up early."""
        if label == "never":
            return never(recover=self.look, max_attempts=99)
        return {"safe": safe, "keyed": keyed}[label](max_attempts=99)


def attempt(folder, seed):
    """One attempt at the program; gives what each of its steps gave."""
    world = World(folder)
    with Journal(world.folder / "runs.db") as journal, journal.run(RUN):
        return run_all(world, made_up(seed))


def run_all(world, operations):
    """Run the operations in turn."""
    return [_OPERATIONS[kind](world, label, argument, inner) for kind, label, argument, inner in operations]


def _call(world, label, argument, _inner):
    def body(argument):
        world.note(current_step().idempotency_key)
        return f"call {argument}"

    return journaled(body, replay=world.policy(label), name="call")(argument)


def _caught(world, label, argument, _inner):
    def body(argument):
        raise ValueError(f"no {argument}")

    try:
        return journaled(body, replay=world.policy(label), name="caught")(argument)
    except ValueError as error:
        # Going on is what makes an error handled; the next step may lie in another scope, or never come.
        return [str(error), current_run().value("gone on", lambda: True)]


def _flaky(world, label, argument, _inner):
    def body(argument):
        key = current_step().idempotency_key
        if key not in world.effects("failures"):
            world.note(key, "failures")
            raise TimeoutError
        world.note(key)
        return f"flaky {argument}"

    call = journaled(body, replay=world.policy(label), name="flaky")
    while True:
        try:
            return call(argument)
        except TimeoutError:
            continue


def _value(_world, _label, argument, _inner):
    return [current_run().value("argument", lambda: argument), 0 <= current_run().random() < 1]


def _nested(world, _label, argument, inner):
    # Entered again after a crash: what it had done inside is read back.
    return journaled(lambda argument: run_all(world, inner), replay=world.policy("safe"), name="nested")(
        argument
    )


def _branch(world, _label, argument, inner):
    with current_run().scope(f"branch {argument}"):
        return run_all(world, inner)


_OPERATIONS = {
    "call": _call,
    "caught": _caught,
    "flaky": _flaky,
    "value": _value,
    "nested": _nested,
    "branch": _branch,
}


def die_at_the(count, folder, seed):
    """For a process of its own: an attempt that dies when it comes to its n-th point, if it comes that far."""
    passed = 0

    def observer(*_):
        nonlocal passed
        passed += 1
        if passed == count:
            os._exit(CRASH_EXIT_CODE)

    observe_points(observer)
    attempt(folder, seed)
