"""What must not be written: allow-listed headers, names that hold secrets, and shapes by which secrets are known."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import parse_qsl, quote_plus, urlsplit, urlunsplit

from .interaction import Headers, Interaction, Request, Response, is_event_stream, is_json

SCRUBBED = "scrubbed"
"""What stands in the place of a secret."""

KEPT_OF_REQUESTS = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta"})
KEPT_OF_RESPONSES = frozenset({"content-type", "location", "retry-after", "retry-after-ms", "x-should-retry"})

_SECRET_HEADERS = frozenset(
    {"authorization", "cookie", "proxyauthorization", "setcookie", "xapikey", "apikey"}
)
_SECRET_NAMES = frozenset(
    {
        *(
            "apikey",
            "accesskey",
            "accesskeyid",
            "secretkey",
            "secretaccesskey",
            "privatekey",
            "subscriptionkey",
        ),
        *(
            "accesstoken",
            "refreshtoken",
            "idtoken",
            "authtoken",
            "sessiontoken",
            "authorizationtoken",
            "bearertoken",
        ),
        *(
            "secret",
            "clientsecret",
            "password",
            "passwd",
            "authorization",
            "cookie",
            "setcookie",
            "credentials",
        ),
        *("organization", "organizationid", "organisation", "orgid", "xapikey", "signature"),
    }
)
_SECRET_IN_QUERIES = _SECRET_NAMES | {"key", "token", "sig", "email"}
_PERSONAL_AT_THE_TOP = frozenset({"user", "userid", "email"})
_CONVERSATION = frozenset(
    {
        *(
            "messages",
            "input",
            "content",
            "choices",
            "output",
            "delta",
            "item",
            "part",
            "tool_calls",
            "arguments",
        ),
        *("properties", "parameters", "input_schema", "schema", "instructions", "system", "prompt"),
    }
)
"""Where the model and its tools speak: a tool's argument that is called ``password`` is what the agent works on, and
rewriting it would change what is replayed. These are searched for the shapes of secrets only."""

_EDGE = r"(?<![A-Za-z0-9_-])"
_SHAPES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(_EDGE + pattern)
    for name, pattern in {
        "an OpenAI or Anthropic key": r"sk-[A-Za-z0-9_-]{16,}",
        "a Google key": r"AIza[0-9A-Za-z_-]{30,}",
        "an AWS key": r"(?:AKIA|ASIA)[0-9A-Z]{16}",
        "a GitHub token": r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
        "a Slack token": r"xox[abeprs]-[A-Za-z0-9-]{10,}",
        "a Stripe key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
        "a Hugging Face token": r"hf_[A-Za-z0-9]{30,}",
        "a provider's key": r"(?:gsk|xai|pplx|tvly|lsv2_pt|lsv2_sk|r8)[_-][A-Za-z0-9_-]{20,}",
        "a bearer token": r"[Bb]earer +[A-Za-z0-9._~+/-]{16,}",
        "a JSON web token": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
        "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        "an organisation": r"org-[A-Za-z0-9]{16,}",
        "a project": r"proj_[A-Za-z0-9]{16,}",
        "a cookie": r"(?:__cf_bm|_cfuvid|sessionid|connect\.sid)=[^\s;\"']{8,}",
        "a password in an address": r"[a-z][a-z0-9+.]*://[^\s/@:\"']+:[^\s/@\"']+@",
    }.items()
}
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}")
_RESERVED = re.compile(
    r"(?:^|[.@])(?:example\.(?:com|net|org)|(?:example|test|invalid|localhost))$", re.IGNORECASE
)
_ERROR = 400
_SHORTEST = 8


@dataclass(frozen=True)
class Scrubber:
    """Takes secrets out of requests and answers, and finds those that are left.

    Attributes:
        replacements: Texts that must not be written, and what to write instead.
        allowed: Texts that are known to be harmless.
    """

    replacements: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed: frozenset[str] = frozenset()

    def request(self, request: Request) -> Request:
        """A request without secrets; the same for the same request, so that it can still be matched."""
        return Request(
            method=request.method,
            uri=self._replaced(_scrubbed_uri(request.uri)),
            headers=_kept(request.headers, KEPT_OF_REQUESTS),
            body=self._replaced_bytes(_scrubbed_body(request.body, request.content_type)),
        )

    def response(self, response: Response) -> Response:
        """An answer without secrets."""
        body = _scrubbed_body(response.body, response.content_type)
        if response.status >= _ERROR:
            # The texts of providers' errors name keys and organisations; nobody works on these.
            body = _without_shapes(body)
        headers = _kept(response.headers, KEPT_OF_RESPONSES)
        if "location" in headers:
            headers["location"] = tuple(self._replaced(_scrubbed_uri(value)) for value in headers["location"])
        return replace(response, headers=headers, body=self._replaced_bytes(body))

    def found_in(self, interactions: Iterable[Interaction], known: Iterable[str] = ()) -> list[str]:
        """What is left that must not be written, in words that do not repeat it.

        Args:
            interactions: What is about to be written, scrubbed.
            known: Secrets of this process: credentials that requests carried, keys in the environment.
        """
        secrets = [secret for secret in known if len(secret) >= _SHORTEST and secret not in self.allowed]
        found: dict[str, None] = {}
        for number, interaction in enumerate(interactions, start=1):
            for place, text in _texts(interaction):
                for kind in self._kinds(text, secrets):
                    found[f"interaction {number}, {place}: {kind}"] = None
        return list(found)

    def _kinds(self, text: str, secrets: list[str]) -> Iterator[str]:
        for kind, shape in _SHAPES.items():
            if any(match[0] not in self.allowed for match in shape.finditer(text)):
                yield kind
        mails = {match[0] for match in _MAIL.finditer(text)} - self.allowed
        if any(not _RESERVED.search(mail) for mail in mails):
            yield "an e-mail address"
        if any(secret in text for secret in secrets):
            yield "a credential of this process"

    def _replaced(self, text: str) -> str:
        for secret, placeholder in self.replacements.items():
            text = text.replace(secret, placeholder)
        return text

    def _replaced_bytes(self, body: bytes) -> bytes:
        for secret, placeholder in self.replacements.items():
            body = body.replace(secret.encode(), placeholder.encode())
        return body


def credentials_of(request: Request) -> Iterator[str]:
    """The secrets that a request carries in its headers and its query: they must not appear anywhere else."""
    for name, values in request.headers.items():
        if _plain(name) in _SECRET_HEADERS or _plain(name) in _SECRET_NAMES:
            for value in values:
                yield value.rpartition(" ")[2]
    for name, value in parse_qsl(urlsplit(request.uri).query):
        if _plain(name) in _SECRET_IN_QUERIES:
            yield value


def keys_in(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables that hold keys by their names."""
    for name, value in environment.items():
        if name.upper().endswith(("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_ACCESS_KEY")):
            yield value


def _texts(interaction: Interaction) -> Iterator[tuple[str, str]]:
    request, response = interaction.request, interaction.response
    yield "request address", request.uri
    yield "request headers", _as_text(request.headers)
    yield "request body", request.body.decode("utf-8", "replace")
    yield "response headers", _as_text(response.headers)
    yield "response body", response.body.decode("utf-8", "replace")


def _as_text(headers: Headers) -> str:
    return "\n".join(f"{name}: {value}" for name, values in headers.items() for value in values)


def _kept(headers: Headers, allowed: frozenset[str]) -> dict[str, tuple[str, ...]]:
    return {name: values for name, values in headers.items() if name in allowed}


def _scrubbed_uri(uri: str) -> str:
    address = urlsplit(uri)
    netloc = address.netloc.rpartition("@")[2]
    pieces = [_scrubbed_pair(piece) for piece in address.query.split("&")]
    return urlunsplit(address._replace(netloc=netloc, query="&".join(pieces)))


def _scrubbed_pair(piece: str) -> str:
    name, equals, _value = piece.partition("=")
    return f"{name}={quote_plus(SCRUBBED)}" if equals and _plain(name) in _SECRET_IN_QUERIES else piece


def _scrubbed_body(body: bytes, content_type: str) -> bytes:
    """A body without what its names say is secret; the very bytes where nothing is."""
    if is_event_stream(content_type):
        return b"\n".join(_scrubbed_line(line) for line in body.split(b"\n"))
    if content_type.startswith("application/x-www-form-urlencoded"):
        return b"&".join(
            _scrubbed_pair(piece.decode("latin-1")).encode("latin-1") for piece in body.split(b"&")
        )
    return _scrubbed_json(body) if is_json(content_type) or body[:1] in {b"{", b"["} else body


def _scrubbed_line(line: bytes) -> bytes:
    name, colon, data = line.partition(b":")
    if name != b"data" or not data.strip().startswith(b"{"):
        return line
    scrubbed = _scrubbed_json(data)
    return line if scrubbed == data else name + colon + b" " + scrubbed


def _scrubbed_json(body: bytes) -> bytes:
    try:
        value = json.loads(body)
    except ValueError:
        return body
    scrubbed = _scrubbed_value(value, _SECRET_NAMES | _PERSONAL_AT_THE_TOP)
    return body if scrubbed == value else json.dumps(scrubbed).encode()


def _scrubbed_value(value: Any, names: frozenset[str] = _SECRET_NAMES) -> Any:
    if isinstance(value, list):
        return [_scrubbed_value(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {name: _scrubbed_field(name, item, names) for name, item in fields.items()}


def _scrubbed_field(name: str, value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, str) and _plain(name) in names:
        return SCRUBBED if value else value
    return value if name in _CONVERSATION else _scrubbed_value(value)


def _without_shapes(body: bytes) -> bytes:
    text = body.decode("utf-8", "surrogateescape")
    for shape in _SHAPES.values():
        text = shape.sub(SCRUBBED, text)
    return text.encode("utf-8", "surrogateescape")


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
