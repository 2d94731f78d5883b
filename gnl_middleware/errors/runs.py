"""Errors about a run as a whole."""

from .base import GnlError, moment
from .commands import command


class RunBusyError(GnlError):
    """Another worker holds the run, and its lease has not ended.

    Attributes:
        run_id: The run.
        holder: Who holds it: host, process id and start.
        held_since: When it took the run, in seconds since the epoch, or None.
        lease_ends_at: When the lease ends if it is not renewed, in seconds since the epoch.
    """

    def __init__(
        self, *, run_id: str, holder: str, lease_ends_at: float, held_since: float | None = None
    ) -> None:
        self.run_id, self.holder, self.held_since, self.lease_ends_at = (
            run_id,
            holder,
            held_since,
            lease_ends_at,
        )
        super().__init__(
            f"Run {run_id!r} is held by another worker ({holder}, since {moment(held_since)}; its lease lasts until "
            f"{moment(lease_ends_at)} unless it is renewed). Two workers on one run would do its work twice, so this one has not started. "
            f'Let the other finish, redeliver later, or open the run with on_busy="wait".'
        )


class LeaseLostError(GnlError):
    """This worker lost its lease: it was paused for too long, or another worker took the run over.

    Attributes:
        run_id: The run.
        reason: How the loss was noticed: ``deadline``, ``renewal`` or ``fence``; ``left`` where the run was left before;
            ``fork`` in a child of the process that holds the run; ``claim`` where, in a run without a lock, another worker
            took over a call of this one.
    """

    def __init__(self, *, run_id: str, reason: str) -> None:
        self.run_id, self.reason = run_id, reason
        super().__init__(
            f"This worker lost its lease on run {run_id!r} (noticed by: {reason}). Another worker may be going on with "
            f"the run, so nothing more is started here. Stop this attempt; to go on, open the run again: "
            f"journal.run({run_id!r})."
        )


class RunInputMismatchError(GnlError):
    """The run id was started with another input.

    Attributes:
        run_id: The run.
        recorded: Digest of the input that the run was started with.
        asked: Digest of the input that was given now.
    """

    def __init__(self, *, run_id: str, recorded: str, asked: str) -> None:
        self.run_id, self.recorded, self.asked = run_id, recorded, asked
        super().__init__(
            f"Run {run_id!r} was started with another input (digest {recorded[:12]}, now {asked[:12]}). A run id names one "
            f"job, so the record of the other input is not used. Give the first input, or a run id of its own: one per "
            f"order or message, never per chat session."
        )


class NoActiveRunError(GnlError):
    """A journalled call outside any run.

    Attributes:
        name: The model, tool or function that was called.
    """

    def __init__(self, *, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name} is journalled, but no run is open here, so nothing would be recorded. Open one around the call:\n"
            f'  with Journal("runs.db").run("order-4471"): ...\n'
            f'or pass on_no_run="passthrough" where running without a journal is meant.'
        )


class RunErasedError(GnlError):
    """The run id was erased; a late redelivery must not repeat its effects.

    Attributes:
        run_id: The run.
    """

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"Run {run_id!r} was erased, and its record with it: what it did can no longer be read back. It is not started "
            f"again by itself. Use a new run id, or begin this one anew with journal.run({run_id!r}, restart=True)."
        )


class RunNotFoundError(GnlError):
    """The journal holds no such run.

    Attributes:
        run_id: The run that was named.
    """

    def __init__(self, *, run_id: str, journal: str | None = None) -> None:
        self.run_id = run_id
        super().__init__(
            f"There is no run {run_id!r} in this journal, so there is nothing to copy or to compare. List the runs that there "
            f"are with `{command('runs', journal=journal)}`."
        )


class ForkRefusedError(GnlError):
    """A run cannot be forked like this: the new run exists, or the step to cut at or to edit is none that can be meant.

    Attributes:
        run_id: The run.
        new_run_id: The name that the fork was to get.
        reason: Why it was refused.
    """

    def __init__(self, *, run_id: str, new_run_id: str, reason: str, journal: str | None = None) -> None:
        self.run_id, self.new_run_id, self.reason = run_id, new_run_id, reason
        super().__init__(
            f"Run {run_id!r} was not forked as {new_run_id!r}: {reason}. Nothing was changed, since a fork that does not fit its "
            f"record would leave it. See the steps with `{command('show', run_id, journal=journal)}`."
        )


class ResolutionRefusedError(GnlError):
    """A person's decision about a step cannot be taken: the step is not blocked, alive, ambiguous or decided already.

    Attributes:
        run_id: The run.
        step: What the caller named.
        reason: Why it was refused.
    """

    def __init__(self, *, run_id: str, step: str, reason: str, journal: str | None = None) -> None:
        self.run_id, self.step, self.reason = run_id, step, reason
        super().__init__(
            f"Step {step!r} of run {run_id!r} was not decided: {reason}. Nothing was changed. List what waits for a decision "
            f"with `{command('show', run_id, journal=journal)}`."
        )
