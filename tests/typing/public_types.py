"""What a type checker says of the public functions, pinned: pyright fails here when a change would reach users' checkers."""
# An ignored error that is none any more fails, too:
# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import assert_type
from uuid import UUID

from gnl_middleware import (
    Done,
    InterruptedCall,
    Journal,
    NotDone,
    Policy,
    Run,
    RunRecord,
    Step,
    Unknown,
    current_run,
    current_step,
    journaled,
    keyed,
    never,
    safe,
)


def find_ticket(call: InterruptedCall) -> Done | NotDone | Unknown:
    assert_type(call.tool, str)
    assert_type(call.idempotency_key, str)
    return Done("T-7") if call.attempts else NotDone()


async def find_ticket_async(call: InterruptedCall) -> Done | NotDone | Unknown:
    return Unknown()


@never(recover=find_ticket)
def labelled(customer_id: str, subject: str) -> str:
    return f"{customer_id} {subject}"


@safe
def labelled_plainly(order: int) -> bool:
    return order > 0


@journaled(replay=never)
def charge(order_id: str, *, amount: int = 1) -> list[str]:
    return [order_id] * amount


@journaled(replay=keyed(max_attempts=3))
async def charge_async(order_id: str) -> bytes:
    return order_id.encode()


def decorators_keep_the_types_of_functions() -> None:
    assert_type(labelled("c-1", "broken"), str)
    assert_type(labelled_plainly(7), bool)
    assert_type(charge("o-1", amount=2), list[str])
    checked: Callable[[str], Awaitable[bytes]] = charge_async
    assert callable(checked)


def calling_with_other_types_is_an_error() -> None:
    charge(7)  # pyright: ignore[reportArgumentType]
    charge("o-1", size=2)  # pyright: ignore[reportCallIssue]
    labelled("c-1")  # pyright: ignore[reportCallIssue]
    never(recovery=find_ticket)  # pyright: ignore[reportCallIssue]


def options_give_policies() -> None:
    assert_type(never, Policy)
    assert_type(never(recover=find_ticket), Policy)
    assert_type(never(recover=find_ticket_async, once_per="args", window="journal"), Policy)


def runs_give_typed_values(journal: Journal) -> None:
    with journal.run("order-7", replay="strict", on_change="continue") as run:
        assert_type(run, Run)
        assert_type(run.now(), datetime)
        assert_type(run.uuid4(), UUID)
        assert_type(run.random(), float)
        assert_type(run.value("name", lambda: ["a"]), list[str])
        assert_type(run.attempt, int)
        assert_type(current_run(), Run | None)
        assert_type(current_step().idempotency_key, str)


async def runs_are_asynchronous_too(journal: Journal) -> None:
    async with journal.run("order-7") as run:
        assert_type(run, Run)


def journals_give_frozen_rows(journal: Journal) -> None:
    assert_type(journal.runs(status="blocked"), list[RunRecord])
    assert_type(journal.steps("order-7"), list[Step])
    assert_type(journal.resolve("order-7", 1, Done("sent"), by="ops"), Step)
    journal.runs()[0].status = "failed"  # pyright: ignore[reportAttributeAccessIssue]


def wrong_options_are_errors(journal: Journal) -> None:
    journal.run("order-7", replay="exact")  # pyright: ignore[reportArgumentType]
    journal.run("order-7", on_busy="skip")  # pyright: ignore[reportArgumentType]
    journal.run(7)  # pyright: ignore[reportArgumentType]
