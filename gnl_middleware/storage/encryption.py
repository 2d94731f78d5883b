"""Encryption of payloads: AES-GCM with keys of the caller's, named in each payload so that keys can change."""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gnl_middleware.errors import JournalKeyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_LENGTH = 32
"""Bytes of a key: AES-256."""

_MARK = b"\x00gnl-aes\x01"  # no JSON, no digest and no compressed payload begins with a zero byte
_NONCE = 12
_LONGEST_ID = 255


@dataclass(frozen=True, slots=True)
class Encryption:
    """How payloads are encrypted: arguments, messages, values, errors, and the texts of what went wrong.

    To rotate, name another key as ``current``: new payloads are written with it, and old ones stay readable for as long as
    ``key`` still gives theirs.

    Args:
        current: Id of the key that new payloads are written with; it is stored beside each, readable.
        key: Gives the 32 bytes of the key of an id; asked once for each id. It raises where it knows none.

    Raises:
        ModuleNotFoundError: The extra ``encryption`` is not installed.
        ValueError: The id is empty or too long.

    Example:
        >>> keys = {"2026-11": bytes(32)}
        >>> Encryption(current="2026-11", key=keys.__getitem__).current
        '2026-11'
    """

    current: str
    key: Callable[[str], bytes] = field(repr=False)
    _ciphers: "dict[str, AESGCM]" = field(
        default_factory=dict[str, "AESGCM"], init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Refuse early what could only fail at the first write."""
        if importlib.util.find_spec("cryptography") is None:
            raise ModuleNotFoundError(
                "Encryption needs a library: pip install 'gnl-middleware[encryption]'", name="cryptography"
            )
        if not 0 < len(self.current.encode()) <= _LONGEST_ID:
            raise ValueError(
                f"the id of a key has 1 to {_LONGEST_ID} bytes, not {len(self.current.encode())}"
            )

    def check(self) -> None:
        """Raise JournalKeyError unless there is a key to write with."""
        self._cipher(self.current, "a new payload")

    def encrypted(self, data: bytes, *bound: str) -> bytes:
        """The data under the current key; it can be read only together with the same ``bound`` texts.

        Raises:
            JournalKeyError: There is no such key.
        """
        name, nonce = self.current.encode(), os.urandom(_NONCE)
        sealed = self._cipher(self.current, "a new payload").encrypt(nonce, data, _bound(bound))
        return _MARK + bytes([len(name)]) + name + nonce + sealed

    def decrypted(self, data: bytes, *bound: str, where: str) -> bytes:
        """What ``encrypted`` was given.

        Raises:
            JournalKeyError: There is no key of that id, or it is another key, or the bytes are not what was written.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an extra, loaded by those who use it

        key_id, nonce, sealed = _parts(data, where)
        try:
            return self._cipher(key_id, where).decrypt(nonce, sealed, _bound(bound))
        except InvalidTag as error:
            problem = f"key {key_id!r} does not open it: it is another key, or the bytes were changed or belong elsewhere"
            raise JournalKeyError(where=where, key_id=key_id, problem=problem) from error

    def _cipher(self, key_id: str, where: str) -> "AESGCM":
        if (known := self._ciphers.get(key_id)) is not None:
            return known
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above

        try:
            key = self.key(key_id)
        except Exception as error:
            problem = f"Encryption(key=...) gives no key {key_id!r} ({type(error).__name__})"
            raise JournalKeyError(where=where, key_id=key_id, problem=problem) from error
        if not isinstance(key, bytes) or len(key) != KEY_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's
            problem = f"what Encryption(key=...) gives for {key_id!r} are not {KEY_LENGTH} bytes"
            raise JournalKeyError(where=where, key_id=key_id, problem=problem)
        return self._ciphers.setdefault(key_id, AESGCM(key))


def is_encrypted(data: bytes) -> bool:
    """Whether bytes of the journal are encrypted."""
    return data.startswith(_MARK)


def key_id_of(data: bytes) -> str:
    """The id of the key that encrypted bytes name.

    Raises:
        ValueError: They are cut off.
    """
    start = len(_MARK) + 1
    length = data[len(_MARK)] if len(data) >= start else 0
    if not length or len(data) < start + length + _NONCE:
        raise ValueError("its encrypted bytes are cut off")
    return data[start : start + length].decode()


def _parts(data: bytes, where: str) -> tuple[str, bytes, bytes]:
    try:
        key_id = key_id_of(data)
    except ValueError as error:
        raise JournalKeyError(where=where, key_id="", problem="its encrypted bytes are cut off") from error
    begin = len(_MARK) + 1 + len(key_id.encode())
    return key_id, data[begin : begin + _NONCE], data[begin + _NONCE :]


def _bound(texts: tuple[str, ...]) -> bytes:
    # With their lengths: no two lists of texts run into one.
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(b"%d:%b" % (len(each), each) for each in encoded)
