"""What a journal's writer did, counted."""

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """What the writer did, counted; syncs per step are promises that tests check.

    Attributes:
        commits: Transactions that somebody asked for.
        synced: Those among them that waited for the disk.
        writes: Writes in them.
        own_syncs: Syncs of the writer's own accord, of what nobody waits for.
        loads: Runs read.
    """

    commits: int = 0
    synced: int = 0
    writes: int = 0
    own_syncs: int = 0
    loads: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
