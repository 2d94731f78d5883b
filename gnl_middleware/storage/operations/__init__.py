"""Every SQL statement, each a plain function of a connection; none of them commits.

An intent carries the fence and is refused if the lease changed hands. An outcome is news about the world: it needs the
unchanged token of its try, not the fence.
"""

from .at_once import write_at_once
from .chains import inspect_run
from .dialects import time_of
from .effects import claim_exclusively, record_shared
from .forks import delete_payloads, effect_owner, fork_run, shared_with_forks
from .health import counts, largest, newest, syncing
from .retention import (
    fitting_runs,
    forget_tombstones,
    list_removals,
    measure_run,
    prune_runs,
    remove_run,
)
from .runs import (
    hold_runs,
    last_completed,
    leave_run,
    list_attempts,
    list_resolutions,
    list_runs,
    look_at_run,
    pulse,
    read_run,
    renew_lease,
    take_run,
    touch,
)
from .shared import release_claim, renew_claims
from .steps import (
    block_step,
    claim_steps,
    complete_steps,
    explain_claim,
    finish_steps,
    keep_late_outcome,
    load_setup,
    load_step,
    load_steps,
    mark_drifted,
    put_payloads,
    resolve_step,
)

__all__ = [
    "block_step",
    "claim_exclusively",
    "claim_steps",
    "complete_steps",
    "counts",
    "delete_payloads",
    "effect_owner",
    "explain_claim",
    "finish_steps",
    "fitting_runs",
    "forget_tombstones",
    "fork_run",
    "hold_runs",
    "inspect_run",
    "keep_late_outcome",
    "largest",
    "last_completed",
    "leave_run",
    "list_attempts",
    "list_removals",
    "list_resolutions",
    "list_runs",
    "load_setup",
    "load_step",
    "load_steps",
    "look_at_run",
    "mark_drifted",
    "measure_run",
    "newest",
    "prune_runs",
    "pulse",
    "put_payloads",
    "read_run",
    "record_shared",
    "release_claim",
    "remove_run",
    "renew_claims",
    "renew_lease",
    "resolve_step",
    "shared_with_forks",
    "syncing",
    "take_run",
    "time_of",
    "touch",
    "write_at_once",
]
