"""A model call describes only what is new in its history, and never takes what was changed in place for what it was."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import ModelSettings, SQLiteSession
from agents.models.interface import ModelTracing
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from gnl_middleware import DivergenceError, Journal, never
from gnl_openai_agents import DurableRunner, described
from gnl_openai_agents.models import journaled_model
from gnl_openai_agents.requests import items_of, messages_of
from tests.openai_agents.scripted import agent, call, effect_tool, model, said, turns

TURNS = 12
REPLIES = [[call("refund", f"call_{number}", order=str(number))] for number in range(TURNS)]
SCRIPT = turns(*REPLIES, [said()])


@pytest.fixture
def descriptions(monkeypatch):
    """Counts how many messages are described."""
    described_so_far: list[Any] = []

    def counted(items: Any) -> Any:
        found = list(messages_of(items))
        described_so_far.extend(found)
        return found

    monkeypatch.setattr(described, "messages_of", counted)
    return described_so_far


@pytest.fixture(params=["input", "session"])
def options(request):
    """How the history is kept: by whoever calls, or by a session of the SDK, a new one each time; all are closed in the end."""
    with contextlib.ExitStack() as opened:

        def chosen():
            if request.param == "input":
                return {}
            session = SQLiteSession("ann")
            opened.callback(session.close)
            return {"session": session}

        yield chosen


def test_each_message_of_a_run_is_described_once(journal, effects, durable, descriptions, options):
    """However often a model is told a message, it is described once: live, and once more when the run is read back."""
    runner = DurableRunner(journal, policies={"refund": never})
    for attempt in ("live", "read back"):
        asked = agent(SCRIPT, effect_tool(effects), instructions="Be brief.")

        durable(runner, asked, "refund them all", run_id="run", max_turns=TURNS + 2, **options())

        assert len(descriptions) == 2 * TURNS + 1, attempt
        assert len(effects.lines()) == TURNS
        descriptions.clear()


def history() -> list[Any]:
    """A conversation with something of each kind to change."""
    return [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Refund"}, {"type": "input_image", "zoom": 1}],
        },
        {"role": "assistant", "content": "I refund it."},
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "refund",
            "arguments": '{"order": 1}',
            "id": "fc_1",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "refunded"},
        {"type": "message", "role": "assistant", "content": "Done."},
        {"role": "user", "content": "And the other one?"},
    ]


CHANGES: dict[str, Callable[[list[Any]], Any]] = {
    "the text of a message": lambda items: items[5].update(content="And?"),
    "the text of a part": lambda items: items[0]["content"][0].update(text="Do not refund"),
    "a part more": lambda items: items[0]["content"].append({"type": "input_text", "text": " now"}),
    "true instead of 1": lambda items: items[0]["content"][1].update(zoom=True),
    "1.0 instead of 1": lambda items: items[0]["content"][1].update(zoom=1.0),
    "the arguments of a call": lambda items: items[2].update(arguments='{"order": 2}'),
    "the name of a call": lambda items: items[2].update(name="pay"),
    "the answer of a call": lambda items: items[3].update(output="refused"),
    "what is answered": lambda items: items[3].update(call_id="call_2"),
    "a field more": lambda items: items[3].update(note="late"),
    "another name for a field": lambda items: items[3].update(result=items[3].pop("output")),
    "the role of a message": lambda items: items[4].update(role="user"),
    "a reply that becomes longer": lambda items: items.insert(5, {"role": "assistant", "content": "Bye."}),
    "a reply that becomes shorter": lambda items: items.pop(1),
    "replies that become one": lambda items: items.pop(3),
    "a message more in front": lambda items: items.insert(0, {"role": "user", "content": "Hello"}),
    "a message less in front": lambda items: items.pop(0),
    "an item as an object": lambda items: items.__setitem__(
        4,
        ResponseOutputMessage(
            id="m",
            type="message",
            role="assistant",
            status="completed",
            content=[ResponseOutputText(type="output_text", text="Bye.", annotations=[])],
        ),
    ),
}


def anew(items: list[Any]) -> list[Any]:
    """The items described without anything that was described before."""
    return list(messages_of(items_of(items)))


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_changed_in_place_is_described_anew(journal, change):
    """Whatever somebody changes in an item between two requests, the second is described as it is then."""
    items = history()
    with journal.run("run") as run:
        before = described.described(run.session, items)
        CHANGES[change](items)

        after = described.described(run.session, items)

    assert repr(after) == repr(anew(items)) != repr(before)


async def asked_of(asking: Any, items: list[Any]) -> Any:
    given = (None, items, ModelSettings(), [], None, [], ModelTracing.DISABLED)
    return await asking.get_response(*given, previous_response_id=None, conversation_id=None, prompt=None)


@pytest.mark.parametrize("change", CHANGES)
def test_a_strict_replay_notices_what_is_changed_in_place(journal, change):
    """A history that is changed in place between two requests of a strict replay differs from its record."""
    asking = journaled_model(model(lambda _: [said()]))

    async def ask_twice(edit: Callable[[list[Any]], Any] | None, **options: Any) -> None:
        items = history()
        async with journal.run("run", **options):
            await asked_of(asking, items)
            if edit is not None:
                edit(items)
            await asked_of(asking, [*items, {"role": "user", "content": "and now?"}])

    asyncio.run(ask_twice(None))

    with pytest.raises(DivergenceError):
        asyncio.run(ask_twice(CHANGES[change], replay="strict"))


def test_an_id_that_a_server_gives_later_changes_nothing(journal):
    """Items are made anew for each request, with other ids and states: what they tell is the same."""
    with journal.run("run") as run:
        first = described.described(run.session, history())
        later = [{**item, "id": "msg_1", "status": "completed"} for item in history()]

        assert repr(described.described(run.session, later)) == repr(first)


def test_threads_side_by_side_are_told_apart(tmp_path):
    """Eight threads in one run, all with their own histories: each request is its own."""

    def talk(name: int) -> None:
        items: list[Any] = []
        for turn in range(20):
            items.append({"role": "user", "content": f"{name} {turn}"})
            items.append({"role": "assistant", "content": [{"type": "output_text", "text": str(turn)}]})
            assert repr(described.described(shared.session, items)) == repr(anew(items))

    with (
        Journal(tmp_path / "runs.db") as journal,
        journal.run("shared") as shared,
        ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(talk, range(8)))
