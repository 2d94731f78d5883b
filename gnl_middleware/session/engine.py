"""How one call goes through the journal: placed, checked, decided, and then served or run.

``begin`` answers a call from the record or opens a try (``trying``); ``ending`` completes the try. All of them are
generators of commands, so that sync and async differ only in how they wait.
"""

import logging
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from gnl_middleware import codec
from gnl_middleware.decision import Do, decide
from gnl_middleware.errors import GnlError, JournalCorruptError
from gnl_middleware.identity import Where
from gnl_middleware.model import StoredStep
from gnl_middleware.policy import Policy, stricter
from gnl_middleware.replay.call import AnyCall, Call, ModelCall
from gnl_middleware.replay.divergence import drift_error, drift_warning
from gnl_middleware.replay.matching import Placement, place
from gnl_middleware.replay.news import is_news
from gnl_middleware.replay.payloads import where
from gnl_middleware.storage.protocol import Owner

from .claims import check_no_cycle, wait_for_claim
from .context import current_steps, current_where
from .ending import Live
from .failures import rebuilt
from .once import follow_failure, follow_owner
from .recorded import recorded_value
from .session import Session
from .settling import check_online, settle, settle_all
from .trying import Attempt, open_try, setups_of
from .waiting import Join, Steps
from .withholding import is_withheld, withhold

_logger = logging.getLogger("gnl_middleware")


@dataclass(frozen=True, slots=True)
class Served:
    """The call is answered from the record, by this step: with a value, or with an error that the agent handled."""

    key: str
    value: Any = None
    error: Exception | None = None

    def given(self) -> Any:
        """The value; or the error, raised."""
        if self.error is not None:
            raise self.error
        return self.value


def begin(session: Session, call: AnyCall) -> Steps[Served | Live]:
    """Answer a call from the record, or open a try for it.

    Raises:
        GnlError: The latch is set, the call may not run, or the journal cannot record it.
    """
    session.check_latch(call)
    try:
        return (yield from _begin(session, call))
    except GnlError as error:
        session.stop(error, call)


def _begin(session: Session, call: AnyCall) -> Steps[Served | Live]:
    where = current_where(call.places)
    if session.rounds_ahead and not current_steps():
        where = where.earlier(-session.rounds_ahead)
    with session.record.lock, codec.declared(call.policy.types):
        placement = place(session.record, where, call)
        error = drift_error(session.record, placement, call, session.options.strictness)
        if error is not None:
            raise error
        # Until it runs or is answered, an equal call that arrives is another one, not this one made again.
        session.record.arriving[placement.key] += 1
    try:
        return (yield from _decided(session, call, placement, where))
    except BaseException:
        session.gone(placement.key, call)
        raise
    finally:
        with session.record.lock:
            session.record.arriving[placement.key] -= 1


def _decided(session: Session, call: AnyCall, placement: Placement, where: Where) -> Steps[Served | Live]:
    instead_of = None
    if call.policy.once_per is not None:
        # An equal call may have to be settled before its own function is called again.
        session.register({call.name: call.policy})
    while True:
        session.check_latch(call)  # it may have been set while this call waited
        with session.record.lock:
            step = session.record.steps.get(placement.key)
            policy = stricter(call.policy, step.policy if step else "")
            do = decide(call.kind, policy.label, session.record.facts(step, policy))
            running = session.record.running.get(placement.key)
            if step is not None and is_news(session.record, step):
                session.record.failed(step)
                do = Do.RAISE
        if do is Do.WAIT:
            yield from _wait(session, step, running)
        elif do is Do.RETURN and step is not None:
            return (yield from _serve(session, call, placement, step))
        elif do is Do.RAISE and step is not None:
            return _handled(session, step, policy)
        elif do is Do.SETTLE and step is not None:
            check_online(session, call.name, placement.key)
            yield from settle(session, step, policy)
        elif do is Do.RUN:
            opened = yield from _opened(
                session, attempt := Attempt(call, placement, policy, where, instead_of)
            )
            if isinstance(opened, Live):
                return opened
            # Another step owns the effect: it is shared (and found above), waited for, or its place is taken.
            instead_of = (yield from follow_owner(session, attempt, opened)) if opened is not None else None


def _handled(session: Session, step: StoredStep, policy: Policy) -> Served:
    """The error that the agent went on with."""
    with session.record.lock:
        session.spared.read_back += 1
    if session.watcher is not None:
        session.watcher.step_read_back(step)
    return Served(step.key, error=rebuilt(step, policy.errors))


def _wait(session: Session, step: StoredStep | None, running: "Future[None] | None") -> Steps[None]:
    """For a try that runs here, or that another worker has claimed."""
    if step is None:
        return
    if running is None:
        yield from wait_for_claim(session, step)
        return
    if not session.locked:
        check_no_cycle(session, step)
    yield Join(running)
    session.take_over(step.key, running)


def _opened(session: Session, attempt: Attempt) -> Steps[Live | Owner | None]:
    """A try; or who owns the effect; or None, where an equal call that failed has decided this one."""
    check_online(session, attempt.call.name, attempt.placement.key)
    if attempt.policy.settle_failures and (yield from follow_failure(session, attempt)):
        return None
    if is_withheld(session, attempt):
        return (yield from withhold(session, attempt))
    return (yield from open_try(session, attempt))


def _serve(session: Session, call: AnyCall, placement: Placement, step: StoredStep) -> Steps[Served]:
    if isinstance(call, ModelCall):
        # Settle first: the agent must not go on from a reply while one of its side effects may have happened unseen. What
        # has namesakes is settled with its own hook, when it is called; until then nothing else runs.
        calls = session.record.calls_of[step.key]
        yield from settle_all(
            session, [key for key in calls if not session.is_disputed(session.record.steps[key])]
        )
    with session.record.lock:
        session.spared.count(step)
        if isinstance(call, ModelCall):
            session.record.give(step)
        if placement.drift is not None and not step.drifted:
            _mark_drifted(session, call, placement, step)
    if session.watcher is not None:
        session.watcher.step_read_back(step)
    call.served()
    return Served(step.key, _value(call, step))


def _mark_drifted(session: Session, call: AnyCall, placement: Placement, step: StoredStep) -> None:
    if not session.has_warned:
        # Once: a changed prompt differs in every request of the run.
        session.has_warned = True
        told = drift_warning(session.record, placement, call)
        _logger.warning("Run %r, step %s gets its record though %s", session.run_id, step.key, told)
    drifted = replace(step, drifted=True, setups=setups_of(call, step))
    session.record.put(drifted)
    if not session.options.offline:
        session.database.mark_drifted(drifted)


def _value(call: Call, step: StoredStep) -> Any:
    value = recorded_value(step, call.policy.types)
    try:
        return call.present(value) if step.raw else call.decode(value)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"its value is none that {call.name} gives ({type(error).__qualname__}: {error})"
        raise JournalCorruptError(where=where(step), problem=problem) from error
