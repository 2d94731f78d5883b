"""Effects that may happen once (DESIGN 3.4): a call whose effect another step owns shares its outcome, or waits for it.

A call that waits has performed nothing itself. What is asked, proven and decided is always the owner's try, and whoever
takes its place takes exactly that try.
"""

from dataclasses import replace

from gnl_middleware import codec
from gnl_middleware.errors import EffectCycleError
from gnl_middleware.lease import is_dead
from gnl_middleware.model import Done, NotDone, StoredStep
from gnl_middleware.policy import stricter
from gnl_middleware.storage.protocol import Intent, Outcome, Owner, Predecessor, Verdict

from .claims import look_around, wait_for_claim
from .context import steps_around
from .ending import after
from .recorded import recorded_value
from .running import all_running_here
from .session import Session
from .settling import asked, block, settle, tells
from .trying import Attempt, claimed, token_of
from .waiting import Commit, Join, Pause, Steps

_POLL = 0.05


def follow_owner(session: Session, attempt: Attempt, owner: Owner) -> Steps[Predecessor | None]:
    """What to do about an effect that another step owns.

    Returns:
        Whose place may be taken, since it has not performed the effect and never will; None where the call must be
        decided anew: the owner's outcome has been recorded for it, or something has changed meanwhile.

    Raises:
        SideEffectRetryBlockedError: The owner's effect may have happened, and nothing can tell.
        UnserializableValueError: The owner's effect has happened, and its value could not be journalled.
        EffectCycleError: The call is part of the call that owns the effect.
    """
    if any((step.run_id, step.key) == (owner.run_id, owner.key) for step in steps_around()):
        raise EffectCycleError(run_id=owner.run_id, step_key=owner.key, name=attempt.call.name)
    if owner.run_id == session.run_id:
        return (yield from _follow_here(session, attempt, owner))
    return (yield from _follow_elsewhere(session, attempt, owner))


def follow_failure(session: Session, attempt: Attempt) -> Steps[bool]:
    """Whether an equal call that failed, and may have happened all the same, has decided this one.

    Raises:
        SideEffectRetryBlockedError: Nothing can tell whether it happened.
    """
    with session.record.lock:
        mine = session.record.steps.get(attempt.placement.key)
        failed = session.record.failed_equal(
            attempt.placement.key, attempt.call.name, attempt.placement.fingerprint
        )
    for step in failed:
        if not _is_free(session, attempt, step) and not (mine is not None and mine.resolution == "not_done"):
            return (yield from _ask(session, attempt, step)) is None
    return False


def _follow_here(session: Session, attempt: Attempt, owner: Owner) -> Steps[Predecessor | None]:
    with session.record.lock:
        step = session.record.steps.get(owner.key)
        running = session.record.running.get(owner.key)
        cleared = step is not None and session.record.is_cleared(step)
    if running is not None:
        yield Join(running)
        session.take_over(owner.key, running)
        return None
    if not session.locked and (step is None or step.claimed):
        return (yield from _follow_worker(session, step))
    if step is None:
        # What this attempt has neither loaded nor written, another holder of the run has written.
        session.lease.lost = session.lease.lost or "fence"
        session.check_lease()
        return None
    if step.status == "done":
        return (yield from _share(session, attempt, step))
    return (yield from _follow_cut_off(session, attempt, step, cleared=cleared))


def _follow_cut_off(
    session: Session, attempt: Attempt, step: StoredStep, *, cleared: bool
) -> Steps[Predecessor | None]:
    if cleared or _is_free(session, attempt, step):
        return Predecessor(Owner(step.run_id, step.key), step.token)
    if step.status == "started":
        # The owner's try has ended without an outcome: settled, it is done, free, or blocks both.
        yield from settle(session, step, stricter(attempt.policy, step.policy))
        return None
    return (yield from _ask(session, attempt, step))


def _follow_worker(session: Session, step: StoredStep | None) -> Steps[None]:
    """Another worker of the same run has written the owner's try, or is at it now."""
    yield from look_around(session) if step is None else wait_for_claim(session, step)


def _follow_elsewhere(session: Session, attempt: Attempt, owner: Owner) -> Steps[Predecessor | None]:
    """The owner's run is another one: its outcome is read, its death is noticed, but its record is not ours to write."""
    running = all_running_here()
    run = session.database.run(owner.run_id, session.clock.time())
    step = session.database.step(owner.run_id, owner.key, session.clock.time())
    if step is None:
        return (yield from _follow_erased(session, attempt, owner))
    if step.status == "done":
        return (yield from _share(session, attempt, step))
    if step.token in running:
        # Whoever holds the run: an attempt that was left does not hold it, and its body may have the effect all the same.
        yield Join(running[step.token])
        return None
    held = run is not None and run.leased and not is_dead(run.holder)
    if run is not None and not run.locked:
        held = step.claimed
    # A newer fence than the run's: its next attempt has begun between the two reads.
    if step.status == "started" and (held or run is None or step.fence > run.fence):
        yield Pause(_POLL)
        return None
    if _is_free(session, attempt, step):
        return _predecessor(step)
    return (yield from _ask(session, attempt, step))


def _follow_erased(session: Session, attempt: Attempt, owner: Owner) -> Steps[Predecessor | None]:
    """The key outlives the record of the run that owns it: what that run did, only a person may know."""
    waiting = yield from listed(session, attempt)
    if waiting.resolution == "not_done":
        return Predecessor(owner)
    yield from block(session, waiting, f"run {owner.run_id}, which owns the same effect, was erased")
    return None


def _predecessor(step: StoredStep) -> Predecessor:
    cut_off = step.fence if step.status == "started" else None
    return Predecessor(Owner(step.run_id, step.key), step.token, cut_off)


def _is_free(session: Session, attempt: Attempt, step: StoredStep) -> bool:
    """Whether the owner has certainly not performed the effect and never will, or whether it may happen twice anyway."""
    with session.record.lock:
        mine = session.record.steps.get(attempt.placement.key)
        proven = session.record.facts(step, attempt.policy).not_performed
    if step.status in ("withdrawn", "paused") or step.resolution == "not_done" or proven:
        return True
    if stricter(attempt.policy, step.policy).label == "safe":
        return True
    # A person who clears the call that waits has looked at the world as it was then, and so has cleared the owner's try.
    looked_at = mine.finished_at if mine is not None and mine.resolution == "not_done" else None
    return looked_at is not None and step.started_at <= looked_at


def _ask(session: Session, attempt: Attempt, step: StoredStep) -> Steps[Predecessor | None]:
    answer, reason = yield from asked(session, step, attempt.policy)
    if isinstance(answer, NotDone):
        return _predecessor(step)
    if isinstance(answer, Done):
        yield from _record(session, attempt, session.encode(answer.value, attempt.policy.types), raw=True)
        return None
    if step.status == "started":
        # Listed as well, so that a person can decide the owner; a try that is no longer the same stays as it is.
        yield Commit(session.database.block_step(step, reason))
    waiting = yield from listed(session, attempt)
    key = step.idempotency_key
    whose = f"step {step.key} of run {step.run_id} owns the same effect, with idempotency key {key}"
    yield from block(session, waiting, f"{whose}, and {reason}")
    return None


def _share(session: Session, attempt: Attempt, step: StoredStep) -> Steps[Predecessor | None]:
    if step.resolution == "told" and not tells(session, attempt.policy):
        # What a model was told in place of an outcome settles nothing for those who would rather stop.
        return (yield from _ask(session, attempt, step))
    value = recorded_value(step, attempt.policy.types)
    shared = value if step.raw else attempt.call.adopt(value)
    with codec.declared(attempt.policy.types):
        encoded = codec.encode(shared)
    yield from _record(session, attempt, encoded, raw=step.raw)
    return None


def _record(session: Session, attempt: Attempt, value: bytes, *, raw: bool) -> Steps[None]:
    with session.record.lock:
        before = session.record.steps.get(attempt.placement.key)
        step = _untried(session, attempt, before)
        tick = session.record.tick()
    outcome = Outcome(
        run_id=step.run_id,
        key=step.key,
        token=step.token,
        status="done",
        finished_at=session.clock.time(),
        ended_tick=tick,
        value=value,
        value_hash=codec.content_hash(value),
        raw=raw,
        resolution="shared",
    )
    verdict = yield Commit(session.database.record_shared(Intent(step, token_of(before)), outcome))
    if verdict is Verdict.WON:
        with session.record.lock:
            session.record.put(after(step, outcome))
    else:
        session.lease.lost = "fence" if verdict is Verdict.STALE else session.lease.lost
        session.check_lease()
        session.refresh(step.key)


def listed(session: Session, attempt: Attempt) -> Steps[StoredStep]:
    """Store the call that waits, so that it is listed as blocked and a person can decide it."""
    with session.record.lock:
        before = session.record.steps.get(attempt.placement.key)
        if before is not None and before.status in ("started", "failed"):
            return before
        step = _untried(session, attempt, before)
        session.record.put(step)
    intent = Intent(step, token_of(before), durable=True)
    session.database.hand_over(intent)
    yield Commit(intent)
    return step


def _untried(session: Session, attempt: Attempt, before: StoredStep | None) -> StoredStep:
    """The row of a call that waits or shares: no try of its own. The caller holds the record's lock."""
    # A try that was withdrawn, or paused at an approval, was not one.
    tries = before.tries - (before.status in ("withdrawn", "paused")) if before is not None else 0
    return replace(claimed(session, attempt, before), tries=tries)
