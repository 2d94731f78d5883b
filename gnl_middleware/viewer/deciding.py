"""A person's decision from a form."""

import json
from collections.abc import Mapping
from typing import NoReturn

from gnl_middleware.model import Decision, Done, Failed, NotDone


def decision_of(form: Mapping[str, str]) -> Decision:
    """What the form says: ``decision``, ``result``, ``error`` and ``by``.

    Raises:
        ValueError: It says nothing that can be recorded; in words for the person.

    Example:
        >>> decision_of({"decision": "happened", "result": '"T-7"', "by": "ada"})
        Done(value='T-7')
    """
    person = form.get("by", "").strip()
    if not person:
        raise ValueError("Say who decides: your name is kept for the audit.")
    match form.get("decision"):
        case "happened":
            result = form.get("result", "").strip()
            return Done(_parsed(result) if result else f"confirmed by {person}")
        case "not_done":
            return NotDone()
        case "failed" if form.get("error", "").strip():
            return Failed(form["error"].strip())
        case "failed":
            raise ValueError("Write the error that the agent gets.")
        case _:
            raise ValueError("Choose what it is: it happened, it did not, or it failed.")


def _parsed(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refused_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f'The result is not JSON ({error}); a text is written "sent", with its quotes.'
        ) from None


def _refused_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is Python's, not JSON's")
