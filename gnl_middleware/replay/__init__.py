"""Which record answers a call, and whether the run has left its record: in memory, without I/O."""
