"""What tools return, through the journal: the SDK's own output types as themselves, plain data exactly, the rest as text.

The SDK shows the model ``str(value)`` of anything that it does not know, so the text is what is recorded then, and what
the agent gets, live and on replay.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, cast

from agents import (
    ApplyPatchResult,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

from gnl_middleware.adapter import encode, register
from gnl_middleware.errors import UnserializableValueError

_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_MODELS: tuple[type[BaseModel], ...] = (ToolOutputText, ToolOutputImage, ToolOutputFileContent)
_RECORDS: tuple[type[Any], ...] = (ShellResult, ShellCommandOutput, ShellCallOutcome, ApplyPatchResult)


def encode_output(value: Any) -> bytes:
    """A tool's result as bytes."""
    try:
        return encode(value)
    except UnserializableValueError:
        return encode(as_text(value))


class TypedOutput:
    """The results of a tool whose output has a declared type: values of that type, live and on replay.

    Args:
        adapter: Reads and writes the type; None where the tool declares a schema alone.
    """

    def __init__(self, adapter: TypeAdapter[Any] | None) -> None:
        self._adapter = adapter

    def encode(self, value: Any) -> bytes:
        """A result as bytes."""
        if self._adapter is None:
            return encode(_ANY.dump_python(value, mode="json"))
        try:
            return encode(self._adapter.dump_python(value, by_alias=True, round_trip=True))
        except UnserializableValueError:
            return encode(self._adapter.dump_python(value, mode="json", by_alias=True, round_trip=True))

    def decode(self, recorded: Any) -> Any:
        """The result; as plain data where it is no longer of the type, which the SDK tells better than we could."""
        if self._adapter is None:
            return recorded
        try:
            return self._adapter.validate_python(recorded)
        except ValidationError:
            return recorded


def as_text(value: Any) -> str:
    """What the model is shown of a value that has no form of its own."""
    return str(value)


def plain(value: Any) -> Any:
    """A value with the pydantic objects inside its containers as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[Any]", value)]
    return value


def described(value: Any) -> Any:
    """Any setting as plain data; objects by their type, never by a text that may hold an address or a secret."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, BaseModel):
        return described(value.model_dump(mode="json", exclude_unset=True, warnings=False))
    if isinstance(value, dict):
        return {str(key): described(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in cast("list[Any]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: described(getattr(value, field.name)) for field in fields(value)}
    return {"object": type(value).__qualname__}


def _fields_of(kind: Any) -> Callable[[Any], dict[str, Any]]:
    names = [field.name for field in fields(kind)]
    return lambda value: {name: getattr(value, name) for name in names}


def _register_all() -> None:
    for kind in _MODELS:
        register(
            kind,
            tag=f"openai_agents.{kind.__name__}",
            to_plain=lambda value: value.model_dump(mode="json", exclude_unset=True),
            from_plain=kind.model_validate,
        )
    for kind in _RECORDS:
        register(
            kind,
            tag=f"openai_agents.{kind.__name__}",
            to_plain=_fields_of(kind),
            from_plain=_rebuilder(kind),
        )


def _rebuilder(kind: Any) -> Callable[[Any], Any]:
    return lambda found: kind(**found)


_register_all()
