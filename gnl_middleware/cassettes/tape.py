"""One use of a cassette: which recorded answers have been given, what was recorded, and what was missed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .canonical import INVENTED, Asked, brief, difference
from .conversations import as_asked_for
from .errors import CassetteMissError, MissReason
from .interaction import Interaction, Request, Response
from .network import Guard
from .scrubbing import Scrubber, credentials_of

TELEMETRY = frozenset({("api.openai.com", "/v1/traces/ingest"), ("api.smith.langchain.com", None)})
"""Where SDKs report what they do, from a thread of their own: refused like anything else, but no test fails by it. A path
of None stands for any."""


@dataclass(eq=False)
class Tape:
    """The state of a cassette that is active.

    Attributes:
        path: The file, as messages show it.
        interactions: What it holds; None where there is no file.
        recording: Everything is sent, and recorded anew.
        scrubber: Takes secrets out.
        guard: Shuts the network.
        ignored: Fields of JSON bodies that are not compared.
        by_conversation: Requests are compared by what the model is told; answers are written as they are asked for.
        ordered: An answer that lies behind the last one given is not given any more.
        on_request: Called with each request that the client sends, before it is answered or missed.
        requests: The requests so far, without secrets.
        recorded: What was recorded, as it came: with secrets.
        missed: The requests that had no answer, telemetry left out.
    """

    path: str
    interactions: Sequence[Interaction] | None
    recording: bool
    scrubber: Scrubber
    guard: Guard
    ignored: frozenset[str] = INVENTED
    by_conversation: bool = False
    ordered: bool = False
    on_request: Callable[[Request], None] | None = None
    requests: list[Request] = field(default_factory=list[Request])
    recorded: list[Interaction] = field(default_factory=list[Interaction])
    missed: list[CassetteMissError] = field(default_factory=list[CassetteMissError])

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._known = [self._asked(each.request) for each in self.interactions or ()]
        self._played: list[int] = []
        self._asked_in_vain: list[Asked] = []

    @property
    def played(self) -> tuple[int, ...]:
        """The numbers of the interactions whose answers were given, from 1, in that order."""
        return tuple(index + 1 for index in self._played)

    def is_answered(self, request: Request) -> bool:
        """Whether the answer is in the cassette; while recording, none is.

        Raises:
            CassetteMissError: It is not, and nothing may be sent.
        """
        if self.recording:
            self.guard.allow(urlsplit(request.uri).hostname)
            return False
        with self._lock:
            asked = self._asked(request)
            if self._find(asked) is None:
                self._note(asked.request)
                raise self._miss(asked)
        return True

    def answer(self, request: Request) -> Response:
        """The next recorded answer to a request; it is given once.

        Raises:
            CassetteMissError: There is none.
        """
        with self._lock:
            asked = self._asked(request)
            self._note(asked.request)
            index = self._find(asked)
            if index is None or self.interactions is None:
                raise self._miss(asked)
            self._played.append(index)
            response = self.interactions[index].response
            return as_asked_for(request, response, str(index + 1)) if self.by_conversation else response

    def record(self, request: Request, response: Response) -> None:
        """Keep what was answered live."""
        with self._lock:
            self._note(self.scrubber.request(request))
            self.recorded.append(Interaction(request, response))

    def credentials(self) -> set[str]:
        """The secrets that the recorded requests carried where they are not written."""
        return {each for interaction in self.recorded for each in credentials_of(interaction.request)}

    def _note(self, request: Request) -> None:
        self.requests.append(request)
        if self.on_request is not None:
            self.on_request(request)

    def _asked(self, request: Request) -> Asked:
        return Asked(self.scrubber.request(request), self.ignored, by_conversation=self.by_conversation)

    def _find(self, asked: Asked) -> int | None:
        given = set(self._played)
        begin = self._played[-1] + 1 if self.ordered and self._played else 0
        candidates = (index for index in range(begin, len(self._known)) if index not in given)
        return next((index for index in candidates if self._known[index].same(asked)), None)

    def _miss(self, asked: Asked) -> CassetteMissError:
        same = [index for index, known in enumerate(self._known) if known.same(asked)]
        nearest = None if same else self._nearest(asked)
        before = sum(1 for each in self._asked_in_vain if each.same(asked))
        self._asked_in_vain.append(asked)
        error = CassetteMissError(
            reason=self._reason(same, nearest),
            path=self.path,
            method=asked.request.method,
            uri=asked.request.uri,
            body=brief(asked.request),
            interactions=len(self._known),
            played=len(self._played),
            recorded=len(same),
            asked=len(set(same) & set(self._played)) + before + 1,
            nearest=None if nearest is None else nearest + 1,
            differs=() if nearest is None else asked.differs(self._known[nearest]),
            diff="" if nearest is None else difference(self._known[nearest], asked),
        )
        if not _is_telemetry(asked.request):
            self.missed.append(error)
        return error

    def _reason(self, same: Sequence[int], nearest: int | None) -> MissReason:
        if self.interactions is None:
            return "no_cassette"
        if same:
            return "already_played" if set(same) <= set(self._played) else "out_of_order"
        return "nothing_similar" if nearest is None else "no_match"

    def _nearest(self, asked: Asked) -> int | None:
        """The most similar recorded request to the same host or path; of equal ones, one that is still to be given."""
        alike = [
            index
            for index, known in enumerate(self._known)
            if not {"host", "path"} <= set(asked.differs(known))
        ]
        given = set(self._played)
        return max(
            alike, key=lambda index: (self._known[index].likeness(asked), index not in given), default=None
        )


def _is_telemetry(request: Request) -> bool:
    address = urlsplit(request.uri)
    return any(address.hostname == host and path in {None, address.path} for host, path in TELEMETRY)
