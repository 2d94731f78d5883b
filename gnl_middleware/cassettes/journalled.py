"""Model steps as the adapters have journalled them, read back as a conversation and what the model answered.

What is read is plain data, as the journal shows it to people: nothing of a framework is loaded.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gnl_middleware.adapter import decode
from gnl_middleware.journal import Journal
from gnl_middleware.replay.divergence import conversation
from gnl_middleware.wire import Answered, Asks, Said, chat, responses
from gnl_middleware.wire.formats import FORMATS
from gnl_middleware.wire.recorded import answered_by
from gnl_middleware.wire.told import Json, objects
from gnl_middleware.wire.turns import turns_of

_BY_TYPE = {
    "openai-chat": "chat",
    "azure-openai-chat": "chat",
    "anthropic-chat": "anthropic",
    "OpenAIChatCompletionsModel": "chat",
    "OpenAIResponsesModel": "responses",
}
"""The format that the model classes of LangChain and of the Agents SDK speak, by the names that they are journalled under."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A finished model step of a run.

    Attributes:
        key: Its key.
        number: Its number in the run.
        name: The model.
        setup: Its settings and tools, where the journal keeps them.
        messages: The whole conversation that it was asked, as its adapter journals it.
        answer: What it answered; None where that cannot be read.
    """

    key: str
    number: int
    name: str
    setup: Any
    messages: tuple[Json, ...]
    answer: Answered | None


def model_calls(journal: Journal, run_id: str) -> list[ModelCall]:
    """The finished model steps of a run, in their order; nothing of the run changes."""
    with journal.run(run_id, offline=True) as run:
        record = run.session.record
        steps = sorted(record.steps.values(), key=lambda step: step.number)
        return [
            ModelCall(
                step.key,
                step.number,
                step.name,
                record.setups.recorded(step),
                tuple(conversation(record, step)),
                answered(step.value),
            )
            for step in steps
            if step.kind == "model" and step.status == "done" and step.value is not None
        ]


def format_name(setup: Any) -> str | None:
    """The format in which a recorded model is asked; None where it is none that we can write."""
    fields = cast("Json", setup) if isinstance(setup, dict) else Json()
    return fields.get("format") or _BY_TYPE.get(str(fields.get("type")))


def answered(value: bytes) -> Answered | None:
    """What a recorded model step answered; None where its value is none that we can read."""
    # Read as it is stored: the values of a framework are objects only where its adapter is loaded.
    read = json.loads(value)
    fields = cast("Json", read) if isinstance(read, dict) else Json()
    if "head" in fields:
        whole = decode(value)
        chunks = [whole["head"], *whole["chunks"]]
        return next((found for wire in FORMATS if (found := answered_by(wire, chunks)) is not None), None)
    if "generations" in fields:
        return _of_message(_fields(fields["generations"][0]["message"]))
    if "chunks" in fields:
        return _of_chunks([_fields(chunk["message"]) for chunk in fields["chunks"]])
    if "response" in fields:
        response = fields["response"]
        items = [item["fields"] for item in response["output"]]
        usage: Json = response.get("usage") or {}
        return Answered(responses.said_by(items), int(usage.get("total_tokens") or 0))
    if "events" in fields:
        return responses.said_of_events([event["fields"] for event in fields["events"]], done=True)
    return None


def _fields(message: Any) -> Json:
    """The fields of a message, stored with the mark of its type."""
    marked = cast("Json", message)
    return marked["value"] if "$gnl" in marked else marked


def _of_message(message: Mapping[str, Any]) -> Answered:
    (turn,) = turns_of([{"role": "assistant", **message}])
    usage: Json = message.get("usage_metadata") or {}
    return Answered(Said(turn.text, _once(turn.asks)), int(usage.get("total_tokens") or 0))


def _once(asks: Iterable[Asks]) -> tuple[Asks, ...]:
    """Each call once: some providers' messages carry them in their content, too."""
    return tuple({each.call_id or str(index): each for index, each in enumerate(asks)}.values())


def _of_chunks(messages: Sequence[Mapping[str, Any]]) -> Answered:
    """Chunks of LangChain, whose calls come in pieces as those of chat completions do."""
    text = "".join(
        turn.text for turn in turns_of({"role": "assistant", "content": each["content"]} for each in messages)
    )
    pieces = [
        {
            "index": piece.get("index") or 0,
            "id": piece.get("id"),
            "function": {"name": piece.get("name"), "arguments": piece.get("args")},
        }
        for message in messages
        for piece in objects(message.get("tool_call_chunks"))
    ]
    merged, _, _ = chat.merged([{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces])
    (turn,) = turns_of([merged])
    usages = [each["usage_metadata"] for each in messages if each.get("usage_metadata")]
    return Answered(Said(text, turn.asks), sum(int(usage.get("total_tokens") or 0) for usage in usages))
