"""How a request becomes a model step, and who journals it: a framework's wrapper above it does so already."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnl_middleware.adapter import ModelCall, OnNoRun, Session, current_steps, session_for
from gnl_middleware.wire import WireFormat, format_of
from gnl_middleware.wire.recorded import Chunk, answered_by, kept, model_call


@dataclass(frozen=True, slots=True)
class Step:
    """A request that is journalled.

    Attributes:
        session: The open run.
        wire: The format of the request.
        call: The request as the journal sees it.
    """

    session: Session
    wire: WireFormat
    call: ModelCall

    def is_whole(self, chunks: Sequence[Chunk]) -> bool:
        """Whether these chunks are a whole answer, which can be recorded."""
        return bool(chunks) and answered_by(self.wire, [kept(chunk) for chunk in chunks]) is not None


def step_of(method: str, url: str, body: bytes, on_no_run: OnNoRun) -> Step | None:
    """The step of a request; None where it is not for us to journal.

    That is so for requests that ask no model, outside any run where passing through is allowed, and inside the model step
    of a framework's wrapper.

    Raises:
        NoActiveRunError: No run is open here.
    """
    wire = format_of(method, url)
    asked = None if wire is None else wire.asked(body)
    if wire is None or asked is None:
        return None
    session = session_for(name=asked.model or "a model", on_no_run=on_no_run)
    if session is None or _is_inside_a_model(session):
        return None
    return Step(session, wire, model_call(wire, asked))


def _is_inside_a_model(session: Session) -> bool:
    steps = current_steps()
    if not steps:
        return False
    with session.record.lock:
        around = session.record.steps.get(steps[-1].key)
    return around is not None and around.kind == "model"


class NotRecordedError(Exception):
    """The provider refused, or its answer broke off: that is no outcome, and the client must see it as it came.

    Attributes:
        response: The live response, where its body is still to be read.
        chunks: What came last, and was held back.
    """

    def __init__(self, response: Any = None, chunks: Sequence[Chunk] = ()) -> None:
        self.response, self.chunks = response, tuple(chunks)
        super().__init__("the answer is no outcome")
