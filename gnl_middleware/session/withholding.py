"""In a fork that performs no side effects: a call that would have one is listed instead, so that a person can decide it."""

from gnl_middleware.decision import Do, decide
from gnl_middleware.errors import ForkedEffectError
from gnl_middleware.model import WITHHELD
from gnl_middleware.replay.payloads import decoded
from gnl_middleware.storage.protocol import Owner

from .once import listed
from .session import Session
from .trying import Attempt, check_way_clear, effect_of
from .waiting import Commit, Steps


def is_withheld(session: Session, attempt: Attempt) -> bool:
    """Whether a call has a side effect that this run may not perform."""
    return not session.effects and attempt.call.kind == "tool" and attempt.policy.label != "safe"


def withhold(session: Session, attempt: Attempt) -> Steps[Owner | None]:
    """Stop the run before a side effect; its body does not begin.

    Returns:
        The step whose outcome the call may share, where the effect may happen once; None where the call must be decided
        anew, since it was settled meanwhile.

    Raises:
        ForkedEffectError: The fork performs no side effects.
        SideEffectRetryBlockedError: Another side effect may have happened, and nothing can tell.
        DivergenceError: The run has left its record.
    """
    call, key = attempt.call, attempt.placement.key
    yield from check_way_clear(session, attempt)
    with session.record.lock:
        before = session.record.steps.get(key)
        facts = session.record.facts(before, attempt.policy)
    if decide(call.kind, attempt.policy.label, facts) is not Do.RUN:
        return None
    effect = effect_of(session, attempt)
    if effect is not None and attempt.instead_of is None:
        owner = session.database.effect_owner(effect)
        if owner not in (None, Owner(session.run_id, key)):
            return owner
    session.check_lease()
    step = yield from listed(session, attempt)
    yield Commit(session.database.block_step(step, WITHHELD))
    raise ForkedEffectError(
        run_id=session.run_id,
        forked_from=session.forked_from,
        step_key=step.key,
        tool=step.name,
        arguments=decoded(step, step.arguments),
        journal=session.database.place,
    )
