"""What protects a journal's rows: an integrity key, encryption, and redaction; reaches every statement with its connection."""

import base64
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gnl_middleware import codec
from gnl_middleware.errors import JournalKeyError

from .encryption import Encryption, is_encrypted, key_id_of

OPTION = "gnl_protection"
"""The execution option of SQLAlchemy that carries it, as the map of schemas is carried."""

SHORTEST_KEY = 32
"""Bytes that an integrity key has at least: ``secrets.token_bytes(32)``."""

Redact = Callable[[str], str]
"""Takes a text that is about to be written and gives the text to write."""

_SEAL = 16
_KEYED = "hmac-sha256"
_ENCRYPTED_TEXT = "$gnl-encrypted:"


class _Connection(Protocol):
    def get_execution_options(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Protection:
    """How a journal is protected; journals of one address share a writer, and so one of these.

    Attributes:
        integrity_key: What seals of rows and heads of chains are made with; None for plain digests.
        encryption: How payloads are encrypted; None for plain ones.
        redact: What texts pass before they are written; None where they are written as they are.

    Raises:
        TypeError: The integrity key is no bytes.
        ValueError: It is shorter than ``SHORTEST_KEY``.
    """

    integrity_key: bytes | None = field(default=None, repr=False)
    encryption: Encryption | None = None
    redact: Redact | None = None

    def __post_init__(self) -> None:
        """Refuse keys that protect nothing."""
        key = self.integrity_key
        if key is None:
            return
        if not isinstance(key, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's
            raise TypeError(f"integrity_key= takes bytes, not {type(key).__name__}: secrets.token_bytes(32)")
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"an integrity key has at least {SHORTEST_KEY} bytes, not {len(key)}")

    def check(self) -> None:
        """Raise JournalKeyError where nothing could be written."""
        if self.encryption is not None:
            self.encryption.check()

    def seal(self, kind: str, cells: Iterable[Any]) -> str:
        """A digest of cells that were written together; with a key nobody else can make it.

        Args:
            kind: What is sealed; a seal of one kind is none of another.
            cells: Texts, numbers, bytes and None.
        """
        told = repr(tuple(cells)).encode("utf-8", "surrogatepass")
        if self.integrity_key is None:
            # A head stands for a whole run, and may be kept where nobody changes it.
            return codec.content_hash(told)[: None if kind == "head" else _SEAL]
        mac = _mac(self.integrity_key, kind.encode() + b"\x00" + told)
        return f"{_KEYED}:{_name(self.integrity_key)}:{mac}"

    def fits(self, kind: str, cells: Iterable[Any], stored: Any, *, where: str) -> bool:
        """Whether a stored seal is the one of these cells.

        Raises:
            JournalKeyError: It was made with another key, with one where none is given, or without one.
        """
        made = self.seal(kind, cells)
        if made == stored and self.integrity_key is None:
            return True  # a digest that everybody can make: how long it takes to compare tells nothing
        if not isinstance(stored, str):
            return False
        self._check_key(stored, where)
        return hmac.compare_digest(made.encode(), stored.encode("utf-8", "surrogatepass"))

    def _check_key(self, stored: str, where: str) -> None:
        name = stored.split(":")[1] if stored.startswith(f"{_KEYED}:") and stored.count(":") > 1 else None
        if self.integrity_key is None:
            if name is not None:
                problem = f"it was sealed with integrity key {name}, and the journal was opened without one"
                raise JournalKeyError(where=where, key_id=name, problem=problem)
        elif name is None:
            problem = "it was not sealed with an integrity key: written before there was one, or by somebody without it"
            raise JournalKeyError(where=where, key_id="", problem=problem)
        elif name != _name(self.integrity_key):
            problem = f"it was sealed with integrity key {name}, and the journal was opened with {_name(self.integrity_key)}"
            raise JournalKeyError(where=where, key_id=name, problem=problem)

    def hidden(self, data: bytes, *bound: str) -> bytes:
        """Bytes as they are stored, readable only together with the same ``bound`` texts where they are encrypted."""
        return data if self.encryption is None else self.encryption.encrypted(data, *bound)

    def shown(self, data: bytes, *bound: str, where: str) -> bytes:
        """Stored bytes, readable.

        Raises:
            JournalKeyError: Their key is not known.
        """
        if not is_encrypted(data):
            return data
        if self.encryption is None:
            key_id = key_id_of(data)
            problem = f"it is encrypted with key {key_id!r}, and the journal was opened without encryption"
            raise JournalKeyError(where=where, key_id=key_id, problem=problem)
        return self.encryption.decrypted(data, *bound, where=where)

    def hidden_text(self, text: str | None, *bound: str) -> str | None:
        """The same for a text column."""
        if text is None or self.encryption is None:
            return text
        hidden = self.encryption.encrypted(text.encode("utf-8", "surrogatepass"), *bound)
        return _ENCRYPTED_TEXT + base64.b64encode(hidden).decode()

    def shown_text(self, text: str | None, *bound: str, where: str) -> str | None:
        """The same for a text column.

        Raises:
            JournalKeyError: Its key is not known.
            ValueError: It is none that was written.
        """
        if text is None or not text.startswith(_ENCRYPTED_TEXT):
            return text
        hidden = base64.b64decode(text.removeprefix(_ENCRYPTED_TEXT), validate=True)
        return self.shown(hidden, *bound, where=where).decode("utf-8", "surrogatepass")

    def redacted(self, data: bytes) -> bytes:
        """Encoded data with its texts redacted.

        Raises:
            UnserializableValueError: The function failed: what it should have taken away is not written.
        """
        return data if self.redact is None else codec.redacted(data, self.redact)

    def as_written(self, value: Any) -> Any:
        """A value as it would be read from the journal by a person."""
        return value if self.redact is None else codec.outline(self.redacted(codec.encode(value)))

    def redacted_text(self, text: str) -> str:
        """A text of ours about an error, redacted; where that fails, nothing of it is kept."""
        if self.redact is None:
            return text
        try:
            told: object = self.redact(text)
        except Exception as error:  # noqa: BLE001 - the caller's function may fail in any way
            told = error
        if type(told) is str:
            return told
        return f"(this text could not be redacted: {type(told).__name__})"


NONE = Protection()
"""Nothing but digests."""


def protection_of(connection: _Connection) -> Protection:
    """The protection of the journal that a connection belongs to."""
    return connection.get_execution_options().get(OPTION, NONE)


def _mac(key: bytes, told: bytes) -> str:
    return hmac.digest(key, told, "sha256").hex()


def _name(key: bytes) -> str:
    """Tells keys apart without giving any of them away."""
    return _mac(key, b"gnl name of this key")[:8]
