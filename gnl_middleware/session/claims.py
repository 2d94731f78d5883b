"""Runs without a lock: wait for a call that another worker has claimed, and look at what others have done (DESIGN 3.1)."""

from gnl_middleware.errors import EffectCycleError
from gnl_middleware.model import StoredStep

from .context import steps_around
from .running import running_here
from .session import Session
from .waiting import Join, Look, Pause, Steps

_SHORTEST, _LONGEST, _GROWTH = 0.02, 0.5, 1.5


def wait_for_claim(session: Session, step: StoredStep) -> Steps[None]:
    """Wait until another worker's try has ended or its claim has gone stale; the caller then decides anew.

    Raises:
        EffectCycleError: The call is part of the very call that it would wait for.
    """
    check_no_cycle(session, step)
    if (here := running_here(step.token)) is not None:
        yield Join(here)
        session.refresh(step.key)
        return
    seconds = _SHORTEST
    while session.latch is None:
        yield Pause(seconds)
        found = yield Look(lambda: session.database.step(session.run_id, step.key, session.clock.time()))
        if found is None or not found.claimed or found.token != step.token:
            break
        seconds = min(seconds * _GROWTH, _LONGEST)
    yield from look_around(session, sure=step.key)


def check_no_cycle(session: Session, step: StoredStep) -> None:
    """Raise where a call inside a step's body would wait for that step."""
    if any((around.run_id, around.key) == (session.run_id, step.key) for around in steps_around()):
        raise EffectCycleError(run_id=session.run_id, step_key=step.key, name=step.name)


def look_around(session: Session, *, sure: str = "") -> Steps[None]:
    """Read what the other workers of the run have done meanwhile."""
    news = yield Look(session.look)
    session.take_news(news, sure=sure)


def look_after_claims(session: Session) -> Steps[None]:
    """Where a side effect was another worker's when it was read, see what has become of it."""
    if session.locked:
        return
    with session.record.lock:
        open_ones = session.record.claimed_elsewhere()
    if open_ones:
        yield from look_around(session)


def renew(session: Session) -> bool:
    """Prolong what this worker has claimed; False where a try of it is another's meanwhile."""
    with session.lock:
        tokens = sorted(session.claims)
    while not _renewed(session, tokens):
        with session.lock:
            kept = sorted(session.claims.intersection(tokens))
        if kept == tokens:
            return False
        tokens = kept  # the others were given back meanwhile
    return True


def _renewed(session: Session, tokens: list[str]) -> bool:
    at, now = (session.run_id, session.attempt), session.clock.time()
    return session.database.renew_claims(at, tokens, now=now, seconds=session.lease.length)
