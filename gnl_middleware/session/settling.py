"""Settle interrupted side effects: ask ``recover``, else tell the model or block the run (DESIGN 3.1)."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from gnl_middleware import codec
from gnl_middleware.decision import is_interrupted
from gnl_middleware.errors import GnlError, ReplayMissError, SideEffectRetryBlockedError
from gnl_middleware.model import Done, InterruptedCall, NotDone, StoredStep, Unknown
from gnl_middleware.policy import Policy
from gnl_middleware.replay.payloads import decoded, outlined
from gnl_middleware.storage.protocol import Outcome, Verdict

from .claims import look_after_claims
from .context import current_steps
from .session import Session
from .waiting import Ask, Commit, Ended, Join, Pause, Steps

NOTE = (
    "This call of {tool} was interrupted: it began at an earlier attempt and left no result. It may or may not have "
    "happened. Check whether it did before you call it again or report it."
)
"""What the model is told with ``on_interrupted="tell_model"``."""

KEPT_BY_SERVER = "the server that keeps this conversation may have gone on with it"
"""Why a model call that was cut off blocks, where its label says that it must not be made twice."""


def check_online(session: Session, name: str, key: str) -> None:
    """Raise ReplayMissError where nothing may run live, a ``recover`` included."""
    if session.options.offline:
        raise ReplayMissError(run_id=session.run_id, step_key=key, name=name, journal=session.database.place)


def settle_all(session: Session, keys: Iterable[str] | None, *, besides: Collection[str] = ()) -> Steps[None]:
    """Settle the interrupted side effects among the keys, or all of the run's.

    Raises:
        SideEffectRetryBlockedError: Nothing can tell whether one of them happened.
    """
    session.take_over_what_ended()
    if keys is None:
        yield from _await_bodies_left_behind(session)
    yield from look_after_claims(session)
    with session.record.lock:
        waiting = session.record.interrupted(keys)
    for step in waiting:
        if step.key not in besides:
            yield from settle(session, step, session.policy_of(step))


def _await_bodies_left_behind(session: Session) -> Steps[None]:
    """Nothing new starts while a side effect of an earlier attempt may still happen."""
    around = {step.key for step in current_steps()}
    for key, ended in session.left_behind().items():
        if key not in around:
            yield Join(ended)
            session.take_over(key, ended)


def settle(session: Session, step: StoredStep, policy: Policy) -> Steps[None]:
    """Settle one interrupted side effect; calls that arrive meanwhile wait for the answer.

    Raises:
        SideEffectRetryBlockedError: Nothing can tell whether it happened.
    """
    record = session.record
    with record.lock:
        other = record.settling.get(step.key)
        # Whoever waited may hold a row that another call has settled, or that has been tried again, meanwhile.
        step = record.steps[step.key]
        open_still = is_interrupted(step.kind, "never", record.facts(step, policy))
        ended = Ended()
        if other is None:
            record.settling[step.key] = ended
    if other is not None:
        yield Join(other)
        return
    try:
        if open_still:
            yield from _settle(session, step, policy)
    finally:
        with record.lock:
            record.settling.pop(step.key, None)
        ended.set_result(None)


def _settle(session: Session, step: StoredStep, policy: Policy) -> Steps[None]:
    check_online(session, step.name, step.key)
    session.check_lease()
    if step.kind == "model":
        # Nothing can be asked, and no text can stand for the reply that the agent would go on from.
        yield from block(session, step, KEPT_BY_SERVER)
    answer, reason = yield from asked(session, step, policy)
    match answer:
        case Done(value):
            yield from _record(session, step, session.encode(value, policy.types), resolution="recovered")
        case NotDone():
            with session.record.lock:
                session.record.cleared[step.key] = step.token
        case Unknown():
            if tells(session, policy):
                note = NOTE.format(tool=step.name)
                yield from _record(session, step, codec.encode(note), resolution="told")
            else:
                yield from block(session, step, reason)
        case None:
            yield from block(session, step, reason)


def tells(session: Session, policy: Policy) -> bool:
    """Whether the model is told of a call that nothing can settle, in place of blocking."""
    return (policy.on_interrupted or session.options.on_interrupted) == "tell_model"


def asked(
    session: Session, step: StoredStep, policy: Policy
) -> Steps[tuple[Done | NotDone | Unknown | None, str]]:
    """What ``recover`` answers and why that is not enough; None where it failed itself, which always blocks."""
    if policy.recover is None:
        return Unknown(), "the tool has no recover="
    remaining = step.started_at + policy.recover_after - session.clock.time()
    if remaining > 0:
        # A clock that is behind the other worker's must not make a day of it.
        yield Pause(min(remaining, policy.recover_after))
    try:
        answer = yield Ask(policy.recover, interrupted_call(step, policy.types))
        if isinstance(answer, Done):
            session.encode(answer.value, policy.types)
    except Exception as error:  # noqa: BLE001 - a hook that fails has not answered
        return None, f"recover raised {type(error).__qualname__}: {error}"
    if not isinstance(answer, Done | NotDone | Unknown):
        return None, f"recover returned {answer!r}, which is none of Done(value), NotDone() and Unknown()"
    return answer, "recover answered Unknown()"


def interrupted_call(step: StoredStep, types: tuple[type, ...] = ()) -> InterruptedCall:
    """The step as ``recover`` sees it."""
    failure = step.failure
    with codec.declared(types):
        arguments = decoded(step, step.arguments)
    return InterruptedCall(
        run_id=step.run_id,
        step_key=step.key,
        tool=step.name,
        arguments=arguments,
        idempotency_key=step.idempotency_key,
        started_at=step.started_at,
        attempts=step.tries,
        error=None if failure is None else f"{failure.type_name}: {failure.text}",
    )


def _record(session: Session, step: StoredStep, value: bytes, *, resolution: str) -> Steps[None]:
    outcome = Outcome(
        run_id=step.run_id,
        key=step.key,
        token=step.token,
        status="done",
        finished_at=session.clock.time(),
        ended_tick=session.record.tick(),
        value=value,
        value_hash=codec.content_hash(value),
        raw=True,
        resolution=resolution,
        # What is settled stays settled: the try's own outcome, if its worker wakes up later, is only news.
        new_token=session.new_token(),
        durable=True,
    )
    session.database.hand_over(outcome)
    verdict = yield Commit(outcome)
    if verdict is not Verdict.WON:
        session.refresh(step.key)
        return
    settled = replace(
        step,
        token=outcome.new_token or step.token,
        status="done",
        finished_at=outcome.finished_at,
        ended=outcome.ended_tick,
        value=value,
        value_hash=outcome.value_hash,
        failure=None,
        raw=True,
        resolution=resolution,
        blocked=None,
    )
    with session.record.lock:
        session.record.put(settled)


def block(session: Session, step: StoredStep, reason: str) -> Steps[None]:
    """Store that the step waits for a person, and stop.

    Raises:
        SideEffectRetryBlockedError: Always.
    """
    reason = session.database.protection.redacted_text(reason)
    stored = reason.encode("utf-8", "backslashreplace").decode()
    try:
        yield Commit(session.database.block_step(step, stored))
    except GnlError as error:
        raise blocked_error(session, step, reason) from error
    raise blocked_error(session, step, reason)


def blocked_error(session: Session, step: StoredStep, reason: str) -> SideEffectRetryBlockedError:
    """The error that says what may have happened and how to decide it."""
    return SideEffectRetryBlockedError(
        run_id=step.run_id,
        step_key=step.key,
        tool=step.name,
        arguments=outlined(step, step.arguments),
        idempotency_key=step.idempotency_key,
        started_at=step.started_at,
        kind=step.kind,
        reason=reason,
        journal=session.database.place,
    )
