"""The file: vcrpy's YAML, laid out so that a person can read it and a difference shows what changed.

Bodies are blocks of text: JSON has a line for each message and each tool, server-sent events stand as they came.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

try:
    from yaml import CSafeLoader as _Loader  # ten times faster, where PyYAML was built with libyaml
except ImportError:
    from yaml import SafeLoader as _Loader

from gnl_middleware.wire.decoding import DecodingError

from .errors import CassetteUnreadableError
from .interaction import Headers, Interaction, Request, Response, decoded, is_json

_VERSION = 1
_BY_CONVERSATION = "conversation"
_OTHER_LINE_ENDS = frozenset("\x85\u2028\u2029")
_WIDTH = 1_000_000  # a longer line than any, so that none is folded


def written(interactions: Iterable[Interaction], header: str, *, by_conversation: bool = False) -> str:
    """The text of a cassette.

    Args:
        interactions: What it holds.
        header: Comment lines, which say how it was recorded.
        by_conversation: Its requests are compared by what the model is told, not by their bodies.
    """
    matching = {"match": _BY_CONVERSATION} if by_conversation else {}
    data = {"version": _VERSION, **matching, "interactions": [_as_data(each) for each in interactions]}
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header.splitlines())
    return comment + yaml.dump(data, Dumper=_Readable, sort_keys=False, allow_unicode=True, width=_WIDTH)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds.

    Attributes:
        interactions: In their order.
        by_conversation: See ``written``.
    """

    interactions: tuple[Interaction, ...]
    by_conversation: bool = False


def read(path: Path) -> list[Interaction]:
    """The interactions of a cassette; see ``contents``."""
    return list(contents(path).interactions)


def contents(path: Path) -> Contents:
    """What a cassette holds, also of one that another tool has recorded; bodies are decoded.

    Nothing in the file is run, and no class is looked up by a name in it.

    Raises:
        CassetteUnreadableError: It is no cassette, or one of its bodies cannot be decoded.
        FileNotFoundError: There is no such file.
    """
    try:
        data = _loaded(path.read_text(encoding="utf-8"))
        interactions = tuple(_interaction(each) for each in _listed(data))
        return Contents(interactions, data.get("match") == _BY_CONVERSATION)
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(path, f"it is no plain YAML ({_one_line(error)})") from error
    except DecodingError as error:
        raise _unreadable(path, str(error)) from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"it does not have the form of a cassette ({type(error).__name__}: {error})"
        raise _unreadable(path, problem) from error


def _loaded(text: str) -> Any:
    return cast("Any", _Loader(text)).get_single_data()


def _unreadable(path: Path, problem: str) -> CassetteUnreadableError:
    return CassetteUnreadableError(path=str(path), problem=problem)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class _Readable(yaml.SafeDumper):
    """YAML whose texts of several lines are blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # YAML takes these three for ends of lines, and a block would give the first of them back as another.
    style = '"' if _OTHER_LINE_ENDS & set(text) else "|" if "\n" in text else None
    return cast("Any", dumper).represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _represent_text)


def _as_data(interaction: Interaction) -> dict[str, Any]:
    request, response = interaction.request, interaction.response
    return {
        "request": {
            "method": request.method,
            "uri": request.uri,
            "headers": _headers_as_data(request.headers),
            "body": _body_as_data(request.body, request.content_type) if request.body else None,
        },
        "response": {
            "status": {"code": response.status, "message": response.reason},
            "headers": _headers_as_data(response.headers),
            "body": {"string": _body_as_data(response.body, response.content_type)},
        },
    }


def _headers_as_data(headers: Headers) -> dict[str, list[str]]:
    return {name: list(values) for name, values in sorted(headers.items())}


def _body_as_data(body: bytes, content_type: str) -> str | bytes:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    return _laid_out(text) if is_json(content_type) or text[:1] == "{" else text


def _laid_out(text: str) -> str:
    """A JSON object with a line for each field, and for each item of its lists; other texts as they are."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict):
        return text
    fields = cast("dict[str, Any]", value)
    lines = [f" {_as_json(name)}: {_field(item)}" for name, item in fields.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _field(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _as_json(value)
    items = cast("list[Any]", value)
    return "[\n" + ",\n".join(f"  {_as_json(item)}" for item in items) + "\n ]"


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a character cannot be written to a file as it is.
    return json.dumps(value) if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def _listed(data: Any) -> list[Any]:
    if not isinstance(data, dict):
        raise TypeError("not a mapping")
    interactions = cast("dict[str, Any]", data)["interactions"]
    if not isinstance(interactions, list):
        raise TypeError("interactions is no list")
    return cast("list[Any]", interactions)


def _interaction(data: Mapping[str, Any]) -> Interaction:
    asked, answered = data["request"], data["response"]
    request = Request(
        method=str(asked["method"]),
        uri=str(asked["uri"]),
        headers=_headers(asked.get("headers")),
        body=_body(asked.get("body")),
    )
    status = answered["status"]
    response = Response(
        status=int(status["code"]),
        reason=str(status.get("message") or ""),
        headers=_headers(answered.get("headers")),
        body=_body(answered.get("body")),
    )
    return Interaction(request, decoded(response))


def _headers(data: Mapping[str, Any] | None) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, values in (data or {}).items():
        listed = cast("list[Any]", values) if isinstance(values, list) else [values]
        found[name.lower()] = tuple(str(value) for value in listed)
    return found


def _body(data: Any) -> bytes:
    if isinstance(data, dict):
        stored = cast("dict[str, Any]", data)
        if "base64_string" in stored:
            return base64.b64decode(stored["base64_string"])
        return _body(stored.get("string"))
    if isinstance(data, bytes):
        return data
    if data is None or isinstance(data, str):
        return (data or "").encode()
    raise TypeError(f"a body is a {type(data).__name__}")
