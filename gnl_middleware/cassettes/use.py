"""``use_cassette``: a context manager, a decorator, and what the pytest fixture is made of."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import wrapt

from gnl_middleware.wire.decoding import DecodingError

from . import layout
from .canonical import INVENTED
from .errors import CassetteError, CassetteSecretError, CassetteUnreadableError
from .header import header_of
from .interaction import Interaction, Request, decoded, is_event_stream
from .network import Guard
from .private import patched_transports
from .scrubbing import Scrubber, keys_in
from .tape import Tape

RECORD_VARIABLE = "GNL_RECORD"
"""Environment variable: ``1`` records anew what is otherwise played."""

_OFF = frozenset({"", "0", "false", "no", "off"})
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Settings:
    path: Path
    record: bool | None
    replace: Mapping[str, str]
    allow: frozenset[str]
    ignore: frozenset[str]
    allow_hosts: tuple[str, ...]
    ordered: bool
    note: str
    on_request: Callable[[Request], None] | None

    @property
    def recording(self) -> bool:
        if self.record is not None:
            return self.record
        return os.environ.get(RECORD_VARIABLE, "").strip().lower() not in _OFF


def use_cassette(
    path: str | os.PathLike[str],
    *,
    record: bool | None = None,
    replace: Mapping[str, str] | None = None,
    allow: Iterable[str] = (),
    ignore: Iterable[str] = (),
    allow_hosts: Iterable[str] = (),
    ordered: bool = False,
    note: str = "",
    on_request: Callable[[Request], None] | None = None,
) -> "CassetteUse":
    """Answer this process's HTTP requests from a recording, with the network shut.

    As a context manager (``with`` or ``async with``) or a decorator of functions and coroutines. Each recorded answer is
    given once, to the same method, host, path, query and body; requests that are the same get their answers in the
    recorded order. Anything else is refused, and raised again when the block is left, whatever swallowed it.

    Args:
        path: The cassette, a YAML file.
        record: Send everything and record it anew; by default where the environment says ``GNL_RECORD=1``.
        replace: Secrets, and what stands in their place, in the file and when requests are compared.
        allow: Texts that look like secrets and are none.
        ignore: Fields of JSON bodies that are not compared, such as ``metadata.trace_id`` or ``messages.cache_control``.
        allow_hosts: Hosts that may be reached all the same, such as a server of the test's own.
        ordered: An answer behind the last one given is not given any more.
        note: What the header of a recording says besides server, model, client and date.
        on_request: Called with each request, before it is answered or refused.

    Raises:
        CassetteMissError: A request has no recorded answer.
        NetworkRefusedError: Code opened a socket, or looked a host up.
        CassetteSecretError: The recording holds a secret; it was not written.
        CassetteUnreadableError: The file is no cassette.

    Example:
        >>> with use_cassette("cassettes/refund.yaml") as cassette:     # doctest: +SKIP
        ...     agent.invoke(question)
        >>> cassette.unplayed                                           # doctest: +SKIP
        ()
    """
    return CassetteUse(
        _Settings(
            path=Path(path),
            record=record,
            replace=dict(replace or {}),
            allow=frozenset(allow),
            ignore=INVENTED | frozenset(ignore),
            allow_hosts=tuple(allow_hosts),
            ordered=ordered,
            note=note,
            on_request=on_request,
        )
    )


@dataclass(eq=False)
class ActiveCassette:
    """What a test can ask of the cassette that it uses, also after it was left."""

    _tape: Tape = field(repr=False)

    @property
    def path(self) -> str:
        """The file."""
        return self._tape.path

    @property
    def recording(self) -> bool:
        """Whether everything is sent and recorded anew."""
        return self._tape.recording

    @property
    def requests(self) -> tuple[Request, ...]:
        """What was asked so far, without secrets, refused requests included."""
        return tuple(self._tape.requests)

    @property
    def played(self) -> tuple[int, ...]:
        """The numbers of the interactions whose answers were given, from 1, in that order."""
        return self._tape.played

    @property
    def unplayed(self) -> tuple[int, ...]:
        """The numbers of the interactions whose answers nobody has asked for."""
        count = len(self._tape.interactions or ())
        return tuple(number for number in range(1, count + 1) if number not in self.played)


class CassetteUse:
    """What ``use_cassette`` returns: enter it, or decorate with it."""

    def __init__(self, settings: _Settings) -> None:
        self._settings = settings
        self._open: list[tuple[Tape, ExitStack]] = []

    def __enter__(self) -> ActiveCassette:
        """Shut the network and answer from the cassette."""
        tape = _tape(self._settings)
        with ExitStack() as stack:
            tape.guard.shut()
            stack.callback(tape.guard.open)
            stack.enter_context(patched_transports(tape))
            self._open.append((tape, stack.pop_all()))
        return ActiveCassette(tape)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Open the network, write what was recorded, and raise what was refused, whatever has become of it.

        Raises:
            CassetteError: See ``use_cassette``.
        """
        tape, stack = self._open.pop()
        stack.close()
        refused: list[CassetteError] = [*tape.missed, *tape.guard.refused]
        if (
            refused
            and not isinstance(error, CassetteError)
            and (error is None or isinstance(error, Exception))
        ):
            # SDKs make a connection error of it, and agents go on from that: the first one is what happened.
            raise refused[0] from error
        if tape.recording and error is None:
            _write(tape, self._settings)

    async def __aenter__(self) -> ActiveCassette:
        """As ``with``."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As ``with``."""
        self.__exit__(kind, error, trace)

    def __call__(self, function: _F) -> _F:
        """Use the cassette, from its beginning, in each call of a function or coroutine."""
        settings = self._settings

        @wrapt.decorator
        def within(wrapped: Callable[..., Any], _instance: Any, args: Any, kwargs: Any) -> Any:
            if inspect.iscoroutinefunction(wrapped):
                return _awaited(settings, wrapped, args, kwargs)
            with CassetteUse(settings):
                return wrapped(*args, **kwargs)

        return cast("_F", within(function))

    def __repr__(self) -> str:
        return f"use_cassette({str(self._settings.path)!r})"

    def __copy__(self) -> Self:
        return type(self)(self._settings)


async def _awaited(settings: _Settings, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with CassetteUse(settings):
        return await function(*args, **kwargs)


def _tape(settings: _Settings) -> Tape:
    recording = settings.recording
    found = None if recording or not settings.path.exists() else layout.contents(settings.path)
    path = str(settings.path)
    return Tape(
        path=path,
        interactions=None if found is None else found.interactions,
        by_conversation=found is not None and found.by_conversation,
        recording=recording,
        scrubber=Scrubber(settings.replace, settings.allow),
        guard=Guard(path, settings.allow_hosts, recording=recording),
        ignored=settings.ignore,
        ordered=settings.ordered,
        on_request=settings.on_request,
    )


def _write(tape: Tape, settings: _Settings) -> None:
    """Write what was recorded, unless it holds a secret; a block that sent nothing leaves the file as it is."""
    if not tape.recorded:
        return
    interactions = [_clean(tape, number, each) for number, each in enumerate(tape.recorded, start=1)]
    found = tape.scrubber.found_in(interactions, {*tape.credentials(), *keys_in(os.environ)})
    if found:
        raise CassetteSecretError(path=tape.path, found=found)
    text = layout.written(interactions, header_of(tape.recorded, settings.note))
    settings.path.parent.mkdir(parents=True, exist_ok=True)
    draft = settings.path.with_name(f".{settings.path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(settings.path)


def _clean(tape: Tape, number: int, interaction: Interaction) -> Interaction:
    try:
        response = decoded(interaction.response)
    except DecodingError as error:
        problem = f"interaction {number} was recorded, but {error}"
        raise CassetteUnreadableError(path=tape.path, problem=problem) from error
    if is_event_stream(response.content_type):
        # The two line ends of an event mean the same, and only one of them can be read in a file.
        response = replace(response, body=response.body.replace(b"\r\n", b"\n"))
    return Interaction(tape.scrubber.request(interaction.request), tape.scrubber.response(response))
