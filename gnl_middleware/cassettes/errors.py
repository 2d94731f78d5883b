"""What a cassette refuses, and what to do about it."""

from collections.abc import Sequence
from typing import Literal

from gnl_middleware.errors import GnlError
from gnl_middleware.errors.commands import command

MissReason = Literal["no_cassette", "already_played", "out_of_order", "no_match", "nothing_similar"]
"""Why a request has no recorded answer. ``no_cassette``: there is no file; ``already_played``: its answers have all been
given; ``out_of_order``: they lie behind one that was given; ``no_match``: a recorded request is like it, but differs;
``nothing_similar``: none is like it."""


class CassetteError(GnlError):
    """What ``gnl_middleware.cassettes`` raises."""


class CassetteMissError(CassetteError):
    """A request has no recorded answer; nothing was sent.

    Attributes:
        reason: See ``MissReason``.
        path: The cassette.
        method: Of the request.
        uri: Of the request, without secrets.
        recorded: How many answers the cassette holds for exactly this request.
        asked: How often it was asked, this time included.
        nearest: The number of the most similar recorded interaction, from 1; None where none is similar.
        differs: What differs from that one: ``method``, ``host``, ``path``, ``query``, ``body``.
        diff: The difference, readable.
    """

    def __init__(
        self,
        *,
        reason: MissReason,
        path: str,
        method: str,
        uri: str,
        body: str = "",
        interactions: int = 0,
        played: int = 0,
        recorded: int = 0,
        asked: int = 1,
        nearest: int | None = None,
        differs: Sequence[str] = (),
        diff: str = "",
    ) -> None:
        self.reason: MissReason = reason
        self.path, self.method, self.uri = path, method, uri
        self.recorded, self.asked = recorded, asked
        self.nearest, self.differs, self.diff = nearest, tuple(differs), diff
        lines = [f"No recorded answer, and nothing was sent ({reason}): {self._headline()}", ""]
        lines += [f"  {method} {uri}", *(f"  {line}" for line in body.splitlines())]
        lines += ["", f"Cassette: {path} ({interactions} recorded, {played} played)"]
        if nearest is not None:
            lines += [f"Nearest: interaction {nearest}, which differs in {' and '.join(self.differs)}"]
            lines += [f"  {line}" for line in diff.splitlines()]
        lines += ["", "How to fix:", *(f"  * {line}" for line in self._fixes())]
        super().__init__("\n".join(lines))

    def _headline(self) -> str:
        if self.reason == "no_cassette":
            return f"there is no cassette {self.path}."
        if self.reason == "already_played":
            return (
                f"{_answers(self.recorded)} recorded for this request, and it is asked {_times(self.asked)}."
            )
        if self.reason == "out_of_order":
            return "its answer lies behind one that was given already, and this cassette is played in order."
        if self.reason == "no_match":
            return "no recorded request is the same."
        return "no recorded request is like it."

    def _fixes(self) -> list[str]:
        again = "record again, with the provider's key and GNL_RECORD=1 in the environment"
        if self.reason == "no_cassette":
            return [f"to make the cassette, {again}", "if it should exist, check the path"]
        if self.reason == "already_played":
            return [
                "if the code asks once too often, that is what the cassette has found",
                f"if it is meant, {again}",
            ]
        if self.reason == "out_of_order":
            return ["ask in the recorded order, or play without ordered=True", f"else {again}"]
        if self.reason == "no_match":
            return [
                f"if the request changed on purpose, {again}",
                "if it changes with every run (a time, a random id), take it from run.now() or run.uuid4()",
                'if it means nothing, leave it out of the comparison: use_cassette(..., ignore=["metadata.trace_id"])',
            ]
        return [
            f"to add this request, {again}",
            "if it goes to a server of the test itself, allow_hosts=[...]",
        ]


def _answers(count: int) -> str:
    return "1 answer is" if count == 1 else f"{count} answers are"


def _times(count: int) -> str:
    return "again" if count == 1 else f"{count} times"


class NetworkRefusedError(CassetteError, ConnectionError):
    """Code tried to open a socket while a cassette was played; nothing was opened.

    Attributes:
        target: Where to, as ``host:port`` or the name that was looked up.
        path: The cassette.
    """

    def __init__(self, *, target: str, path: str) -> None:
        self.target, self.path = target, path
        super().__init__(
            f"A connection to {target} was refused: the cassette {path} is active, and what it does not answer must not "
            f"reach a network, whatever the transport. If the target belongs to the test itself, name it: "
            f"use_cassette({path!r}, allow_hosts=[...])."
        )


class CassetteSecretError(CassetteError):
    """What was recorded holds what must not be written, so no file was written.

    Attributes:
        path: The cassette.
        found: Where and what, such as ``interaction 2, response body: an e-mail address``; never the secret itself.
    """

    def __init__(self, *, path: str, found: Sequence[str]) -> None:
        self.path, self.found = path, tuple(found)
        listed = "".join(f"\n  - {each}" for each in self.found)
        super().__init__(
            f"The recording was not written to {path}: whoever reads the repository would read these too.{listed}\n"
            f"Replace them, for matching as well as in the file, with use_cassette(..., replace={{secret: placeholder}}); "
            f"what is harmless passes with allow=[text]."
        )


class CassetteUnreadableError(CassetteError):
    """A file is no cassette, or its bodies cannot be decoded.

    Attributes:
        path: The file.
        problem: What is wrong with it.
    """

    def __init__(self, *, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(
            f"{path} cannot be played: {problem}. Nothing of it was used. Restore the file, or delete it and record again "
            f"with GNL_RECORD=1 in the environment."
        )


class CassetteExportError(CassetteError):
    """A run cannot become a cassette, or a cassette a run.

    Attributes:
        run_id: The run.
        problem: Why not.
    """

    def __init__(self, *, run_id: str, problem: str) -> None:
        self.run_id, self.problem = run_id, problem
        super().__init__(
            f"Run {run_id!r}: {problem}. A cassette holds what models were asked and answered, so nothing was written. Look "
            f"at the run with `{command('show', run_id)}`."
        )
