"""Replay a finished run with the model switched off."""

from collections.abc import Generator
from contextlib import contextmanager

from gnl_middleware.adapter import current_session
from gnl_middleware.errors import ReplayMissError
from gnl_middleware.session.points import Point, observe

_NOTE = "model_off() is on: everything must be read back from the journal, so this call was refused before it began."


@contextmanager
def model_off() -> Generator[list[str]]:
    """Switch live calls off in this process: a finished run must give the same reply from its journal alone.

    A model that is asked all the same raises, and so does a tool that would run: no model asked for it. What is not
    journalled is not seen here; ``run_durable`` refuses it.

    Yields:
        The names of the calls that were refused: none, if the run is finished and its code is the same.

    Raises:
        ReplayMissError: In the call that would run live, and again by the run that it belongs to, whoever swallows it.

    Example:
        >>> reply = run(agent, "support:42", journal)     # doctest: +SKIP
        >>> with model_off() as refused:     # doctest: +SKIP
        ...     assert run(agent, "support:42", journal) == reply
        >>> assert refused == []     # doctest: +SKIP
    """
    refused: list[str] = []

    def refuse(point: Point, number: int, name: str) -> None:
        if point == "before_intent":
            refused.append(name)
            raise _refusal(number, name)

    observe(refuse, role="toolkit")
    try:
        yield refused
    finally:
        observe(None, role="toolkit")


def _refusal(number: int, name: str) -> ReplayMissError:
    session = current_session()
    error = ReplayMissError(
        run_id="?" if session is None else session.run_id,
        step_key=str(number),
        name=name,
        journal=None if session is None else session.database.place,
    )
    error.add_note(_NOTE)
    return error
