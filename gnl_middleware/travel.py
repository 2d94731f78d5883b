"""Time travel: begin a run as a copy of another one's past, and say where two runs part."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from gnl_middleware.clock import Clock
from gnl_middleware.errors import ForkRefusedError, RunNotFoundError
from gnl_middleware.identity import checked_run_id
from gnl_middleware.lease import is_dead
from gnl_middleware.model import Done, Failed, RunDifference, RunRecord, Step, StoredStep
from gnl_middleware.replay.forking import Changed, check_edit, kept_before, named, planned
from gnl_middleware.replay.parting import parted
from gnl_middleware.replay.record import Record
from gnl_middleware.storage.protocol import Edit, Forking

if TYPE_CHECKING:
    from gnl_middleware.storage.database import Database

Edits = Mapping[str, Done | Failed] | Mapping[int, Done | Failed] | Mapping[str | int, Done | Failed]
"""Other outcomes of steps, by their keys, numbers or names."""


class Travel:
    """The half of ``Journal`` that copies and compares runs."""

    _clock: Clock

    def _database(self) -> "Database":
        raise NotImplementedError

    def _record_of(self, run_id: str) -> RunRecord | None:
        raise NotImplementedError

    def steps(self, run_id: str) -> list[Step]:
        """See ``Journal``."""
        raise NotImplementedError

    def fork(
        self,
        run_id: str,
        new_run_id: str,
        *,
        before: str | int | None = None,
        edits: Edits | None = None,
        effects: bool = False,
        by: str = "",
        note: str = "",
    ) -> RunRecord:
        """Begin a new run as a copy of another one's past. Run the same code with the new run id, and it goes on from there.

        The fork keeps what the run did before the model reply that asks for ``before``: it is read back, and the model is
        asked anew from that reply on. Finished payloads are shared, not copied; a call that was interrupted is carried along
        with its idempotency key, and is settled in the fork as it would be in the run.

        Args:
            run_id: The run to copy; it stays as it is.
            new_run_id: The name of the new run.
            before: A step: its key, its number, or the name of a tool that was called once. None keeps all steps.
            edits: Other outcomes for steps that are kept, by key, number or name: ``Done(value)``, the raw value, or
                ``Failed(text)``. Only what no kept reply follows from can be edited.
            effects: Whether ``never`` and ``keyed`` calls may run in the fork. Without it, such a call raises
                ``ForkedEffectError``: what it does could be done a second time.
            by: Who edits; kept for audit.
            note: Why; kept for audit.

        Raises:
            RunNotFoundError: There is no such run.
            RunBusyError: A worker holds the run, so that it changes.
            RunErasedError: One of the two was erased.
            ForkRefusedError: The new run exists, or a step cannot be meant, or cannot be edited; the message says why.
            UnserializableValueError: An edit's value cannot be journalled.
            ValueError: The new run id cannot name a run.

        Example:
            >>> journal.fork("order-4471", "order-4471-b", before="send_email")     # doctest: +SKIP
            >>> run_durable(agent, question, run_id="order-4471-b", journal=journal)     # doctest: +SKIP
        """
        plan = _Plan(
            run_id=checked_run_id(run_id),
            new_run_id=checked_run_id(new_run_id),
            before=before,
            edits={name: Changed.of(outcome) for name, outcome in (edits or {}).items()},
            audits={name: secrets.token_hex(8) for name in edits or {}},
            now=self._clock.time(),
            place=self._database().place,
        )
        self._database().fork(
            Forking(
                run_id=run_id,
                new_run_id=new_run_id,
                now=plan.now,
                effects=effects,
                plan=plan.rows,
                is_dead=is_dead,
                by=by,
                note=note,
                journal=plan.place,
            )
        )
        return self._existing(new_run_id)

    def diff(self, a: str, b: str) -> RunDifference:
        """Where two runs part: the first step at which they differ, and what differs there.

        Compared are the calls, their arguments and their outcomes; not run ids, call ids that a provider makes up, times,
        and the order in which calls of one reply, or calls in scopes of their own, happened to come.

        Args:
            a: A run.
            b: Another one, such as a fork of it.

        Raises:
            RunNotFoundError: There is no such run.
            JournalCorruptError: A row is not what was written.

        Example:
            >>> journal.diff("order-4471", "order-4471-b").equal_steps     # doctest: +SKIP
            4
        """
        for run_id in (a, b):
            self._existing(checked_run_id(run_id))
        now = self._clock.time()
        rows = [self._database().load(run_id, now) for run_id in (a, b)]
        parting = parted(*rows)
        steps = [{step.key: step for step in self.steps(run_id)} for run_id in (a, b)]
        return RunDifference(
            a=a,
            b=b,
            equal_steps=parting.equal_steps,
            what=parting.what,
            step_a=None if parting.key_a is None else steps[0][parting.key_a],
            step_b=None if parting.key_b is None else steps[1][parting.key_b],
            difference=parting.difference,
        )

    def _existing(self, run_id: str) -> RunRecord:
        if (record := self._record_of(run_id)) is None:
            raise RunNotFoundError(run_id=run_id, journal=self._database().place)
        return record


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a fork is made of; asked in the transaction that makes it.

    Attributes:
        edits: Other outcomes, by what their steps are called.
        audits: A name of its own for each.
        place: The journal as commands to copy name it.
    """

    run_id: str
    new_run_id: str
    before: str | int | None
    edits: Mapping[str | int, Changed]
    audits: Mapping[str | int, str]
    now: float
    place: str | None

    def rows(self, steps: list[StoredStep], completed: int) -> tuple[list[StoredStep], list[Edit]]:
        """The steps of the fork, and what is noted of the edits.

        Raises:
            ForkRefusedError: A step cannot be meant, or cannot be edited.
        """
        kept = steps
        if self.before is not None:
            kept = kept_before(steps, named(steps, self.before, self._refuse))
        by_key = {step.key: step for step in kept}
        edited = {name: named(steps, name, self._refuse) for name in self.edits}
        record = Record(self.run_id, steps, completed_before=completed)
        for step in edited.values():
            check_edit(record, by_key, step, self._refuse)
        changes = {step.key: self.edits[name] for name, step in edited.items()}
        if len(changes) < len(edited):
            self._refuse("two edits name the same step")
        rows = planned(record, kept, changes, new_run_id=self.new_run_id, now=self.now)
        hashes = {row.key: row.value_hash for row in rows}
        audits = [
            Edit(self.audits[name], step.key, step.token, hashes[step.key]) for name, step in edited.items()
        ]
        return rows, audits

    def _refuse(self, reason: str) -> NoReturn:
        raise ForkRefusedError(
            run_id=self.run_id, new_run_id=self.new_run_id, reason=reason, journal=self.place
        )
