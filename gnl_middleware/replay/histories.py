"""What was worked out of a run's conversations, so that each request costs what is new in it, however long it is."""

from operator import is_
from typing import Any, Literal

from gnl_middleware.conversation import Request, Standing

Purpose = Literal["witnessed", "answered", "dangling"]


class Histories:
    """The last request of each scope, and how far its history was gone through, for each purpose.

    Attributes:
        described: What an adapter has described of the last request of a scope, by the adapter's name and the scope. It lives
            as long as the record, and no longer.
    """

    def __init__(self) -> None:
        self.described: dict[tuple[str, str], Any] = {}
        self._requests: dict[str, Request] = {}
        self._seen: dict[tuple[Purpose, str], tuple[tuple[Standing, ...], int]] = {}

    def follow(self, scope: str, request: Request) -> None:
        """Let a request go on from what was worked out of the last one of its scope."""
        earlier = self._requests.get(scope)
        if earlier is not None and earlier is not request:
            request.follow(earlier)
        self._requests[scope] = request

    def seen(self, purpose: Purpose, scope: str, request: Request) -> int:
        """How many standings of a request's history, from the first one on, hold nothing new for a purpose."""
        standings, number = self._seen.get((purpose, scope), ((), 0))
        # A request that follows another one has the same objects as far as nothing has changed.
        if all(map(is_, standings[:number], request.standings)):
            return number
        pairs = zip(standings[:number], request.standings, strict=False)
        return next((place for place, (one, other) in enumerate(pairs) if one is not other), number)

    def note_seen(self, purpose: Purpose, scope: str, request: Request, number: int) -> None:
        """Note that so many of the standings hold nothing new any more."""
        self._seen[purpose, scope] = request.standings, number

    def forget(self) -> None:
        """Go through all histories anew: what had been come to has not."""
        self._seen.clear()
