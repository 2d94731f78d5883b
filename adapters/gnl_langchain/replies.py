"""A model's reply as it is recorded: a whole result, or the chunks in which it came; either can be read as the other."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from gnl_middleware.adapter import Reply, ReplyCall, digest
from gnl_middleware.adapter import encode as encode_plain

from .requests import reply_digest
from .values import plain


def encode(value: ChatResult | Sequence[Mapping[str, Any]]) -> bytes:
    """A result, or the chunks that were kept, as bytes.

    Raises:
        UnserializableValueError: The provider's answer holds something that cannot be journalled.
    """
    if not isinstance(value, ChatResult):
        return encode_plain({"chunks": list(value)})
    generations = [
        {"message": generation.message, "generation_info": plain(generation.generation_info)}
        for generation in value.generations
    ]
    return encode_plain({"generations": generations, "llm_output": plain(value.llm_output)})


def kept(chunk: ChatGenerationChunk) -> dict[str, Any]:
    """What is recorded of a chunk; a copy, since LangChain writes ids and metadata into the chunks that it is given."""
    return {"message": chunk.message.model_copy(deep=True), "generation_info": plain(chunk.generation_info)}


def as_result(recorded: Mapping[str, Any]) -> ChatResult:
    """The recorded reply as one result."""
    if "chunks" in recorded:
        return generate_from_stream(iter(_chunks(recorded["chunks"])))
    generations = [ChatGeneration(**generation) for generation in recorded["generations"]]
    return ChatResult(generations=generations, llm_output=recorded["llm_output"])


def as_chunks(recorded: Mapping[str, Any]) -> Iterator[ChatGenerationChunk]:
    """The recorded reply as chunks, with the boundaries at which it came; a whole result comes as one."""
    if "chunks" in recorded:
        return iter(_chunks(recorded["chunks"]))
    result = as_result(recorded)
    generation = result.generations[0]
    message = _one_chunk(cast("AIMessage", generation.message), result.llm_output or {})
    return iter([ChatGenerationChunk(message=message, generation_info=generation.generation_info)])


def _chunks(recorded: Sequence[Mapping[str, Any]]) -> list[ChatGenerationChunk]:
    return [ChatGenerationChunk(**chunk) for chunk in recorded]


def _one_chunk(message: AIMessage, llm_output: Mapping[str, Any]) -> AIMessageChunk:
    """One chunk that turns back into exactly this message."""
    fields = {
        name: getattr(message, name) for name in AIMessage.model_fields if name not in ("type", "tool_calls")
    }
    fields["response_metadata"] = {**llm_output, **message.response_metadata}
    calls = [
        ToolCallChunk(
            name=call["name"],
            args=json.dumps(call["args"]),
            id=call["id"],
            index=place,
            type="tool_call_chunk",
        )
        for place, call in enumerate(message.tool_calls)
    ]
    invalid = fields.pop("invalid_tool_calls")
    chunk = AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last")
    chunk.invalid_tool_calls = invalid
    return chunk


def describe(value: ChatResult | Sequence[Mapping[str, Any]]) -> Reply:
    """How the reply will be recognised later, which tools it calls, and what it cost."""
    if isinstance(value, ChatResult):
        message: BaseMessage = value.generations[0].message
    else:
        message = generate_from_stream(iter(_chunks(value))).generations[0].message  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(message, AIMessage):
        return Reply(digest="")
    calls = tuple(
        ReplyCall(call_id=str(call.get("id") or ""), name=call["name"], arguments_digest=digest(call["args"]))
        for call in message.tool_calls
    )
    usage = message.usage_metadata
    return Reply(digest=reply_digest(message), calls=calls, tokens=usage["total_tokens"] if usage else 0)


def redescribe(recorded: Mapping[str, Any]) -> Reply:
    """The same of what was recorded."""
    return describe(recorded["chunks"] if "chunks" in recorded else as_result(recorded))


def whole(kept_chunks: list[dict[str, Any]]) -> ChatResult:
    """The chunks that were kept of a stream as one result."""
    return generate_from_stream(iter(_chunks(kept_chunks)))
