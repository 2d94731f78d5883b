"""The first lines of a cassette: how it was recorded."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from .interaction import Interaction, Request, first

_UNKNOWN = "not said"


def header_of(interactions: Sequence[Interaction], note: str = "", on: date | None = None) -> str:
    """The header of what was just recorded, a line for each fact.

    Args:
        interactions: As they came, with all their headers.
        note: More lines: which server it was, how to record again.
        on: The day; today by default.
    """
    requests = [each.request for each in interactions]
    servers = _listed(urlsplit(request.uri).hostname or "" for request in requests)
    models = _listed(_model(request) for request in requests)
    clients = _listed(first(request.headers, "user-agent") for request in requests)
    day = (on or datetime.now(UTC).date()).isoformat()
    lines = [
        "Recorded HTTP traffic, played by gnl_middleware.cassettes.use_cassette; do not edit, record it again.",
        f"Server:   {servers}",
        f"Model:    {models}",
        f"Client:   {clients}",
        f"Recorded: {day}",
        *note.splitlines(),
    ]
    return "\n".join(lines)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text)) or _UNKNOWN


def _model(request: Request) -> str:
    try:
        value = json.loads(request.body)
    except ValueError:
        return ""
    return str(value.get("model") or "") if isinstance(value, dict) else ""  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
