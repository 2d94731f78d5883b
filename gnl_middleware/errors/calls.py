"""Errors about one call."""

from collections.abc import Sequence

from .base import GnlError, moment, shown
from .commands import command


class SideEffectRetryBlockedError(GnlError):
    """A side effect began, left no outcome, and nothing can tell whether it happened.

    Attributes:
        run_id: The run.
        step_key: The blocked step.
        tool: The tool's name.
        arguments: What the tool was called with.
        idempotency_key: The key that the call was given.
        started_at: When its last try began, in seconds since the epoch.
        kind: ``tool``, or ``model`` for a call in a conversation that a server keeps.
        reason: Why it was not settled: no ``recover``, its answer, or the error that it raised.
        journal: The journal's path, where it is not ``./gnl.db``.
    """

    def __init__(
        self,
        *,
        run_id: str,
        step_key: str,
        tool: str,
        arguments: object,
        idempotency_key: str,
        started_at: float | None,
        kind: str = "tool",
        reason: str = "the tool has no recover=",
        journal: str | None = None,
    ) -> None:
        self.run_id, self.step_key, self.tool, self.arguments = run_id, step_key, tool, arguments
        self.idempotency_key, self.started_at = idempotency_key, started_at
        self.kind, self.reason, self.journal = kind, reason, journal
        happened, not_done, failed = (
            command("resolve", run_id, step_key, options=(*decision, "--by", "YOU"), journal=journal)
            for decision in (("--happened",), ("--did-not-happen",), ("--failed", "TEXT"))
        )
        told = (
            f"{tool}({shown(arguments)}) may have happened: it began at {moment(started_at)} in run {run_id!r} and left "
            f"no outcome ({reason}). "
        )
        super().__init__(
            f"{told}Asking again could put the same turn into the conversation twice, so the run stops here. Look what the "
            f"conversation holds and take out what this turn has left there, then tell the journal and run the same code "
            f"again:\n"
            f"  {not_done}    # the conversation is as it was before: ask again\n"
            f"  {failed}    # give it up: the run ends with this error"
            if kind == "model"
            else f"{told}Running it again could do it twice, so the run stops here. Look whether it happened "
            f"(idempotency key {idempotency_key}), then tell the journal and run the same code again:\n"
            f"  {happened}    # it did; add --result JSON if the agent needs its result\n"
            f"  {not_done}    # it did not and no longer can: run it again"
        )


class ForkedEffectError(GnlError):
    """A side effect was about to run in a fork that performs none.

    Attributes:
        run_id: The fork.
        forked_from: The run that it began as a copy of.
        step_key: The step, which waits for an outcome.
        tool: The tool's name.
        arguments: What the tool was to be called with.
        journal: The journal's path, where it is not ``./gnl.db``.
    """

    def __init__(
        self,
        *,
        run_id: str,
        forked_from: str | None,
        step_key: str,
        tool: str,
        arguments: object,
        journal: str | None = None,
    ) -> None:
        self.run_id, self.forked_from, self.step_key = run_id, forked_from, step_key
        self.tool, self.arguments, self.journal = tool, arguments, journal
        options = ("--happened", "--result", "JSON", "--by", "YOU")
        given = command("resolve", run_id, step_key, options=options, journal=journal)
        live = command("fork", run_id, f"{run_id}-live", options=("--effects",), journal=journal)
        super().__init__(
            f"{tool}({shown(arguments)}) has not run: {run_id!r} is a fork of run {forked_from!r} that performs no side "
            f"effects, since what that run did in the world could be done a second time. Say what the call gives and run the "
            f"same code again, or make a fork of this one in which it runs (effects=True):\n"
            f"  {given}    # the agent gets this result, and nothing happens\n"
            f"  {live}    # then run the code with the new run id: the call happens"
        )


class DivergenceError(GnlError):
    """A replayed call no longer matches its record, or the run has left its record.

    Attributes:
        run_id: The run.
        step_key: The recorded step that the call was compared with.
        part: What differs: ``arguments``, ``messages`` or ``setup``.
        recorded: What the journal holds.
        asked: What the code asks now.
        diff: The difference, readable.
    """

    def __init__(
        self,
        *,
        run_id: str,
        step_key: str,
        part: str,
        recorded: object,
        asked: object,
        diff: str,
        headline: str,
        causes: Sequence[str] = (),
        journal: str | None = None,
    ) -> None:
        self.run_id, self.step_key, self.part = run_id, step_key, part
        self.recorded, self.asked, self.diff = recorded, asked, diff
        likely = "".join(f"\n  - {cause}" for cause in causes)
        show = command("show", run_id, journal=journal)
        fork = command("fork", run_id, f"{run_id}-b", options=("--before", step_key), journal=journal)
        super().__init__(
            f"Run {run_id!r}, step {step_key}: {headline} (part: {part}). Going on could repeat or skip what the record "
            f"holds, so nothing was run.\n{diff}"
            + (f"\nLikely causes:{likely}" if likely else "")
            + "\nUndo the change and run the same code again, or go on with the change under another run id:\n"
            f"  {show}    # what is recorded\n"
            f"  {fork}    # a copy of what came before this step"
        )


class ReplayMissError(GnlError):
    """``offline=True``, and the journal holds no outcome for this call.

    Attributes:
        run_id: The run.
        step_key: The step that was asked for.
        name: The model or tool.
    """

    def __init__(self, *, run_id: str, step_key: str, name: str, journal: str | None = None) -> None:
        self.run_id, self.step_key, self.name = run_id, step_key, name
        super().__init__(
            f"Run {run_id!r} is replayed offline and its record has no outcome for {name} (step {step_key}). Offline "
            f"nothing runs live. See what is recorded with `{command('show', run_id, journal=journal)}`, or open the run without "
            f"offline=True to go on live."
        )


class RecordedError(GnlError):
    """The replay of an error that a tool raised and the agent handled, of a type that is not rebuilt.

    Attributes:
        type_name: The name of the recorded type.
        text: The recorded text.
    """

    def __init__(self, *, type_name: str, text: str) -> None:
        self.type_name, self.text = type_name, text
        super().__init__(text)

    def __str__(self) -> str:
        """The recorded text and nothing else: it is for the agent."""
        return self.text


class EffectCycleError(GnlError):
    """A call that may happen once would wait for a call that it is part of.

    Attributes:
        run_id: The run.
        step_key: The step that the call is inside of.
        name: The tool.
    """

    def __init__(self, *, run_id: str, step_key: str, name: str) -> None:
        self.run_id, self.step_key, self.name = run_id, step_key, name
        super().__init__(
            f"{name} may happen once (once_per=), and it is called inside the very call that owns it (run {run_id!r}, step "
            f"{step_key}). It would wait for itself for ever, so it was not run. Give the inner call other arguments, or "
            f"take once_per= from the outer one."
        )


class RetryLimitError(GnlError):
    """A step was tried as often as its policy allows.

    Attributes:
        run_id: The run.
        step_key: The step.
        name: The model or tool.
        attempts: How often it was tried, crashes included.
    """

    def __init__(
        self, *, run_id: str, step_key: str, name: str, attempts: int, journal: str | None = None
    ) -> None:
        self.run_id, self.step_key, self.name, self.attempts = run_id, step_key, name, attempts
        show = command("show", run_id, journal=journal)
        options = ("--failed", "TEXT", "--by", "YOU")
        resolve = command("resolve", run_id, step_key, options=options, journal=journal)
        super().__init__(
            f"{name} (run {run_id!r}, step {step_key}) was tried {attempts} times without an outcome. A step that kills its "
            f"worker must not loop for ever, so it is not tried again. Find out why with `{show}`; "
            f"then decide it with `{resolve}`, or raise max_attempts= in its policy."
        )


class UnlabelledToolError(GnlError):
    """Tools without a replay label: nobody said what may happen to them after a crash.

    Attributes:
        tools: Their names.
    """

    def __init__(self, *, tools: Sequence[str], example: str) -> None:
        self.tools = tuple(tools)
        super().__init__(
            f"No replay label for {', '.join(self.tools)}. After a crash the journal must know what may run again: safe "
            f"(may run twice), keyed (may run twice with its idempotency key) or never. Add for example:\n  {example}\n"
            f"or opt out for all others with default_policy=never."
        )


class UnjournaledCallError(GnlError):
    """A model or tool was about to run past the journal.

    Attributes:
        kind: ``model`` or ``tool``.
        name: Its name.
    """

    def __init__(self, *, kind: str, name: str, remedy: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(
            f"The {kind} {name!r} is not journalled: after a crash it would run again without anybody knowing. It has not "
            f"run. {remedy}"
        )


class UnserializableValueError(GnlError):
    """A value cannot be journalled without loss.

    Attributes:
        path: Where in the value, as in ``$.items[3]``.
        type_name: The type that was found there.
        step_key: The step whose value it is, if known.
    """

    def __init__(self, *, path: str, type_name: str, step_key: str | None = None) -> None:
        self.path, self.type_name, self.step_key = path, type_name, step_key
        super().__init__(
            f"{path} is a {type_name}, which cannot be journalled without loss"
            + (f" (step {step_key}; what ran is recorded as done and will not run again)" if step_key else "")
            + ". A replay could not give back what the live call gave. Return plain data (str, int, dict, list, bytes, "
            "datetime, Decimal, UUID …), name the class as the step's return type, or register it: gnl_middleware.register(...)."
        )
