"""Programs that all write to one file at once."""

from gnl_middleware import GnlError, Journal, journaled, never, safe
from tests.processes.children import Line

RESULT = 20_000


@journaled(replay=never)
def charge(number: int) -> str:
    """A side effect with a result of 20 KB."""
    return f"{number:08d} " * (RESULT // 9)


@journaled(replay=safe)
def look_up(number: int) -> int:
    """Something that may run twice."""
    return number


def write(line: Line, path: str, process: int, runs: int) -> None:
    """On the word of the test, list what is there and write so many runs; say what went wrong."""
    line.say("ready")
    line.hear()
    wrong: list[str] = []
    with Journal(path) as journal:
        for number in range(runs):
            try:
                if number % 10 == 0:
                    journal.runs()
                with journal.run(f"order-{process}-{number}"):
                    look_up(number)
                    charge(number)
            except GnlError as error:
                wrong.append(f"{type(error).__name__}: {error}")
    line.say(wrong)


def share(line: Line, path: str, runs: int) -> None:
    """On the word of the test, work on the same runs as all the others, waiting for each in turn."""
    line.say("ready")
    line.hear()
    ran = 0
    with Journal(path) as journal:
        for number in range(runs):
            with journal.run(f"shared-{number}", on_busy="wait") as run:
                look_up(number)
                charge(number)
                ran += run.steps_ran
    line.say(ran)
