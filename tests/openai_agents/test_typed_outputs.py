"""Tools that declare the type of what they return: the type is kept, live and on replay, and checked as without us."""

import asyncio
import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from agents import Agent, RunHooks, Runner, function_tool
from pydantic import BaseModel, ConfigDict, Field, computed_field

from gnl_middleware import Done, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import run
from tests.openai_agents.scripted import QUIET, agent, call, said, turns


class Kind(enum.Enum):
    NET = "net"


class Price(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    amount: Decimal
    at: datetime = Field(alias="pricedAt")
    kind: Kind = Kind.NET

    @computed_field
    def doubled(self) -> str:
        return str(self.amount * 2)


@dataclass
class Parcel:
    weight: int


PRICE = Price(amount=Decimal("1.50"), pricedAt=datetime(2026, 1, 2, tzinfo=UTC))
SCHEMA = {
    "type": "object",
    "properties": {"weight": {"type": "integer"}},
    "required": ["weight"],
    "additionalProperties": False,
}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "model": (PRICE, {"output_type": Price}),
    "dataclass": (Parcel(3), {"output_type": Parcel}),
    "schema": (Parcel(3), {"output_json_schema": SCHEMA}),
    "schema-dict": ({"weight": 3}, {"output_json_schema": SCHEMA}),
}


class Looking(RunHooks[Any]):
    """Keeps what tools gave."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.given.append(result)


def giving(value: Any, **options: Any) -> Agent[Any]:
    async def give() -> Any:
        return value

    return agent(turns([call("give")], [said()]), function_tool(give, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_returns_is_told_and_kept_as_without_us(journal, kind):
    """The model is told the same JSON; a value of a declared type comes back as one, from the record, too."""
    value, options = KINDS[kind]
    without, live, again = Looking(), Looking(), Looking()
    plain = asyncio.run(Runner.run(giving(value, **options), "go", run_config=QUIET, hooks=without))
    runner = DurableRunner(journal, default_policy=never)

    first = run(runner, giving(value, **options), "go", run_id="order-7", hooks=live)
    read = run(runner, giving(value, **options), "go", run_id="order-7", hooks=again, offline=True)

    assert plain.to_input_list() == first.to_input_list() == read.to_input_list()
    assert live.given == again.given
    assert live.given == (without.given if "output_type" in options else [{"weight": 3}])


def test_a_default_answer_is_not_checked_against_it(journal):
    """A failure is told to the model as without us, live and on replay, whatever type an output would have."""

    def build() -> Agent[Any]:
        @function_tool(output_type=Parcel)
        async def give() -> Parcel:
            raise ConnectionError("down")

        return agent(turns([call("give")], [said()]), give)

    plain = asyncio.run(Runner.run(build(), "go", run_config=QUIET))
    runner = DurableRunner(journal, default_policy=safe)
    found = [run(runner, build(), "go", run_id="order-7", offline=offline) for offline in (False, True)]

    assert [each.to_input_list() for each in found] == [plain.to_input_list()] * 2


def test_recover_gives_plain_data_of_the_type(journal):
    """``Done`` takes what stands in the JSON; the SDK checks it as any output."""

    class Killed(BaseException):
        pass

    def build(dies: bool) -> Agent[Any]:
        @function_tool(output_type=Parcel)
        async def give() -> Parcel:
            if dies:
                raise Killed
            return Parcel(4)

        return agent(turns([call("give")], [said()]), give)

    runner = DurableRunner(journal, policies={"give": never(recover=lambda call: Done({"weight": 3}))})
    with pytest.raises(Killed):
        run(runner, build(True), "go", run_id="order-7")

    result = run(runner, build(False), "go", run_id="order-7")

    assert result.to_input_list()[2]["output"] == '{"weight":3}'


def test_a_type_that_has_changed_is_told_by_the_sdk(journal):
    """A record that no longer fits the declared type is refused as an output of the tool would be."""

    @dataclass
    class Heavier:
        weight: int
        unit: str

    runner = DurableRunner(journal, default_policy=never)
    run(runner, giving(Parcel(3), output_type=Parcel), "go", run_id="order-7")

    with pytest.raises(Exception, match="does not match its declared output schema"):
        run(runner, giving(Heavier(3, "kg"), output_type=Heavier), "go", run_id="order-7")
