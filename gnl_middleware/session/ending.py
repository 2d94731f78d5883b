"""A try and how it ends: with a value, with an error, cut off, or taken back."""

import contextlib
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from gnl_middleware import codec
from gnl_middleware.errors import GnlError, JournalError, RecordedError, UnserializableValueError
from gnl_middleware.model import RecordedFailure, StoredStatus, StoredStep
from gnl_middleware.replay.call import AnyCall, Ending, ModelCall, Reply
from gnl_middleware.storage.protocol import Intent, Outcome, Verdict

from .failures import rebuilt, recorded, redacted
from .points import reach
from .running import note_ended
from .session import CurrentStep, Session
from .waiting import Commit, Steps


@dataclass(frozen=True, slots=True)
class Live:
    """A try is open: its body may run now, once.

    Attributes:
        step: The row of its intent.
        ended: Resolved when the try is over; calls that came meanwhile wait for it.
        claimed_at: Monotonic time before its intent was written.
    """

    step: StoredStep
    call: AnyCall
    intent: Intent
    ended: "Future[None]"
    claimed_at: float = 0.0

    @property
    def current(self) -> CurrentStep:
        """What the body sees as ``current_step()``."""
        return CurrentStep(self.step.run_id, self.step.key, self.step.name, self.step.tries, self.step.origin)


def start(session: Session, live: Live) -> None:
    """Note that the body begins now."""
    with session.record.lock:
        session.spared.ran += 1
    if session.watcher is not None:
        session.watcher.step_began(live.step)
    try:
        reach("before_body", live.step.number, live.step.name)
    except BaseException:
        abandon(session, live)
        raise


def succeed(session: Session, live: Live, value: Any, *, observed: bool = False) -> Steps[Any]:
    """See ``_succeed``; whatever cuts it off, nobody waits for the try for ever.

    Args:
        session: The open run.
        live: The try.
        value: What the body returned.
        observed: The program has this value already, and goes on with it whatever is recorded.
    """
    try:
        return (yield from _succeed(session, live, value, observed=observed))
    except BaseException:
        abandon(session, live)
        raise
    finally:
        release(session, live)


def _succeed(session: Session, live: Live, value: Any, *, observed: bool) -> Steps[Any]:
    """Record what the body returned; gives the decoded copy, so that live and replay are equal.

    Raises:
        UnserializableValueError: The value cannot be journalled; the step is done all the same.
        GnlError: The body swallowed a control error of ours, or the outcome could not be written.
    """
    step, call = live.step, live.call
    reach("after_body", step.number, step.name)
    _check_unspoiled(session, live)
    try:
        with codec.declared(call.policy.types):
            encoded = session.redacted(call.encode(value))
            given = codec.decode(encoded)  # before it is recorded: what cannot be read back is no record
        reply = Reply(digest="")
        if isinstance(call, ModelCall):
            # A reply is known by what will stand in later requests: what the program gets of it.
            changed = session.redacts and not observed
            reply = call.describe_recorded(given) if changed else call.describe(value)
    except Exception as error:  # noqa: BLE001 - the code of a registered type may fail in any way; the body has run
        unreadable = yield from _write_unreadable(session, live, _as_unreadable(error, value))
        unreadable.__cause__ = error
        session.stop(unreadable, call)
    outcome = _outcome(session, live, "done", encoded)
    outcome.reply_digest, outcome.calls, outcome.tokens = reply.digest or None, reply.calls, reply.tokens
    yield from _record_outcome(session, live, outcome)
    return call.decode(given)


def _as_unreadable(error: Exception, value: Any) -> UnserializableValueError:
    if isinstance(error, UnserializableValueError):
        return error
    return UnserializableValueError(path="$", type_name=type(value).__qualname__)


def _write_unreadable(
    session: Session, live: Live, error: UnserializableValueError
) -> Steps[UnserializableValueError]:
    """The effect happened, so the step is done; only its value is lost, now and on every replay."""
    outcome = _outcome(session, live, "done", None)
    outcome.failure = RecordedFailure(error.type_name, error.path)
    yield from _record_outcome(session, live, outcome)
    return UnserializableValueError(path=error.path, type_name=error.type_name, step_key=live.step.key)


def fail(session: Session, live: Live, error: Exception) -> Steps[Exception]:
    """See ``_fail``; whatever cuts it off, nobody waits for the try for ever."""
    if session.watcher is not None:
        session.watcher.step_failed(live.step.key, error)
    try:
        return (yield from _fail(session, live, error))
    except BaseException:
        abandon(session, live)
        raise
    finally:
        release(session, live)


def _fail(session: Session, live: Live, error: Exception) -> Steps[Exception]:
    """Record how the body failed; gives the error to raise, since no generator may raise StopIteration itself.

    A model that failed leaves no outcome: it is asked again. A pause at an approval leaves none either.

    Raises:
        GnlError: The body let a control error of ours out, or made another error of it.
    """
    call, step = live.call, live.step
    _check_unspoiled(session, live)
    if isinstance(error, GnlError) and not isinstance(error, RecordedError):
        _stop(session, live, error)
    ending = call.ending(error)
    if ending == "outcome":
        yield from succeed(session, live, error)
    elif (status := _unrecorded(call, ending)) is not None:
        _end_unrecorded(session, live, status)
    else:
        reach("after_body", step.number, step.name)
        outcome = _outcome(session, live, "failed", None)
        outcome.failure = failure = recorded(error)
        if session.redacts:
            outcome.failure = redacted(failure, session.database.protection)
        outcome.resolution = "not_performed" if isinstance(error, call.policy.not_performed) else None
        yield from _record_outcome(session, live, outcome)
        if outcome.failure != failure:
            # Live as on replay; the class is at hand here, whether or not the policy lists it.
            return rebuilt(after(step, outcome), (*call.policy.errors, type(error)))
    return error


def _check_unspoiled(session: Session, live: Live) -> None:
    """Raise the latch where the body swallowed it: how the body ended means nothing, and nobody may see it."""
    if session.latch is not None and live.step.key in session.spoiled:
        abandon(session, live)
        session.stop(session.latch, live.call)


def _stop(session: Session, live: Live, error: GnlError) -> NoReturn:
    """Stop the run from inside a try: whoever waits for the try must find the latch set."""
    try:
        session.stop(error, live.call)
    finally:
        abandon(session, live)


def _unrecorded(call: AnyCall, ending: Ending) -> StoredStatus | None:
    if ending == "pause":
        return "paused"
    return "withdrawn" if call.kind == "model" else None


def abandon(session: Session, live: Live) -> None:
    """End a try whose body was cut off: an intent without outcome, which a later call settles."""
    if live.call.kind == "model":
        session.record.take_back(live.step.key, "model")
    with session.lock:
        claimed = live.step.token in session.claims
        session.claims.discard(live.step.token)
    if claimed:
        # Whoever waits for the claim need not wait until it runs out. (A child of the process has claimed nothing.)
        with contextlib.suppress(JournalError):  # else it runs out
            session.database.release_claim(live.step)
    release(session, live)


def withdraw(session: Session, live: Live) -> None:
    """Take a try back whose body never began."""
    try:
        _end_unrecorded(session, live, "withdrawn")
    except JournalError:
        # Then the intent stands, or was never written: the next attempt finds out.
        release(session, live)


def release(session: Session, live: Live) -> None:
    """Let those go on who wait for the try."""
    with session.record.lock:
        session.record.running.pop(live.step.key, None)
        note_ended(live.step.token)
    with session.lock:
        session.claims.discard(live.step.token)
    if session.watcher is not None:
        session.watcher.step_ended(live.step.key, session.record.steps.get(live.step.key))
    if not live.ended.done():
        live.ended.set_result(None)


def _end_unrecorded(session: Session, live: Live, status: StoredStatus) -> None:
    outcome = _outcome(session, live, status, None)
    session.database.submit(outcome)
    with session.record.lock:
        session.record.put(after(live.step, outcome))
    with session.lock:
        session.claims.discard(live.step.token)
    abandon(session, live)


def _outcome(session: Session, live: Live, status: StoredStatus, value: bytes | None) -> Outcome:
    step = live.step
    with session.record.lock:
        tick = session.record.tick()
    return Outcome(
        run_id=step.run_id,
        key=step.key,
        token=step.token,
        status=status,
        finished_at=session.clock.time(),
        ended_tick=tick,
        value=value,
        value_hash=None if value is None else codec.content_hash(value),
    )


def _record_outcome(session: Session, live: Live, outcome: Outcome) -> Steps[None]:
    step = live.step
    reach("before_outcome", step.number, step.name)
    try:
        verdict = yield from _commit_outcome(session, live, outcome)
    except GnlError as error:
        _stop(session, live, error)
    except BaseException:
        abandon(session, live)
        raise
    if verdict is Verdict.WON:
        session.wary = False
        with session.record.lock:
            session.record.put(after(step, outcome))
            if outcome.status == "failed":
                session.record.failed(step)
            if step.kind == "model":
                session.record.give(step)
    else:
        # Someone decided or claimed the step meanwhile; what happened here is kept as late news.
        session.lease.lost = session.lease.lost or ("fence" if session.locked else "claim")
    reach("after_outcome", step.number, step.name)
    release(session, live)


def _commit_outcome(session: Session, live: Live, outcome: Outcome) -> Steps[Verdict]:
    session.database.hand_over(outcome)
    verdict = yield Commit(outcome)
    # An intent that nobody waited for may have failed: then there is no row that the outcome could complete.
    if verdict is not Verdict.WON and (error := live.intent.ended.exception()) is not None:
        raise error
    return verdict


def after(step: StoredStep, outcome: Outcome) -> StoredStep:
    """The step with an outcome."""
    return replace(
        step,
        status=outcome.status,
        finished_at=outcome.finished_at,
        ended=outcome.ended_tick,
        value=outcome.value,
        value_hash=outcome.value_hash,
        failure=outcome.failure,
        raw=outcome.raw,
        resolution=outcome.resolution,
        reply_digest=outcome.reply_digest,
        calls=outcome.calls,
        tokens=outcome.tokens,
        blocked=None,
    )
