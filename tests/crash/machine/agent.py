"""An agent on the adapter surface whose bodies do what the machine says, and the world that they do it to."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from gnl_middleware import (
    Done,
    GnlError,
    InterruptedCall,
    JournalUnavailableError,
    LeaseLostError,
    NotDone,
    RetryLimitError,
    SideEffectRetryBlockedError,
    Unknown,
    UnserializableValueError,
    current_step,
    keyed,
    never,
    safe,
)
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Policy,
    Reply,
    ReplyCall,
    Session,
    ToolCall,
    digest,
    perform,
    perform_async,
    request_of,
)
from gnl_middleware.testing import observe_points

from .reference import LIMIT, Behaviour, Call, Result

_PATIENCE = 60
_STOPS: dict[type[GnlError], str] = {
    SideEffectRetryBlockedError: "blocked",
    RetryLimitError: "limit",
    LeaseLostError: "lease",
    JournalUnavailableError: "unavailable",
    UnserializableValueError: "unreadable",
}
Said = tuple[str, str, str]
"""A message: role, text, and for a tool's answer the call that it answers."""


class Died(BaseException):
    """The body is cut off: nothing that a program could handle."""


class World:
    """What happened, whoever did it.

    Attributes:
        ran: How often each body ran.
        performed: The results of the effects that happened.
        keys: The idempotency keys under which they did.
        asked: How often ``recover`` was asked.
        outage: Called where the database is to fail for good, with when it fails.
    """

    def __init__(self, outage: Callable[[str], None]) -> None:
        self.ran: Counter[str] = Counter()
        self.performed: dict[str, list[str]] = {}
        self.keys: dict[str, set[str]] = {}
        self.asked: Counter[str] = Counter()
        self.outage = outage

    def act(self, name: str, behaviour: Behaviour) -> Any:
        """Run a body to its end, which may be its death."""
        self.ran[name] += 1
        text = f"{name} ran {self.ran[name]}"
        if behaviour == "die before effect":
            raise Died
        if behaviour == "cancelled in body":
            return None
        if behaviour == "refuse":
            raise ConnectionRefusedError(text)
        self.performed.setdefault(name, []).append(text)
        self.keys.setdefault(name, set()).add(current_step().idempotency_key)
        if behaviour == "die after effect":
            raise Died
        if behaviour == "raise":
            raise TimeoutError(text)
        if behaviour in ("outage at outcome", "outage after outcome"):
            self.outage("before" if behaviour == "outage at outcome" else "after")
        return object() if behaviour == "unreadable" else text

    def policy(self, call: Call) -> Policy:
        """The policy of a tool."""
        options: dict[str, Any] = {"max_attempts": LIMIT, "not_performed": (ConnectionRefusedError,)}
        if call.recover:
            options["recover"] = lambda interrupted: self._recovered(call, interrupted)
        return {"safe": safe, "keyed": keyed, "never": never}[call.label](**options)

    def _recovered(self, call: Call, interrupted: InterruptedCall) -> Done | NotDone | Unknown:
        assert interrupted.tool == call.name
        self.asked[call.name] += 1
        if call.recover == "raises":
            raise ConnectionError("nobody answers")
        if call.recover == "unknown":
            return Unknown()
        done = self.performed.get(call.name)
        return Done(done[0]) if done else NotDone()


def tool_call(call: Call, policy: Policy, carrier: str) -> ToolCall:
    """A tool is called because a reply asks for it."""
    arguments = {"place": call.name}
    return ToolCall(
        name=call.name, policy=policy, arguments=arguments, call_id=call.name, carrier=digest(carrier)
    )


def model_call(history: Sequence[Said], calls: Sequence[Call]) -> ModelCall:
    """A model is asked; its reply asks for the calls."""
    asked = tuple(ReplyCall(call.name, call.name, digest({"place": call.name})) for call in calls)
    parts: list[Message] = []
    for role, text, about in history:
        called = tuple(about.split()) if role == "assistant" else ()
        answers = about if role == "tool" else None
        reply = digest(text) if role == "assistant" else None
        parts.append(Message(role, digest([role, text, about]), called, answers, reply))
    return ModelCall(
        name="model",
        policy=safe(max_attempts=LIMIT),
        request=request_of(tuple(history), tuple(parts), "setup"),
        messages=tuple([list(said) for said in history]),
        describe=lambda text: Reply(digest=digest(text), calls=asked),
    )


def call_now(
    session: Session, asked: Any, act: Callable[[], Any], behaviour: Behaviour, *, later: bool
) -> Result:
    """Make a call, synchronously or not; what came of it in the words of the reference."""
    try:
        if later or behaviour.startswith("cancelled"):
            return "value", asyncio.run(asyncio.wait_for(_call(session, asked, act, behaviour), _PATIENCE))
        return "value", perform(session, asked, act)
    except Died:
        return ("died",)
    except asyncio.CancelledError:
        return ("cancelled",)
    except GnlError as error:
        return told(error)
    except OSError as error:
        return "error", str(error)


def told(error: GnlError) -> Result:
    """The library's error in the words of the reference."""
    for kind, word in _STOPS.items():
        if isinstance(error, kind):
            return (word,)
    # A person's decision that a call failed comes back as RecordedError.
    return ("error", str(error)) if type(error).__name__ == "RecordedError" else (repr(error),)


async def _call(session: Session, asked: Any, act: Callable[[], Any], behaviour: Behaviour) -> Any:
    async def body() -> Any:
        if behaviour == "cancelled in body":
            act()
            call.cancel()
            await asyncio.Event().wait()
        return act()

    async def made() -> Any:
        return await perform_async(session, asked, body)

    call = asyncio.ensure_future(made())
    point = {"cancelled before body": "before_intent", "cancelled at outcome": "before_outcome"}.get(
        behaviour
    )
    observe_points(lambda reached, *_: call.cancel() if reached == point else None)
    try:
        return await call
    finally:
        observe_points(None)


class Abandoned:
    """A call on a thread that outlives whoever made it; its body ends when the test says how.

    Attributes:
        call: The step.
        session: The attempt that made it.
        token: The claim that it holds, as the reference numbers them.
    """

    def __init__(self, call: Call, session: Session, asked: Any, world: World, token: int) -> None:
        self.call, self.session, self.token = call, session, token
        self._began, self._ends, self._how = threading.Event(), threading.Event(), "die before effect"
        self._result: Result = ()
        self._world = world
        self._thread = threading.Thread(target=self._work, args=(asked,))
        self._thread.start()
        assert self._began.wait(_PATIENCE)

    def _work(self, asked: Any) -> None:
        def act() -> Any:
            self._began.set()
            self._ends.wait()
            return self._world.act(self.call.name, self._how)

        self._result = call_now(self.session, asked, act, "return", later=False)

    def end(self, how: Behaviour) -> Result:
        """Let the body end like this; gives what the abandoned caller got."""
        self._how = how
        self._ends.set()
        self._thread.join(_PATIENCE)
        assert not self._thread.is_alive(), "an abandoned thread hangs"
        return self._result

    def bury(self, unseen: World) -> None:
        """End the thread with its process: what it does is done to a world that nobody sees."""
        self._world = unseen
        self.end("die before effect")
