"""The code whose journals are damaged: an agent and plain functions with values of many types; bodies that run are noted."""

import contextlib
import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any
from unittest import mock

from gnl_middleware import Done, GnlError, Journal, Run, codec, journaled, keyed, never, safe
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Policy,
    Reply,
    ReplyCall,
    ToolCall,
    digest,
    encode,
    perform,
    request_of,
)

FINISHED, CUT, DECIDED, FORGED = "order-1", "order-2", "order-3", "order-4"
"""A run that ended, one that was cut off in a side effect, one that a person decided and that then ended; and one in
which a value was written by hand, with all that belongs to it."""

_VALUES: dict[str, Any] = {
    "lookup": {"rows": [1, 2.5, None, True], "of": ("c-1", "ü"), "raw": b"\x00\xff", "large": "x" * 3000},
    "charge": [decimal.Decimal("9.90"), uuid.UUID(int=7), dt.date(2026, 1, 2), {1: "one"}, {"a", "b"}],
    "mail": {"sent": dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "big": 2**70, "nan": [1e300]},
    "audit": "charged twice? no",
}
_TURNS = (("lookup", "charge"), ("mail", "refuse"))
_POLICIES: dict[str, Policy] = {"lookup": safe, "charge": never, "mail": keyed, "refuse": safe}


class Killed(BaseException):
    """The process ends here."""


class Order:
    """One attempt at the run.

    Attributes:
        bodies: The bodies that ran, by name.
        cut_at: The body in which the process ends, or None.
        written: What the journal gets as the value of the first tool, or None.
    """

    def __init__(self, cut_at: str | None = None, *, written: bytes | None = None) -> None:
        self.bodies: list[str] = []
        self.cut_at, self.written = cut_at, written
        self._audit = journaled(lambda: self._body("audit"), replay=never, name="audit")

    def play(self, journal: Journal, run_id: str, **options: Any) -> list[Any]:
        """Play the run to its end; gives what each step gave."""
        with journal.run(run_id, metadata={"customer": "ann", "lines": (1, 2)}, **options) as run:
            history = [("user", "please pay", "")]
            answers: list[Any] = [run.value("rate", lambda: self._made("rate", decimal.Decimal("1.08")))]
            for turn, tools in enumerate(_TURNS):
                answers += self._turn(run, history, turn, tools)
            with run.scope("books"):
                answers.append(self._audit())
            return answers

    def _turn(
        self, run: Run, history: list[tuple[str, str, str]], turn: int, tools: tuple[str, ...]
    ) -> list[Any]:
        reply = perform(run.session, self._model_call(history, tools), lambda: self._body(f"reply {turn}"))
        history.append(("assistant", reply, " ".join(tools)))
        answers: list[Any] = [reply]
        for tool in tools:
            call = ToolCall(
                name=tool,
                policy=_POLICIES[tool],
                arguments=_asked(tool),
                call_id=tool,
                carrier=digest(reply),
                encode=lambda value, tool=tool: self._encoded(tool, value),
            )
            answers.append(
                _answer(lambda call=call: perform(run.session, call, lambda: self._body(call.name)))
            )
            history.append(("tool", digest(answers[-1]), tool))
        return answers

    def _model_call(self, history: list[tuple[str, str, str]], tools: tuple[str, ...]) -> ModelCall:
        asked = tuple(ReplyCall(tool, tool, digest(_asked(tool))) for tool in tools)
        return ModelCall(
            name="model",
            request=request_of(tuple(history), tuple(_message(*said) for said in history), "setup"),
            messages=tuple([list(said) for said in history]),
            describe=lambda text: Reply(digest=digest(text), calls=asked, tokens=7),
        )

    def _encoded(self, tool: str, value: Any) -> bytes:
        return self.written if tool == "lookup" and self.written is not None else encode(value)

    def _body(self, name: str) -> Any:
        self.bodies.append(name)
        if name == self.cut_at:
            raise Killed
        if name == "refuse":
            raise ValueError("no such customer")
        return _VALUES.get(name, name)

    def _made(self, name: str, value: Any) -> Any:
        self.bodies.append(name)
        return value


def _asked(tool: str) -> Any:
    return {"of": "c-1", "with": [tool, 1.5, None]}


def _answer(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ValueError as error:
        return f"error: {error}"


def _message(role: str, text: str, about: str) -> Message:
    return Message(
        role,
        digest([role, text, about]),
        call_ids=tuple(about.split()) if role == "assistant" else (),
        answers=about if role == "tool" else None,
        reply=digest(text) if role == "assistant" else None,
    )


def write(journal: Journal) -> None:
    """Fill a journal with the runs."""
    Order().play(journal, FINISHED)
    for run_id in (CUT, DECIDED):
        with contextlib.suppress(Killed):
            Order("charge").play(journal, run_id)
    journal.resolve(DECIDED, "charge", Done(_VALUES["charge"]), by="ann", note="seen in the bank's list")
    Order().play(journal, DECIDED)


def forge(journal: Journal, content: bytes) -> None:
    """Let the library itself write hand-made content, so that nothing but the content can be wrong."""
    # The library reads what it is about to write, and would record such content as unreadable.
    decode = codec.decode
    believing = mock.patch.object(codec, "decode", lambda each: None if each == content else decode(each))
    with contextlib.suppress(GnlError), believing:
        Order(written=content).play(journal, FORGED)
