"""The documented surface for adapters, also third-party ones: how to write a step.

An adapter describes a call (``ModelCall``, ``ToolCall`` or ``FunctionCall``), finds the run that is open around it, and
performs it:

    session = session_for(name="gpt-4o")
    value = perform(session, call, body)                 # or: await perform_async(session, call, body)

``perform`` answers from the record or runs the body once. What the framework makes up anew each time (message ids, run
ids, timestamps) must not be in what a call is described by; what matters must be.
"""

import os

from gnl_middleware.codec import decode, digest, encode, register
from gnl_middleware.conversation import Request
from gnl_middleware.errors import NoActiveRunError
from gnl_middleware.errors.base import passing_as
from gnl_middleware.identity import (
    Message,
    Place,
    call_part,
    checked_run_id,
    node_part,
    without_secrets,
)
from gnl_middleware.journal import Journal
from gnl_middleware.model import ReplyCall
from gnl_middleware.policy import Policy, label_of, remember
from gnl_middleware.replay.call import (
    Call,
    Ending,
    FunctionCall,
    ModelCall,
    Reply,
    ToolCall,
    judge_endings_with,
    request_of,
)
from gnl_middleware.replay.snapshots import Snapshot
from gnl_middleware.session.context import (
    FindPlaces,
    current_scope,
    current_session,
    current_steps,
    find_places_with,
    find_session,
)
from gnl_middleware.session.functions import OnNoRun
from gnl_middleware.session.handing_over import FinishedCall, FinishedTurn, History, Resume, wants_handover
from gnl_middleware.session.observing import Observation, observe
from gnl_middleware.session.perform import perform, perform_async
from gnl_middleware.session.run import Run
from gnl_middleware.session.session import Session
from gnl_middleware.session.sharing import guard
from gnl_middleware.session.streaming import perform_stream, perform_stream_async

__all__ = [
    "Call",
    "Ending",
    "FindPlaces",
    "FinishedCall",
    "FinishedTurn",
    "FunctionCall",
    "History",
    "Message",
    "ModelCall",
    "Observation",
    "OnNoRun",
    "Place",
    "Policy",
    "Reply",
    "ReplyCall",
    "Request",
    "Resume",
    "Run",
    "Session",
    "Snapshot",
    "ToolCall",
    "as_journal",
    "call_part",
    "checked_run_id",
    "current_scope",
    "current_session",
    "current_steps",
    "decode",
    "digest",
    "encode",
    "find_places_with",
    "judge_endings_with",
    "label_of",
    "node_part",
    "observe",
    "passing_as",
    "perform",
    "perform_async",
    "perform_stream",
    "perform_stream_async",
    "register",
    "remember",
    "request_of",
    "session_for",
    "wants_handover",
    "without_secrets",
]

_by_url: dict[str, Journal] = {}


def as_journal(journal: Journal | str | os.PathLike[str]) -> Journal:
    """The journal, or the one of a path or URL; within a process the same URL gives the same journal.

    Raises:
        ValueError: The URL names no file or has an unknown scheme.

    Example:
        >>> as_journal("runs.db") is as_journal("runs.db")     # doctest: +SKIP
        True
    """
    if isinstance(journal, Journal):
        return journal
    opened = Journal(journal)
    with guard():
        # Kept open between runs: a warm file is a third cheaper to write to than one opened anew.
        return _by_url.setdefault(opened.url, opened)


def session_for(*, name: str, run_id: str | None = None, on_no_run: OnNoRun = "raise") -> Session | None:
    """The open run that a call belongs to; None outside any run where passing through is allowed.

    Args:
        name: Who is called, for the error.
        run_id: The run named in the framework's configuration, for code that the context variables do not reach.
        on_no_run: Outside any run: ``raise`` or ``passthrough``.

    Raises:
        NoActiveRunError: No run is open here.
        ValueError: The configuration names another run than the one that is open around the call.

    Example:
        >>> session = session_for(name="gpt-4.1")     # doctest: +SKIP
    """
    session = find_session(run_id, name=name)
    if session is None and on_no_run == "raise":
        raise NoActiveRunError(name=name)
    return session
