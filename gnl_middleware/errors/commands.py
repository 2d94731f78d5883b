"""Command lines of ``gnl`` to copy into a shell."""

import shlex
from collections.abc import Sequence


def command(name: str, *positional: str, options: Sequence[str] = (), journal: str | None = None) -> str:
    r"""A command to copy, safe to print; ``$'…'`` (bash, zsh, ksh) carries what cannot be printed.

    Args:
        name: The command of ``gnl``.
        *positional: Its positional words, such as a run.
        options: Its options.
        journal: The journal, where ``gnl`` does not find it by itself.

    Example:
        >>> command("show", "order-7", journal="my runs.db")
        "gnl show order-7 --journal 'my runs.db'"
    """
    chosen = [*(("--journal", journal) if journal else ()), *options]
    # Behind "--" nothing is taken for an option, whatever a run is called.
    dashed = any(word.startswith("-") for word in positional)
    words = [*chosen, "--", *positional] if dashed else [*positional, *chosen]
    return " ".join(_quoted(word) for word in ("gnl", name, *words))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = "".join(_escaped_byte(byte) for byte in word.encode("utf-8", "surrogateescape"))
    return f"$'{escaped}'"


def _escaped_byte(byte: int) -> str:
    character = chr(byte)
    plain = character.isascii() and character.isprintable() and character not in "'\\"
    return character if plain else f"\\x{byte:02x}"
