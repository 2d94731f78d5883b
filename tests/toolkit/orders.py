"""An order as plain functions: a model is not needed to crash. It looks a price up, mails, and looks again."""

from collections.abc import Callable
from typing import Any

from gnl_middleware import Journal, Policy, current_step, journaled, safe
from gnl_middleware.testing import EffectLog

Build = Callable[[], Any]
Run = Callable[[Any, str, Journal], Any]


def order(log: EffectLog, mailing: Policy, *, says_key: bool = False) -> tuple[Build, Run]:
    """The functions of an agent, as closures over the log of its effects.

    Args:
        log: What happened in the world.
        mailing: The label of ``mail``.
        says_key: The mail service is given the idempotency key, and knows it.
    """

    def build() -> Any:
        @journaled(replay=safe)
        def look_up(number: int) -> int:
            return 10 * number

        @journaled(replay=mailing)
        def mail(to: str) -> str:
            log.note("mail", key=current_step().idempotency_key if says_key else None)
            return f"mailed {to}"

        return look_up, mail

    def run(agent: Any, run_id: str, journal: Journal) -> str:
        look_up, mail = agent
        with journal.run(run_id):
            return f"{look_up(1)}, {mail('ann')}, {look_up(2)}"

    return build, run
