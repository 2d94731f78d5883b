"""Where a journal is: a file, or a schema of a PostgreSQL database."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

DEFAULT_PATH = Path("gnl.db")
"""Where ``gnl`` looks for a journal that nobody named."""

DEFAULT_SCHEMA = "gnl"
"""The schema of a PostgreSQL database that holds a journal, where none is named."""

_DRIVER = "postgresql+psycopg"
_SERVERS = ("postgresql", "postgres", _DRIVER)
_UNSUPPORTED = ("mysql", "mariadb")
_PASSWORD = re.compile(r"(?<=:)[^:@/]*(?=@)|(?<=[?&]password=)[^&]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A journal's place; journals of one address share a writer thread within a process.

    Attributes:
        url: What SQLAlchemy connects to; of a server, with its password.
        path: The file, or None.
        schema: The namespace of the tables, or None in a file.
        pooled: A transaction pooler stands in between, so a connection keeps nothing from one transaction to the next.
    """

    url: str
    path: Path | None = None
    schema: str | None = None
    pooled: bool = False

    @property
    def shown(self) -> str:
        """The URL as errors and commands may show it, without its password."""
        if self.path is not None:
            return self.url
        scheme, separator, rest = self.url.partition("://")
        ours = [] if self.schema == DEFAULT_SCHEMA else [f"schema={self.schema}"]
        ours += ["pooled=true"] if self.pooled else []
        joined = ("&" if "?" in rest else "?") + "&".join(ours) if ours else ""
        return f"{scheme}{separator}{_PASSWORD.sub('***', rest)}{joined}"

    @property
    def place(self) -> str | None:
        """What commands to copy name; None where ``gnl`` finds it by itself."""
        if self.path is None:
            return self.shown
        return None if self.path == DEFAULT_PATH.absolute() else str(self.path)


def parse(url: str | os.PathLike[str], *, schema: str | None = None, pooled: bool = False) -> Address:
    """The address that a path or URL names.

    Args:
        url: For a server also with ``?schema=…`` and ``?pooled=true``.
        schema: The schema of a server's database.
        pooled: Whether a transaction pooler stands in between.

    Raises:
        ValueError: The URL has another scheme, or names no file.

    Example:
        >>> parse("postgresql://ann:secret@db/agents").shown
        'postgresql+psycopg://ann:***@db/agents'
    """
    text = os.fspath(url)
    scheme, separator, rest = text.partition("://")
    if separator and scheme in _SERVERS:
        return _server(rest, schema, pooled=pooled)
    if scheme.partition("+")[0] in _UNSUPPORTED and separator:
        raise ValueError(
            "MySQL and MariaDB are not supported: a claim must be won and read back in one statement that locks out a "
            "takeover, which is tested on SQLite and PostgreSQL only. Use a path, or postgresql://user@host/database"
        )
    if separator and scheme != "sqlite":
        raise ValueError(f"a journal is a path, sqlite:///path or postgresql://…, not {scheme}://…")
    if schema is not None or pooled:
        raise ValueError("a file has no schema and no pooler: they are options of postgresql://…")
    path = _path(text, rest if separator else None)
    return Address(f"sqlite:///{path}", path=path)


def _server(rest: str, schema: str | None, *, pooled: bool) -> Address:
    """Our own options may stand in the URL, so that wherever a URL is taken they can be given."""
    place, _, query = rest.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    named = dict(options)
    schema = schema or named.get("schema") or DEFAULT_SCHEMA
    pooled = pooled or named.get("pooled", "false").lower() in ("1", "true", "yes")
    others = urlencode(
        [(name, value) for name, value in options if name not in ("schema", "pooled")], safe="/"
    )
    url = f"{_DRIVER}://{place}" + (f"?{others}" if others else "")
    return Address(url, schema=schema, pooled=pooled)


def _path(text: str, rest: str | None) -> Path:
    if rest is None:
        name = text
    elif not rest.startswith("/"):
        raise ValueError(
            f"{text!r} has two slashes too few: write sqlite:///relative.db or sqlite:////absolute.db"
        )
    else:
        name = rest[1:]
    if not name or name == ":memory:" or "\x00" in name:
        raise ValueError(f"{text!r} names no file: a journal must survive its process")
    return Path(name).absolute()
