"""Open a try: nothing may stand in its way, its intent is written, and then its body may run, once."""

from dataclasses import dataclass, replace

from gnl_middleware import codec
from gnl_middleware.decision import Do, decide
from gnl_middleware.errors import LeaseLostError, RetryLimitError
from gnl_middleware.identity import Where, inner_scope
from gnl_middleware.model import StoredStep
from gnl_middleware.policy import Policy
from gnl_middleware.replay.call import AnyCall, FunctionCall, ModelCall, ToolCall
from gnl_middleware.replay.divergence import left_record_error
from gnl_middleware.replay.matching import Placement, answered_steps
from gnl_middleware.storage.protocol import Effect, Intent, Owner, Predecessor, Source, Verdict

from .ending import Live, abandon, release, withdraw
from .points import reach
from .running import note_running
from .session import Session
from .settling import check_online, settle_all
from .waiting import Commit, Ended, Steps


@dataclass(frozen=True, slots=True)
class Attempt:
    """A call that is about to run.

    Attributes:
        where: Where it happens.
        policy: Its policy; of the labels before and after a change, the stricter one.
        instead_of: Where the effect may happen once, whose place it takes.
    """

    call: AnyCall
    placement: Placement
    policy: Policy
    where: Where
    instead_of: Predecessor | None = None


def open_try(session: Session, attempt: Attempt) -> Steps[Live | Owner | None]:
    """Write the intent; None where the record changed meanwhile and the call must be decided anew.

    Where the effect may happen once and another step owns it, nothing is written and the owner is returned.

    Raises:
        SideEffectRetryBlockedError: Another side effect may have happened, and nothing can tell.
        DivergenceError: The run has left its record.
        RetryLimitError: The step used up its attempts.
        LeaseLostError: The lease is not certainly ours.
        JournalUnavailableError: The intent cannot be written: the body does not run.
    """
    call, placement = attempt.call, attempt.placement
    check_online(session, call.name, placement.key)
    yield from check_way_clear(session, attempt)
    number = placement.step.number if placement.step else session.record.upcoming_number()
    reach("before_intent", number, call.name)
    session.check_lease()
    with session.record.lock:
        before = session.record.steps.get(placement.key)
        if (
            decide(call.kind, attempt.policy.label, session.record.facts(before, attempt.policy))
            is not Do.RUN
        ):
            return None
        live = _claim(session, attempt, before)
    verdict = yield from _commit_intent(session, live, before)
    if isinstance(verdict, Owner):
        return verdict
    if verdict is Verdict.TAKEN:
        session.refresh(placement.key)
        return None
    if verdict is Verdict.STALE:
        session.lease.lost = "fence"
    try:
        reach("after_intent", live.step.number, call.name)
        _check_before_body(session, live)
    except BaseException:
        abandon(session, live)
        raise
    return live


def check_way_clear(session: Session, attempt: Attempt) -> Steps[None]:
    """Settle what may have happened before anything goes on, and see that the run has not left its record.

    Raises:
        SideEffectRetryBlockedError: Another side effect may have happened, and nothing can tell.
        DivergenceError: The run has left its record.
    """
    call, placement = attempt.call, attempt.placement
    if call.kind == "value":
        return
    model, effect = isinstance(call, ModelCall), attempt.policy.label != "safe"
    if model or effect:
        yield from settle_all(
            session, None, besides={placement.key, *_siblings_in_dispute(session, placement)}
        )
    without_reply = isinstance(call, FunctionCall) or (isinstance(call, ToolCall) and placement.reply is None)
    new = placement.step is None or placement.step.status == "withdrawn"
    if model or (without_reply and new and (effect or session.strict)):
        with session.record.lock, codec.declared(attempt.policy.types):
            error = left_record_error(session.record, attempt.where, call, strict=session.strict)
        if error is not None:
            raise error


def _siblings_in_dispute(session: Session, placement: Placement) -> list[str]:
    """Calls of the same reply that only their own tools can settle: they come now, too, and began side by side with this one."""
    record = session.record
    with record.lock:
        siblings = record.calls_of[placement.reply] if placement.reply is not None else ()
        return [key for key in siblings if session.is_disputed(record.steps[key])]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked, as its columns."""

    arguments: bytes
    fingerprint: str
    base: str | None = None
    shape: str | None = None
    setups: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


def claimed(session: Session, attempt: Attempt, before: StoredStep | None) -> StoredStep:
    """The row of a new try. The caller holds the record's lock."""
    call, placement, record = attempt.call, attempt.placement, session.record
    asked, label = _asked(session, attempt, before), attempt.policy.label
    if call.kind != "tool" and label == "safe":
        label = ""  # models and values have no label, but a model whose server keeps the conversation
    return StoredStep(
        run_id=session.run_id,
        key=placement.key,
        number=before.number if before else record.next_number(),
        scope=before.scope if before else attempt.where.scope,
        kind=call.kind,
        name=before.name if before else call.name,
        policy=label,
        status="started",
        token=session.new_token(),
        fence=session.lease.fence,
        tries=_tries(session, attempt, before),
        attempt=session.attempt,
        started_at=session.clock.time(),
        begun=record.tick(),
        arguments=asked.arguments,
        arguments_hash=codec.content_hash(asked.arguments),
        fingerprint=asked.fingerprint,
        reply=before.reply if before else placement.reply,
        position=before.position if before else placement.position,
        call_id=before.call_id if before else call.call_id if isinstance(call, ToolCall) else None,
        rounds=attempt.where.rounds,
        shape=asked.shape,
        base=asked.base,
        setups=asked.setups,
        answered=asked.answered,
        side_effect=before.side_effect if before else label in ("never", "keyed"),
        holder=None if session.locked else session.holder.to_text(),
        origin=before.origin if before else None,
    )


def _claim(session: Session, attempt: Attempt, before: StoredStep | None) -> Live:
    """Make the try the step's, in memory; whoever comes now waits for it."""
    step, effect = claimed(session, attempt, before), effect_of(session, attempt)
    intent = Intent(
        step,
        token_of(before),
        effect=effect,
        instead_of=attempt.instead_of,
        durable=step.policy in ("never", "keyed") or effect is not None,
        setup=_new_setup(session, attempt.call),
        claim=None if session.locked else session.lease.length,
        sources=_sources(session, step),
    )
    live = Live(step, attempt.call, intent, Ended(), session.clock.monotonic())
    session.record.running[step.key] = live.ended
    note_running(step.token, live.ended)
    session.record.failed_now.discard(step.key)
    if before is not None and step.kind != "model":
        session.record.reenter(inner_scope(step.key))
    session.record.put(step)
    return live


def _sources(session: Session, step: StoredStep) -> tuple[Source, ...]:
    """What a model is told of that stands in the journal already: the values of the tool steps whose answers it gets now."""
    if step.kind != "model":
        return ()
    found = [session.record.steps[key] for key in step.answered if key in session.record.steps]
    return tuple(
        Source(told.value_hash, told.value)
        for told in found
        if told.value is not None and told.value_hash is not None and told.payloads is None
    )


def _new_setup(session: Session, call: AnyCall) -> bytes | None:
    """What a model is asked with, where the journal does not keep it yet: so that a difference can be shown."""
    if not isinstance(call, ModelCall) or not session.record.setups.is_new(call.request.setup):
        return None
    if call.setup is None:
        return None
    setup = codec.canonical(call.setup)
    # It is found by its digest: what would have to be taken out of it is not kept at all.
    return setup if session.redacted(setup) == setup else None


def token_of(before: StoredStep | None) -> str:
    """The token that a new try replaces; empty where nothing is stored."""
    return before.token if before else ""


def effect_of(session: Session, attempt: Attempt) -> Effect | None:
    """The piece of business that a call is, where its policy says that it may happen once."""
    once_per, call = attempt.policy.once_per, attempt.call
    if once_per is None or isinstance(call, ModelCall):
        return None
    business = call.arguments if once_per == "args" else once_per(call.arguments)
    window_run = session.run_id if attempt.policy.window == "run" else ""
    with codec.declared(attempt.policy.types):
        return Effect(window_run, call.name, codec.digest(business))


def _tries(session: Session, attempt: Attempt, before: StoredStep | None) -> int:
    if before is None:
        return 1
    # A try that was withdrawn, or paused at an approval, was not one.
    tries = before.tries + (before.status in ("started", "failed"))
    # Whoever says that it has not happened wants it to happen, however often it was tried.
    if tries > attempt.policy.max_attempts and before.resolution != "not_done":
        raise RetryLimitError(
            run_id=session.run_id,
            step_key=before.key,
            name=attempt.call.name,
            attempts=before.tries,
            journal=session.database.place,
        )
    return tries


def _asked(session: Session, attempt: Attempt, before: StoredStep | None) -> _Asked:
    """A request as a chain over the conversation: only its new messages are stored, so a journal grows linearly."""
    call, record = attempt.call, session.record
    gone_on_from = record.gone_on_from(attempt.where).union(before.answered if before else ())
    if not isinstance(call, ModelCall):
        answered = tuple(sorted(gone_on_from - {attempt.placement.key}))
        arguments = session.encode(call.arguments, attempt.policy.types)
        return _Asked(arguments, attempt.placement.fingerprint, answered=answered)
    request = call.request
    known = request.longest_known(record.conversations(before.key if before else ""))
    answered = answered_steps(record, attempt.where.scope, request)
    return _Asked(
        arguments=session.encode(list(call.messages[known:])),
        fingerprint=request.fingerprint,
        base=request.chain[known] if known else None,
        shape=request.shape(record.our_replies(attempt.where.scope)),
        setups=setups_of(call, before),
        answered=tuple(sorted(answered | gone_on_from)),
    )


def setups_of(call: AnyCall, before: StoredStep | None) -> tuple[str, ...]:
    """Every setup that was tried for a model step: any of them gets the reply of the one that answered."""
    setups = before.setups if before is not None else ()
    if not isinstance(call, ModelCall) or call.request.setup in setups:
        return setups
    return (*setups, call.request.setup)


def _commit_intent(session: Session, live: Live, before: StoredStep | None) -> Steps[Verdict | Owner]:
    """The intent of a side effect is awaited; that of a model or a ``safe`` step only tells, but after a death counts.

    Without a lock each intent is a claim, and whether it was won must be known before the body.
    """
    try:
        if live.intent.durable or session.wary or not session.locked:
            session.database.hand_over(live.intent)
            verdict = yield Commit(live.intent)
        else:
            session.database.tell(live.intent)
            verdict = Verdict.WON
    except BaseException:
        withdraw(session, live)
        raise
    if verdict is Verdict.TAKEN or isinstance(verdict, Owner):
        _forget(session, live, before)
    elif not session.locked:
        with session.lock:
            session.claims.add(live.step.token)
    return verdict


def _forget(session: Session, live: Live, before: StoredStep | None) -> None:
    """Take back, in memory, a try that was never written."""
    with session.record.lock:
        session.record.put(before or replace(live.step, status="withdrawn"))
    release(session, live)


def _check_before_body(session: Session, live: Live) -> None:
    try:
        if not session.locked and session.clock.monotonic() >= live.claimed_at + session.lease.length:
            session.lease.lost = session.lease.lost or "deadline"
        session.check_lease()
    except LeaseLostError:
        withdraw(session, live)
        raise
