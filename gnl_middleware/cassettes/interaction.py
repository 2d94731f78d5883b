"""What a cassette holds: requests and their answers, frozen, without I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gnl_middleware.wire.decoding import plain_body

_ABOUT_THE_WAY = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"}
)

Headers = Mapping[str, tuple[str, ...]]
"""Header names in lower case, and their values."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request over HTTP.

    Attributes:
        method: Such as ``POST``.
        uri: The whole URI, with its query.
        headers: Its headers.
        body: Its body as it is sent; empty where it has none.
    """

    method: str
    uri: str
    headers: Headers = field(default_factory=dict[str, tuple[str, ...]])
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """The value of its ``content-type``, or an empty text."""
        return first(self.headers, "content-type")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer over HTTP.

    Attributes:
        status: Such as 200.
        reason: The words beside the status.
        headers: Its headers.
        body: Its body, decoded.
    """

    status: int
    reason: str
    headers: Headers = field(default_factory=dict[str, tuple[str, ...]])
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """The value of its ``content-type``, or an empty text."""
        return first(self.headers, "content-type")


@dataclass(frozen=True, slots=True)
class Interaction:
    """A recorded request and its answer."""

    request: Request
    response: Response


def first(headers: Headers, name: str) -> str:
    """The first value of a header; an empty text where it is not there."""
    return next(iter(headers.get(name, ())), "")


def is_json(content_type: str) -> bool:
    """Whether a content type says JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_event_stream(content_type: str) -> bool:
    """Whether a content type says server-sent events."""
    return content_type.partition(";")[0].strip().lower() == "text/event-stream"


def decoded(response: Response) -> Response:
    """The answer with its plain body, and without the headers that speak of how it was sent.

    Raises:
        DecodingError: The encoding is unknown here, or the body is damaged.
    """
    body = plain_body(response.body, first(response.headers, "content-encoding"))
    headers = {name: values for name, values in response.headers.items() if name not in _ABOUT_THE_WAY}
    return Response(response.status, response.reason, headers, body)
