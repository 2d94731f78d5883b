"""How much is measured: each campaign by its numbers."""

from dataclasses import dataclass

_KB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of a campaign.

    Attributes:
        rounds: How often each cell of a suite is measured, interleaved with all its neighbours.
        few_rounds: The same for cells that take seconds each.
        steps: Steps of a run where one run is measured.
        runs_at_once: How many runs go on at once, each in turn.
        steps_at_once: Steps of each of them.
        agent_steps_at_once: The same for agents of frameworks.
        payloads: Bytes that a tool returns, each in turn; the first is that of all other suites.
        agent_lengths: Steps of an agent's run.
        journals: Steps of a run that is read back, and whose bytes are counted.
        saver_journals: The same for checkpointers, which grow with the square of it.
        sdk_journals: The same for the Agents SDK, whose own loop is quadratic.
        imports: How often each program is started.
        scale_runs: Runs at once in one process.
        listed_runs: Runs in a journal that is listed.
        long_run: Steps of a run of plain functions that is resumed once.
        ways_of_dbos: In how many ways DBOS is measured beside; to launch and end it takes a second.
    """

    rounds: int
    few_rounds: int
    steps: int
    runs_at_once: tuple[int, ...]
    steps_at_once: int
    agent_steps_at_once: int
    payloads: tuple[int, ...]
    agent_lengths: tuple[int, ...]
    journals: tuple[int, ...]
    saver_journals: tuple[int, ...]
    sdk_journals: tuple[int, ...]
    imports: int
    scale_runs: int
    listed_runs: int
    long_run: int
    ways_of_dbos: int


FULL = Sizes(
    rounds=9,
    few_rounds=3,
    steps=50,
    runs_at_once=(1, 8, 32),
    steps_at_once=20,
    agent_steps_at_once=10,
    payloads=(2 * _KB, 20 * _KB, 200 * _KB),
    agent_lengths=(50, 200),
    journals=(10, 100, 1000),
    saver_journals=(10, 100),
    sdk_journals=(10, 100),
    imports=15,
    scale_runs=1000,
    listed_runs=10_000,
    long_run=10_000,
    ways_of_dbos=3,
)
QUICK = Sizes(
    rounds=2,
    few_rounds=1,
    steps=10,
    runs_at_once=(1, 8),
    steps_at_once=5,
    agent_steps_at_once=3,
    payloads=(2 * _KB,),
    agent_lengths=(10,),
    journals=(100,),
    saver_journals=(10,),
    sdk_journals=(10,),
    imports=2,
    scale_runs=50,
    listed_runs=200,
    long_run=200,
    ways_of_dbos=1,
)
TINY = Sizes(
    rounds=1,
    few_rounds=1,
    steps=2,
    runs_at_once=(1, 2),
    steps_at_once=2,
    agent_steps_at_once=2,
    payloads=(_KB,),
    agent_lengths=(2,),
    journals=(2,),
    saver_journals=(2,),
    sdk_journals=(2,),
    imports=1,
    scale_runs=3,
    listed_runs=3,
    long_run=5,
    ways_of_dbos=1,
)
"""Whether everything still works; no figure of it means anything."""
