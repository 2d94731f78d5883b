"""What docs/what-is-compared.md says about equal and different calls is what the journal does."""

import ast
import math
import re
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from gnl_langchain import requests as langchain
from gnl_middleware.adapter import digest, without_secrets
from gnl_openai_agents import requests as openai_agents
from tests.langchain.scripted import ScriptedModel

PAGE = Path(__file__).parents[2] / "docs" / "what-is-compared.md"
PAIRS = re.findall(
    r"^\| `(.+)` \| `(.+)` \| (same|different) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)


def value_of(text: str) -> Any:
    return math.nan if text == "nan" else ast.literal_eval(text)


def test_the_table_is_read_whole():
    """The page has its table of values where these tests look for it."""
    assert len(PAIRS) == 12


@pytest.mark.parametrize(("one", "other", "verdict"), PAIRS)
def test_a_pair_of_values(one, other, verdict):
    """Each pair of the published table counts as the table says."""
    assert (digest(value_of(one)) == digest(value_of(other))) is (verdict == "same")


CALL = {"name": "mail", "args": {"to": "ann"}, "id": "c-1"}
LANGCHAIN_SAME = {
    "message id": (HumanMessage("hi", id="a"), HumanMessage("hi", id="b")),
    "response metadata": (
        AIMessage("hi", response_metadata={"created": 1}),
        AIMessage("hi", response_metadata={"created": 2}),
    ),
    "usage": (
        AIMessage("hi"),
        AIMessage("hi", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ),
    "name of an assistant message": (AIMessage("hi", name="agent"), AIMessage("hi")),
    "index of a block": (AIMessage([{"type": "text", "text": "hi", "index": 0}]), AIMessage("hi")),
    "repeated call": (
        AIMessage(
            [{"type": "tool_use", "id": "c-1", "name": "mail", "input": {"to": "ann"}}], tool_calls=[CALL]
        ),
        AIMessage("", tool_calls=[CALL]),
    ),
    "list of one text": (HumanMessage([{"type": "text", "text": "hi"}]), HumanMessage("hi")),
}
LANGCHAIN_DIFFERENT = {
    "role": (HumanMessage("hi"), SystemMessage("hi")),
    "text": (HumanMessage("hi"), HumanMessage("hi.")),
    "image": (
        HumanMessage([{"type": "image_url", "image_url": {"url": "https://a/1"}}]),
        HumanMessage([{"type": "image_url", "image_url": {"url": "https://a/2"}}]),
    ),
    "call id": (AIMessage("", tool_calls=[CALL]), AIMessage("", tool_calls=[CALL | {"id": "c-2"}])),
    "arguments": (
        AIMessage("", tool_calls=[CALL]),
        AIMessage("", tool_calls=[CALL | {"args": {"to": "bob"}}]),
    ),
    "name of a user": (HumanMessage("hi", name="ann"), HumanMessage("hi", name="bob")),
    "status of an answer": (
        ToolMessage("x", tool_call_id="c-1", status="error"),
        ToolMessage("x", tool_call_id="c-1"),
    ),
    "reasoning": (
        AIMessage([{"type": "reasoning", "reasoning": "a"}]),
        AIMessage([{"type": "reasoning", "reasoning": "b"}]),
    ),
}


@pytest.mark.parametrize("pair", LANGCHAIN_SAME.values(), ids=LANGCHAIN_SAME)
def test_what_langchain_makes_up_is_left_out(pair):
    """What LangChain or a provider adds to a message by itself does not make it another message."""
    one, other = (digest(langchain.normalised(message)) for message in pair)

    assert one == other


@pytest.mark.parametrize("pair", LANGCHAIN_DIFFERENT.values(), ids=LANGCHAIN_DIFFERENT)
def test_what_langchain_tells_the_model_counts(pair):
    """What the model is told makes another message of it."""
    one, other = (digest(langchain.normalised(message)) for message in pair)

    assert one != other


def message(**more: Any) -> dict[str, Any]:
    text = {"type": "output_text", "text": "hi", "annotations": []}
    return {"type": "message", "role": "assistant", "content": [text]} | more


FUNCTION_CALL = {"type": "function_call", "call_id": "c-1", "name": "mail", "arguments": '{"to":"ann"}'}
OPENAI_SAME = {
    "item id": (message(id="a"), message(id="b")),
    "status": (message(status="completed"), message(status="in_progress")),
    "empty field": (message(phase=None), message()),
}
OPENAI_DIFFERENT = {
    "role": ({"role": "user", "content": "hi"}, {"role": "developer", "content": "hi"}),
    "text": ({"role": "user", "content": "hi"}, {"role": "user", "content": "hi."}),
    "call id": (FUNCTION_CALL, FUNCTION_CALL | {"call_id": "c-2"}),
    "arguments": (FUNCTION_CALL, FUNCTION_CALL | {"arguments": '{"to":"bob"}'}),
    "answer": (
        {"type": "function_call_output", "call_id": "c-1", "output": "a"},
        {"type": "function_call_output", "call_id": "c-1", "output": "b"},
    ),
    "reasoning": (
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "b"}]},
    ),
}


def fingerprint(item: dict[str, Any]) -> str:
    asked = openai_agents.Asked(None, [item], ModelSettings(), [], None, [], None, None, None)
    messages, parts = asked.conversation(
        {}, lambda items: openai_agents.messages_of(openai_agents.items_of(items))
    )
    return digest([messages, [part.digest for part in parts]])


@pytest.mark.parametrize("pair", OPENAI_SAME.values(), ids=OPENAI_SAME)
def test_what_openai_makes_up_is_left_out(pair):
    """What the Agents SDK or the provider adds to an item by itself does not make it another item."""
    assert fingerprint(pair[0]) == fingerprint(pair[1])


@pytest.mark.parametrize("pair", OPENAI_DIFFERENT.values(), ids=OPENAI_DIFFERENT)
def test_what_openai_tells_the_model_counts(pair):
    """What the model is told makes another item of it."""
    assert fingerprint(pair[0]) != fingerprint(pair[1])


HIDDEN = "sk-not-to-be-kept"
SETTINGS = {
    "api_key": HIDDEN,
    "temperature": 0.5,
    "max_tokens": 9,
    "extra_headers": {"Authorization": HIDDEN, "X-Team": HIDDEN},
    "extra_body": {"user": "ann", "auth_token": HIDDEN},
    "response_format": {"json_schema": {"properties": {"password": {"type": "string"}}}},
}


class TestSecrets:
    """A journal must hold no key, and a new key asks the same."""

    def test_they_are_left_out_and_nothing_else_is(self):
        """Keys, tokens and values of headers go; limits on tokens and fields of schemas stay."""
        kept = without_secrets(SETTINGS)

        assert HIDDEN not in repr(kept)
        assert kept == {
            "temperature": 0.5,
            "max_tokens": 9,
            "extra_headers": ["Authorization", "X-Team"],
            "extra_body": {"user": "ann"},
            "response_format": SETTINGS["response_format"],
        }

    def test_langchain(self):
        """What a LangChain model is bound to is described without its secrets."""
        told = langchain.setup_of(ScriptedModel(script=None), None, SETTINGS)

        assert HIDDEN not in repr(told)
        assert (told["max_tokens"], told["response_format"]) == (9, SETTINGS["response_format"])

    def test_openai_agents(self):
        """The settings of a model of the Agents SDK are described without their secrets."""
        settings = ModelSettings(
            temperature=0.5,
            extra_headers={"Authorization": HIDDEN},
            extra_args={"api_key": HIDDEN, "seed": 7},
            extra_body={"auth_token": HIDDEN},
        )
        asked = openai_agents.Asked(None, "hi", settings, [], None, [], None, None, None)

        told = asked.setup(None)["settings"]

        assert HIDDEN not in repr(told)
        assert (told["temperature"], told["extra_args"]) == (0.5, {"seed": 7})
