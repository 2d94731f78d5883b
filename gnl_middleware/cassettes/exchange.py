"""A journalled run as a cassette, and a cassette as a journalled run: an incident becomes an offline test.

The requests of an exported cassette are compared by their conversation alone: the journal holds what the model was told
and what it said, not how a client puts that into HTTP, and the test is there to try changed code.
"""

import json
import os
from collections.abc import Generator, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from gnl_middleware.adapter import perform_stream, session_for
from gnl_middleware.journal import Journal
from gnl_middleware.wire import format_of
from gnl_middleware.wire.formats import FORMATS
from gnl_middleware.wire.recorded import Chunk, Head, kept, model_call
from gnl_middleware.wire.turns import turns_of
from gnl_middleware.wire.writing import answer_body, request_body

from . import layout
from .errors import CassetteExportError, CassetteSecretError
from .interaction import Interaction, Request, Response
from .journalled import ModelCall, format_name, model_calls
from .scrubbing import Scrubber, keys_in

_PROVIDERS = {
    "chat": "https://api.openai.com/v1",
    "responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
_JSON = {"content-type": ("application/json",)}
_ERROR = 400


def export_run(
    journal: Journal,
    run_id: str,
    path: str | os.PathLike[str],
    *,
    replace: Mapping[str, str] | None = None,
    allow: Iterable[str] = (),
) -> int:
    """Write the model calls of a run as a cassette for ``use_cassette``; gives their number.

    Args:
        journal: The journal.
        run_id: The run.
        path: The file.
        replace: As for ``use_cassette``.
        allow: As for ``use_cassette``.

    Raises:
        CassetteExportError: The run has no finished model call, or one whose format we cannot write.
        CassetteSecretError: The conversation holds a secret; nothing was written.

    Example:
        >>> export_run(journal, "order:8841", "cassettes/incident.yaml")     # doctest: +SKIP
        4
    """
    calls = model_calls(journal, run_id)
    if not calls:
        raise CassetteExportError(run_id=run_id, problem="it has no model call with an outcome")
    scrubber, target = Scrubber(dict(replace or {}), frozenset(allow)), Path(path)
    raw = [_interaction(run_id, call) for call in calls]
    interactions = [
        Interaction(scrubber.request(each.request), scrubber.response(each.response)) for each in raw
    ]
    if found := scrubber.found_in(interactions, keys_in(os.environ)):
        raise CassetteSecretError(path=str(target), found=found)
    header = _header(run_id, calls)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(layout.written(interactions, header, by_conversation=True), encoding="utf-8")
    return len(interactions)


def import_cassette(journal: Journal, path: str | os.PathLike[str], run_id: str) -> int:
    """Journal the model calls of a cassette as a run, as ``JournalTransport`` records them; gives their number.

    A program on a plain SDK, with ``JournalTransport`` below it, then goes on from that run, or replays it offline.

    Args:
        journal: The journal.
        path: The cassette; requests that ask no model, and answers that are errors or cut, are left out.
        run_id: The run, which must be new.

    Raises:
        CassetteExportError: The run exists already, or the cassette holds no whole answer of a model.
        CassetteUnreadableError: The file is no cassette.

    Example:
        >>> import_cassette(journal, "cassettes/refund.yaml", "incident:42")     # doctest: +SKIP
    """
    if journal.steps(run_id):
        raise CassetteExportError(
            run_id=run_id, problem="it exists already, and a record is not written over"
        )
    interactions = [each for each in layout.read(Path(path)) if _is_whole(each)]
    if not interactions:
        raise CassetteExportError(run_id=run_id, problem=f"{path} holds no whole answer of a model")
    with journal.run(run_id, metadata={"imported from": Path(path).name}):
        for interaction in interactions:
            _record(interaction)
    return len(interactions)


def _interaction(run_id: str, call: ModelCall) -> Interaction:
    wire, said = format_name(call.setup), call.answer
    if wire is None or said is None:
        problem = f"step {call.key} asked {call.name}, whose format over HTTP is none that can be written"
        raise CassetteExportError(run_id=run_id, problem=problem)
    path = next(each.path for each in FORMATS if each.name == wire)
    body = request_body(wire, call.name, turns_of(call.messages))
    request = Request("POST", _PROVIDERS[wire] + path, _JSON, json.dumps(body).encode())
    answer = answer_body(wire, call.name, said, str(call.number))
    return Interaction(request, Response(200, "OK", _JSON, json.dumps(answer).encode()))


def _header(run_id: str, calls: Iterable[ModelCall]) -> str:
    models = ", ".join(dict.fromkeys(call.name for call in calls))
    return (
        f"Model calls of the journalled run {run_id!r}, played by gnl_middleware.cassettes.use_cassette.\n"
        f"Server:   not asked: exported from a journal, in the words of this format\n"
        f"Model:    {models}\n"
        f"Client:   gnl export\n"
        f"Recorded: {datetime.now(UTC).date().isoformat()}\n"
        f"Requests are compared by their conversation alone; answers come whole or streamed, as they are asked for."
    )


def _is_whole(interaction: Interaction) -> bool:
    request, response = interaction.request, interaction.response
    wire = format_of(request.method, request.uri)
    if wire is None or wire.asked(request.body) is None or response.status >= _ERROR:
        return False
    stream = response.body.lstrip().startswith((b"data:", b"event:"))
    return wire.answered(response.body, stream=stream) is not None


def _record(interaction: Interaction) -> None:
    request, response = interaction.request, interaction.response
    wire = format_of(request.method, request.uri)
    asked = None if wire is None else wire.asked(request.body)
    session = session_for(name="an imported model")
    if wire is None or asked is None or session is None:
        return
    headers = tuple((name, value) for name, values in response.headers.items() for value in values)

    def came() -> Generator[Chunk]:
        yield Head(response.status, response.reason, headers)
        yield response.body

    for _chunk in perform_stream(session, model_call(wire, asked), came, kept):
        pass
