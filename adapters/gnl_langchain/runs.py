"""Which run a call belongs to: named in the runnable's configuration, else open around the call."""

import contextlib
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from typing import Any

from gnl_middleware.adapter import OnNoRun, Session, session_for
from gnl_middleware.errors import GnlError

from .errors import passing
from .private import RUN_ID, running_configuration

_named: ContextVar[str | None] = ContextVar("gnl_langchain_named", default=None)


@contextlib.contextmanager
def run_named_in(config: Mapping[str, Any] | None) -> Generator[None]:
    """Find the run that this configuration names, if it names one: LangChain hands none on to a model's own methods."""
    named: Mapping[str, Any] = (config or {}).get("configurable") or {}
    run_id = named.get(RUN_ID)
    token = _named.set(_named.get() if run_id is None else str(run_id))
    try:
        yield
    finally:
        _named.reset(token)


def session_here(*, name: str, on_no_run: OnNoRun = "raise") -> Session | None:
    """The open run of the code that is running here.

    Raises:
        NoActiveRunError: There is none, and passing through is not allowed.
    """
    run_id = running_configuration().get(RUN_ID, _named.get())
    try:
        return session_for(name=name, run_id=None if run_id is None else str(run_id), on_no_run=on_no_run)
    except GnlError as error:
        raise passing(error) from None
