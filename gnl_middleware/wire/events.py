"""Server-sent events, as text and as data."""

import json
from collections.abc import Iterator
from typing import Any, cast

DONE = "[DONE]"


def events_of(body: str) -> Iterator[dict[str, Any]]:
    """The data of each event that is a JSON object.

    Raises:
        ValueError: The data of an event is neither JSON nor ``[DONE]``.
    """
    for block in body.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        data = "\n".join(lines)
        if data and data.strip() != DONE:
            found = json.loads(data)
            if isinstance(found, dict):
                yield cast("dict[str, Any]", found)


def is_done(body: str) -> bool:
    """Whether a stream says that it has ended, as OpenAI's chat completions do."""
    return any(line.removeprefix("data:").strip() == DONE for line in body.splitlines())
