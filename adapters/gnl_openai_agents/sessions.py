"""Sessions of the SDK through the journal: what was read is read back, and every item is written once.

A session's history is not part of the run's own database, so a write can be cut off between the two. What the session
held before a write is recorded first: after a crash, the write is looked for behind that, and made where it is missing.
"""

import contextlib
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any

from agents import OpenAIConversationsSession, Session

from gnl_middleware import UnjournaledCallError
from gnl_middleware.adapter import FunctionCall, current_session, digest, perform_async

from .errors import passing
from .private import awaited, compacts, takes_wrapper
from .requests import items_of
from .values import plain

_leg: ContextVar[int] = ContextVar("gnl_openai_agents_leg", default=0)

_REMEDY = (
    "Its history is kept or rewritten by a server, and nobody could tell what a crash left there. Use a session that "
    "keeps its items itself, such as SQLiteSession or SQLAlchemySession."
)


@contextlib.contextmanager
def leg_entered(replies: int) -> Generator[None]:
    """Name the part of a run that goes on from a saved state of so many replies: its reads are not those of another."""
    token = _leg.set(replies)
    try:
        yield
    finally:
        _leg.reset(token)


def journaled_session(session: Session) -> Session:
    """A session whose reads and writes go through the journal; itself if they do already.

    Raises:
        UnjournaledCallError: A server keeps its history.

    Example:
        >>> session = journaled_session(SQLiteSession("ann"))     # doctest: +SKIP
    """
    if isinstance(session, _Journaled):
        return session
    if isinstance(session, OpenAIConversationsSession) or compacts(session):
        raise passing(UnjournaledCallError(kind="session", name=type(session).__name__, remedy=_REMEDY))
    made: Any = _WithWrapper(session) if takes_wrapper(session) else _Plain(session)
    return made


class _Journaled:
    """What both kinds of sessions share."""

    def __init__(self, session: Session) -> None:
        self._gnl_session = session

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_gnl"):
            raise AttributeError(name)
        return getattr(self._gnl_session, name)

    @property
    def session_id(self) -> str:
        return self._gnl_session.session_id

    @property
    def session_settings(self) -> Any:
        return self._gnl_session.session_settings

    @session_settings.setter
    def session_settings(self, settings: Any) -> None:
        self._gnl_session.session_settings = settings

    async def _get(self, limit: int | None, options: dict[str, Any]) -> Any:
        async def read() -> Any:
            return [plain(item) for item in await awaited(self._gnl_session.get_items(limit, **options))]

        return await self._value(f"read:{limit}", read)

    async def _add(self, items: list[Any], options: dict[str, Any]) -> None:
        if current_session() is None:
            await awaited(self._gnl_session.add_items(items, **options))
            return
        given = items_of(items)
        what = digest(given)
        fresh = False

        async def count() -> int:
            nonlocal fresh
            fresh = True
            return len(await awaited(self._gnl_session.get_items(None, **options)))

        before = await self._value(f"before:{what}", count)

        async def write() -> None:
            if fresh or not await self._holds(given, before, options):
                await awaited(self._gnl_session.add_items(items, **options))

        await self._value(f"add:{what}", write)

    async def _holds(self, items: list[Any], before: int, options: dict[str, Any]) -> bool:
        held = [plain(item) for item in await awaited(self._gnl_session.get_items(None, **options))]
        ends = range(before, len(held) - len(items) + 1)
        return any(held[start : start + len(items)] == items for start in ends)

    async def _pop(self, options: dict[str, Any]) -> Any:
        async def pop() -> Any:
            return plain(await awaited(self._gnl_session.pop_item(**options)))

        return await self._value("pop", pop)

    async def _clear(self, options: dict[str, Any]) -> None:
        async def clear() -> None:
            await awaited(self._gnl_session.clear_session(**options))

        await self._value("clear", clear)

    async def _value(self, what: str, body: Callable[[], Awaitable[Any]]) -> Any:
        session = current_session()
        if session is None:
            return await body()
        name = f"session:{self.session_id}:{_leg.get()}:{what}"
        call = FunctionCall(name=name, arguments={}, kind="value", as_control=passing)
        return await perform_async(session, call, body)


class _Plain(_Journaled):
    """A session that is told nothing of the run."""

    async def get_items(self, limit: int | None = None) -> Any:
        return await self._get(limit, {})

    async def add_items(self, items: list[Any]) -> None:
        await self._add(items, {})

    async def pop_item(self) -> Any:
        return await self._pop({})

    async def clear_session(self) -> None:
        await self._clear({})


class _WithWrapper(_Journaled):
    """A session that is told the context of the run with each call."""

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> Any:
        return await self._get(limit, {"wrapper": wrapper})

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        await self._add(items, {"wrapper": wrapper})

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        return await self._pop({"wrapper": wrapper})

    async def clear_session(self, *, wrapper: Any = None) -> None:
        await self._clear({"wrapper": wrapper})
