"""What a journal tells about its runs as a whole, and how it forgets them."""

import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast, get_args

from gnl_middleware.clock import Clock
from gnl_middleware.errors import RunBusyError
from gnl_middleware.identity import checked_run_id
from gnl_middleware.lease import is_dead, shown
from gnl_middleware.model import RunRecord, RunStatus
from gnl_middleware.records import Attempt, Removal, RemovalKind, RemovedRun, Resolution
from gnl_middleware.storage.protocol import Removing, RunFilter, StoredRun, metadata_digests

if TYPE_CHECKING:
    from gnl_middleware.storage.database import Database

_BATCH = 100
_LONGEST_TAG = 200
_NEVER_PRUNED = ("running", "paused")
_LIKE_ESCAPES = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"})


class Runs:
    """The half of ``Journal`` that finds and removes runs."""

    _clock: Clock

    def _database(self) -> "Database":
        raise NotImplementedError

    def runs(
        self,
        *,
        status: str | Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        like: str | None = None,
        changed_within: timedelta | None = None,
        limit: int | None = None,
    ) -> list[RunRecord]:
        """The runs that fit every condition, the latest first; without one, all but those whose record was removed.

        Args:
            status: One status or several; ``erased`` lists the run ids that are kept of removed runs.
            metadata: Names with the values that they must have, types included.
            tags: Words that the run must have, all of them.
            like: A pattern for the run id, with ``*`` and ``?``.
            changed_within: How long ago its last attempt began, ended or was decided, at most.
            limit: How many at most.

        Raises:
            ValueError: There is no such status.
            JournalError: The journal cannot be read.

        Example:
            >>> journal.runs(status="blocked", metadata={"customer": "C-1042"})     # doctest: +SKIP
        """
        now = self._clock.time()
        statuses = None if status is None else {status} if isinstance(status, str) else set(status)
        if unknown := sorted((statuses or set[str]()).difference(get_args(RunStatus))):
            raise ValueError(f"no run is {unknown[0]!r}; choose of {', '.join(get_args(RunStatus))}")
        wanted = RunFilter(
            like=None if like is None else like.translate(_LIKE_ESCAPES),
            statuses=_stored(statuses),
            tags=tuple(tags),
            metadata_digests=metadata_digests(metadata or {}),
            changed_since=None if changed_within is None else now - changed_within.total_seconds(),
            # Whether a run that has not ended is interrupted is known only where its holder can be looked at.
            limit=None if like is not None or (statuses and statuses & {"running", "interrupted"}) else limit,
        )
        records = (run_record(row) for row in self._database().runs(wanted, now))
        fitting = [
            record
            for record in records
            if (statuses is None or record.status in statuses)
            and (like is None or fnmatchcase(record.run_id, like.replace("[", "[[]")))
        ]
        return fitting[:limit]

    def _interrupted(self, run_id: str | None) -> list[RunRecord]:
        found = self.runs(status="interrupted") if run_id is None else [self.find(run_id)]
        return [record for record in found if record is not None and record.status == "interrupted"]

    def find(self, run_id: str) -> RunRecord | None:
        """One run, also one whose record was removed; None where there is none of this name.

        Example:
            >>> journal.find("order-4471").status     # doctest: +SKIP
            'completed'
        """
        wanted = RunFilter(run_id=checked_run_id(run_id))
        found = self._database().runs(wanted, self._clock.time())
        return run_record(found[0]) if found else None

    def attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run, in order; none for an unknown run.

        Example:
            >>> [attempt.status for attempt in journal.attempts("order-4471")]     # doctest: +SKIP
            ['interrupted', 'completed']
        """
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        run_id = checked_run_id(run_id)
        rows = self._database().read(lambda connection: operations.list_attempts(connection, run_id))
        return [_attempt(row) for row in rows]

    def resolutions(self, run_id: str) -> list[Resolution]:
        """What persons decided in a run, the earliest first.

        Example:
            >>> [decision.by for decision in journal.resolutions("order-4471")]     # doctest: +SKIP
            ['ada']
        """
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        run_id = checked_run_id(run_id)
        rows = self._database().read(lambda connection: operations.list_resolutions(connection, run_id))
        return [
            Resolution(row["key"], row["decision"], row["decided_by"], row["note"], row["decided_at"])
            for row in rows
        ]

    def removals(self, run_id: str) -> list[RemovedRun]:
        """The proofs of what was removed of a run, the earliest first.

        Example:
            >>> journal.removals("order-4471")[0].by     # doctest: +SKIP
            'privacy desk'
        """
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        run_id = checked_run_id(run_id)
        rows = self._database().read(lambda connection: operations.list_removals(connection, run_id))
        return [_removed_run(row) for row in rows]

    def pulse(self, run_id: str) -> str:
        """A text that changes whenever what is shown of a run does: cheaper to ask for than the run.

        Example:
            >>> journal.pulse("order-4471") == journal.pulse("order-4471")     # doctest: +SKIP
            True
        """
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        run_id = checked_run_id(run_id)
        return repr(self._database().read(lambda connection: operations.pulse(connection, run_id)))

    def prune(
        self,
        *,
        older_than: timedelta,
        status: str | Iterable[str] = ("completed", "failed"),
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        larger_than: int | None = None,
        dry_run: bool = False,
        by: str = "",
        note: str = "",
    ) -> Removal:
        """Remove the records of runs that ended long ago, a hundred at a time; whoever works meanwhile hardly waits.

        What stays of a run is its id, so that a late redelivery raises ``RunErasedError`` instead of doing the job
        again, and what once-per keys with ``window="journal"`` need. A run that is open is never touched: not one that
        a worker holds or has taken meanwhile, and not one that waits for an approval.

        Args:
            older_than: How long ago it must have changed last.
            status: One status or several; ``blocked`` and ``interrupted`` only where they are named. ``erased`` removes
                the run ids that earlier removals have kept.
            metadata: Names with the values that they must have.
            tags: Words that the run must have.
            larger_than: Bytes that its payloads must exceed.
            dry_run: Remove nothing; say what would be removed.
            by: Who asks for it; kept as proof.
            note: Why; kept as proof.

        Raises:
            ValueError: The status is ``running`` or ``paused``, or the age is negative.
            JournalError: The journal cannot be written; what was removed before that stays removed.

        Example:
            >>> journal.prune(older_than=timedelta(days=30)).bytes     # doctest: +SKIP
            73400320
        """
        statuses = {status} if isinstance(status, str) else set(status)
        if refused := sorted(statuses.intersection(_NEVER_PRUNED)):
            raise ValueError(f"a run that is {' or '.join(refused)} is open, and its record is never pruned")
        if "erased" in statuses and len(statuses) > 1:
            raise ValueError('the ids of removed runs are pruned alone: status="erased"')
        if older_than < timedelta(0):
            raise ValueError(f"older_than is how long ago a run changed last, not {older_than}")
        wanted = RunFilter(
            statuses=_stored(statuses),
            tags=tuple(tags),
            metadata_digests=metadata_digests(metadata or {}),
            larger_than=larger_than,
        )
        found = self._fitting(wanted, statuses, older_than)
        if dry_run:
            return Removal(tuple(self._measured(row.run_id, "pruned") for row in found))
        removing = self._removing("pruned", by, note)
        removed: list[RemovedRun] = []
        for start in range(0, len(found), _BATCH):
            removed += self._pruned(found[start : start + _BATCH], wanted.statuses or (), removing)
        return Removal(tuple(removed))

    def erase(
        self,
        run_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        dry_run: bool = False,
        rewrite: bool = True,
        by: str = "",
        note: str = "",
    ) -> Removal:
        """Remove all that a run recorded, or all that is recorded about somebody; whatever its status.

        What is deleted is overwritten, and the file is written anew. The run id stays, so that a late redelivery raises
        ``RunErasedError`` (``journal.run(run_id, restart=True)`` begins it anew), and so do the digests of once-per
        keys: a later call with such a key stops and asks a person.

        Args:
            run_id: The run; or name runs by what they were marked with:
            metadata: names with the values that they must have,
            tags: and words that the run must have.
            dry_run: Remove nothing; say what would be removed.
            rewrite: Write a SQLite file anew, which takes as long as copying it and lets others wait meanwhile.
            by: Who asks for it; kept as proof.
            note: Why; kept as proof.

        Raises:
            ValueError: Neither a run nor a condition is given.
            RunBusyError: A worker holds the run. Of several, those that are held stay, listed as ``busy``.
            JournalError: The journal cannot be written.

        Example:
            >>> proof = journal.erase(metadata={"customer": "C-1042"}, by="privacy desk")     # doctest: +SKIP
            >>> [run.run_id for run in proof.runs], proof.busy     # doctest: +SKIP
            (['support:42', 'support:97'], ())
        """
        tags = tuple(tags)
        if (run_id is None) is not bool(metadata or tags):
            raise ValueError("say what to erase: a run id, or metadata= and tags=")
        if run_id is None:
            wanted = RunFilter(tags=tuple(tags), metadata_digests=metadata_digests(metadata or {}))
            names = [row.run_id for row in self._fitting(wanted, None, timedelta(0))]
        else:
            names = [checked_run_id(run_id)]  # also of a run whose row is damaged
        if dry_run:
            return Removal(tuple(self._measured(name, "erased") for name in names if self.find(name)))
        removing = self._removing("erased", by, note)
        removed: list[RemovedRun] = []
        busy: list[str] = []
        for name in names:
            try:
                removed += self._erased(name, removing)
            except RunBusyError:
                if run_id is not None:
                    raise
                busy.append(name)
        rewritten = bool(removed) and rewrite and self._database().rewrite()
        return Removal(tuple(removed), tuple(busy), rewritten)

    def _fitting(
        self, wanted: RunFilter, statuses: set[str] | None, older_than: timedelta
    ) -> list[StoredRun]:
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        now, age = self._clock.time(), older_than.total_seconds()
        found = self._database().read(
            lambda connection: operations.fitting_runs(connection, wanted, now, age)
        )
        return [row for row in found if statuses is None or run_record(row).status in statuses]

    def _measured(self, run_id: str, kind: RemovalKind) -> RemovedRun:
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        steps, payloads, size = self._database().read(
            lambda connection: operations.measure_run(connection, run_id)
        )
        return RemovedRun(run_id, kind, 0.0, "", "", steps, 0, payloads, size, "")

    def _pruned(
        self, found: list[StoredRun], statuses: tuple[str, ...], removing: Removing
    ) -> list[RemovedRun]:
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        database, unchanged = self._database(), {row.run_id: row.updated_at for row in found}
        if statuses == ("erased",):
            gone = database.write(
                lambda connection: operations.forget_tombstones(connection, unchanged), durable=True
            )
            return [
                RemovedRun(name, "pruned", removing.now, removing.by, removing.note, 0, 0, 0, 0, "")
                for name in gone
            ]
        rows = database.write(
            lambda connection: operations.prune_runs(connection, unchanged, statuses, removing), durable=True
        )
        return [_removed_run(row) for row in rows]

    def _erased(self, run_id: str, removing: Removing) -> list[RemovedRun]:
        from gnl_middleware.storage import operations  # noqa: PLC0415 - storage is loaded on first use

        row = self._database().write(
            lambda connection: operations.remove_run(connection, run_id, removing), durable=True
        )
        return [] if row is None else [_removed_run(row)]

    def _removing(self, kind: RemovalKind, by: str, note: str) -> Removing:
        return Removing(
            removal=secrets.token_hex(8),
            kind=kind,
            by=by,
            note=self._database().protection.redacted_text(note),
            now=self._clock.time(),
            is_dead=is_dead,
            scrub=kind == "erased",
        )


def run_record(row: StoredRun) -> RunRecord:
    """A stored run as people see it."""
    held = is_held(row)
    status = "interrupted" if row.status == "running" and not held else row.status
    return RunRecord(
        run_id=row.run_id,
        status=cast("RunStatus", status),
        attempts=row.attempts,
        created_at=row.created_at,
        updated_at=row.updated_at,
        holder=shown(row.holder) if held else None,
        lease_ends_at=row.lease_ends_at if held else None,
        metadata=row.metadata,
        tags=row.tags,
        forked_from=row.forked_from,
        effects=row.effects,
    )


def is_held(row: StoredRun) -> bool:
    """Whether a worker that may be alive holds the run."""
    return row.holder is not None and row.leased and not is_dead(row.holder)


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are stored: each once, sorted.

    Raises:
        ValueError: One is no printable text of 1 to 200 characters, or tags is one text instead of several.
    """
    words = (tags,) if isinstance(tags, str) else tuple(tags)
    if isinstance(tags, str) or not all(
        0 < len(word) <= _LONGEST_TAG and word.isprintable() for word in words
    ):
        raise ValueError(f"tags are several printable texts of 1 to {_LONGEST_TAG} characters, not {tags!r}")
    return tuple(sorted(set(words)))


def _stored(statuses: set[str] | None) -> tuple[str, ...] | None:
    """The statuses under which runs of these statuses are stored."""
    if statuses is None:
        return None
    return tuple(sorted({"running" if status == "interrupted" else status for status in statuses}))


def _attempt(row: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=row["attempt"],
        holder=shown(row["holder"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        status=row["status"],
        error=row["error"],
        steps_ran=row["steps_ran"],
        steps_read_back=row["steps_read_back"],
        tokens_not_spent=row["tokens_not_spent"],
        seconds_not_spent=row["seconds_not_spent"],
    )


def _removed_run(row: Mapping[str, Any]) -> RemovedRun:
    told = ("run_id", "kind", "removed_at", "note", "steps", "steps_kept", "payloads", "bytes", "digest")
    return RemovedRun(by=row["removed_by"], **{name: row[name] for name in told})
