"""Bodies as they were before they were compressed for the way: what is stored can be read, with no optional package."""

import gzip
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, cast

_ABOUT_THE_WAY = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"}
)
_GZIP = b"\x1f\x8b"


class DecodingError(ValueError):
    """A body cannot be decoded."""


def plain_body(body: bytes, content_encoding: str) -> bytes:
    """A body as it was before it was compressed.

    Args:
        body: As it came.
        content_encoding: The header of that name; empty where there is none.

    Raises:
        DecodingError: The encoding is unknown here, or the body is damaged.
    """
    encodings = [each.strip().lower() for each in content_encoding.split(",")]
    for encoding in reversed([each for each in encodings if each and each != "identity"]):
        body = _decoded(body, encoding)
    return body


def _decoded(body: bytes, encoding: str) -> bytes:
    # An answer to HEAD, or one without content, may speak of an encoding that it does not use.
    if not body:
        return body
    decoder = _DECODERS.get(encoding)
    if decoder is None:
        raise DecodingError(f"its body is encoded as {encoding!r}, which is unknown here")
    try:
        return decoder(body)
    except DecodingError:
        raise
    except Exception as error:
        raise DecodingError(f"its body does not decode as {encoding} ({error})") from error


def _gzip(body: bytes) -> bytes:
    # Some recorders store the plain body beside the header that it came with.
    return gzip.decompress(body) if body.startswith(_GZIP) else body


def _deflate(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return zlib.decompress(body, -zlib.MAX_WBITS)


def _brotli(body: bytes) -> bytes:
    if find_spec("brotli") is None:
        raise DecodingError("its body is encoded as br: pip install brotli")
    import brotli  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  # ty: ignore[import-not-found]

    return cast("Any", brotli).decompress(body)


def _zstd(body: bytes) -> bytes:
    if find_spec("zstandard") is None:
        raise DecodingError("its body is encoded as zstd: pip install zstandard")
    import zstandard  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    # Streams do not say how long they will be, which the one-shot call would need.
    return cast("Any", zstandard).ZstdDecompressor().decompressobj().decompress(body)


_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
