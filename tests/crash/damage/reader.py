"""Open damaged journals, list them and replay them, one after another: python -m tests.crash.damage.reader FOLDER FIRST LAST.

Says for each journal, before it is touched and after, which one it is: where the process dies or hangs, that is the one.
"""

import json
import random
import resource
import shutil
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnl_middleware import GnlError, Journal, Step

from .mutations import mutate
from .order import CUT, DECIDED, FINISHED, FORGED, Order

RUNS = (FINISHED, CUT, DECIDED, FORGED)
_EFFECTS = {"charge", "mail", "audit"}
_MEMORY = 2 << 30
_FORBIDDEN = {
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "pickle.find_class",
    "exec",
    "compile",
}


class Watch:
    """Sees what a damaged journal must not bring about.

    Attributes:
        seen: The modules that were imported and the commands that were run since the last look.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._on = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._on and (event in _FORBIDDEN or (event == "import" and arguments[0] not in sys.modules)):
            self.seen.append(f"{event} {str(arguments[:1])[:80]}")

    def __enter__(self) -> None:
        self.seen.clear()
        self._on = True

    def __exit__(self, *_error: object) -> None:
        self._on = False


class Reading:
    """How the library meets one damaged journal.

    Args:
        path: The journal.
        whole: What the journal gave before it was damaged.
        told: What was done to it.

    Attributes:
        wrong: What is wrong with how it was met: in a word that is counted, and how it showed.
    """

    def __init__(self, path: Path, whole: dict[str, Any], told: str) -> None:
        self.path, self.whole = path, whole
        # A log that ends early is a journal as it was before: SQLite writes its log so that it can be torn.
        self.torn = told.endswith("-wal")
        # Contents that fit their hashes are what was written, as far as anybody can tell.
        self.forged = told.startswith("rows forged")
        self.wrong: list[tuple[str, str]] = []
        self._untyped: list[tuple[str, Exception]] = []

    def read(self) -> None:
        """Open the journal, list it and replay its runs."""
        with Journal(self.path) as journal:
            self._list(journal)
            for run_id in RUNS:
                self._replay(journal, run_id, offline=True)
            if not self.torn:
                for run_id in (FINISHED, CUT):
                    self._replay(journal, run_id, offline=False)

    def tell_untyped(self) -> None:
        """Describe the errors that are not the library's, which may itself compile and import."""
        for what, error in self._untyped:
            self.wrong.append(("untyped", what + "".join(traceback.format_exception(error, limit=-3))))

    def _list(self, journal: Journal) -> None:
        for run in self._typed("runs: ", journal.runs) or ():
            if not isinstance(run.metadata, dict) or not isinstance(run.status, str):
                self.wrong.append(("value", f"runs: {run}"))
        for run_id in RUNS:
            what, expected = f"steps of {run_id}: ", self.whole["steps"][run_id]
            for step in self._typed(what, lambda run_id=run_id: journal.steps(run_id)) or ():
                found = shown(step)
                earlier = self.torn and step.status != "done"
                if expected.get(step.key) != found and not (self.forged or earlier):
                    self.wrong.append(("value", f"{what}{step.key} is {found[:80]}"))

    def _replay(self, journal: Journal, run_id: str, *, offline: bool) -> None:
        what, order = f"{'offline ' if offline else ''}replay of {run_id}: ", Order()
        answers = self._typed(what, lambda: order.play(journal, run_id, offline=offline))
        if order.bodies:
            kind = "effect" if _EFFECTS.intersection(order.bodies) else "body"
            self.wrong.append((f"{kind} offline" if offline else kind, f"{what}ran {order.bodies}"))
        if answers is not None and run_id == CUT:
            self.wrong.append(("value", f"{what}ended, though nobody knows of its side effect"))
        elif answers is not None and repr(answers) != self.whole["answers"] and not self.forged:
            self.wrong.append(("value", f"{what}gave {str(answers)[:200]}"))

    def _typed(self, what: str, act: Callable[[], Any]) -> Any:
        """What it gives; None where it raises an error of the library that names the run or the file."""
        try:
            return act()
        except GnlError as error:
            if not any(name in str(error) for name in ("runs.db", "order-", "damaged at run ")):
                self.wrong.append(("unnamed", f"{what}{type(error).__name__}: {error}"))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self._untyped.append((what, error))
        return None


def shown(step: Step) -> str:
    """What a step says of itself."""
    return repr((step.status, step.value, step.arguments, step.error, step.policy, step.resolution))


def whole(folder: Path) -> dict[str, Any]:
    """What the journal gives that was not damaged."""
    for file in list(folder.glob("whole.db*")):
        shutil.copyfile(file, file.with_name(file.name.replace("whole", f"read-{threading.get_native_id()}")))
    with Journal(folder / f"read-{threading.get_native_id()}.db") as journal:
        steps = {run_id: {step.key: shown(step) for step in journal.steps(run_id)} for run_id in RUNS}
        order = Order()
        answers = repr(order.play(journal, FINISHED, offline=True))
        assert not order.bodies
    return {"steps": steps, "answers": answers}


def say(**word: Any) -> None:
    """Tell the campaign something."""
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def look_at(folder: Path, first: int, last: int) -> None:
    """Damage and read the journals of these seeds."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.path.insert(0, str(folder))  # where the module stands that nobody must import
    scratch, watch, expected = folder / f"{first}", Watch(), whole(folder)
    scratch.mkdir()
    for seed in range(first, last):
        say(seed=seed)
        for file in folder.glob("whole.db*"):
            shutil.copyfile(file, scratch / file.name.replace("whole", "runs"))
        told = mutate(scratch / "runs.db", random.Random(seed))
        reading = Reading(scratch / "runs.db", expected, told)
        with watch:
            reading.read()
        reading.tell_untyped()
        wrong = reading.wrong + [("import", seen) for seen in watch.seen]
        if threading.active_count() > 1:
            wrong.append(("thread", str(threading.enumerate())))
        say(seed=seed, told=told, wrong=wrong)
        for file in scratch.iterdir():
            file.unlink()


if __name__ == "__main__":
    look_at(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
