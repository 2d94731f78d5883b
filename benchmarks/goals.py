"""What was wanted, and what was measured: the goals of the design as ratios within one campaign."""

from collections.abc import Callable
from dataclasses import dataclass

from .results import Figure, Results

_SQLITE, _POSTGRES = "gnl, SQLite", "gnl, PostgreSQL"
_AGENT, _KB2 = "create_agent", 2048
_LONG = 1000

Measure = Callable[[Results], float | None]


@dataclass(frozen=True, slots=True)
class Goal:
    """Something to reach.

    Attributes:
        what: What is measured.
        measure: From the results to the number, or None where it was not measured.
        at_most: The number must not be larger …
        at_least: … or not be smaller.
    """

    what: str
    measure: Measure
    at_most: float | None = None
    at_least: float | None = None

    def is_reached(self, number: float) -> bool:
        """Whether a number is good enough."""
        return number <= self.at_most if self.at_most is not None else number >= (self.at_least or 0)

    @property
    def wanted(self) -> str:
        """The goal, as text."""
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"


def _ratio(what: str, subject: str, **where: int) -> Measure:
    def measure(results: Results) -> float | None:
        figure = results.find(what, subject, **where)
        return None if figure is None or figure.ratio is None else figure.ratio.median

    return measure


def _value(what: str, subject: str, **where: int) -> Measure:
    return lambda results: _median(results.find(what, subject, **where))


def _median(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value.median


def _quotient(above: Measure, below: Measure) -> Measure:
    def measure(results: Results) -> float | None:
        over, under = above(results), below(results)
        return None if over is None or not under else over / under

    return measure


def _added(subject: str, steps: int) -> Measure:
    """Microseconds per step that something adds to an agent as it is."""

    def measure(results: Results) -> float | None:
        bare = _median(results.find("whole", f"{_AGENT}, nothing kept", steps=steps, runs=1))
        whole = _median(results.find("whole", subject, steps=steps, runs=1))
        return None if bare is None or whole is None else whole - bare

    return measure


def _faster_than(peer: str, ours: str) -> Measure:
    return _quotient(_value("whole", peer, runs=1, payload=_KB2), _value("whole", ours, runs=1, payload=_KB2))


def _live(results: Results) -> float | None:
    """Milliseconds that a thousand steps take live."""
    step = _median(results.find("step", _SQLITE, runs=1, payload=_KB2))
    return None if step is None else step * _LONG / 1e3


def _goals_of_steps() -> list[Goal]:
    alone = {"runs": 1, "payload": _KB2}
    return [
        Goal("syncs per step, SQLite", _value("syncs", _SQLITE), at_most=2),
        Goal("commits per step, PostgreSQL", _value("commits", _POSTGRES), at_most=2),
        Goal("a step, SQLite, 1 run, to the floor", _ratio("step", _SQLITE, **alone), at_most=1.1),
        Goal("a step, SQLite, 32 runs at once, to the floor", _ratio("step", _SQLITE, runs=32), at_most=0.15),
        Goal(
            "processor time of a step, SQLite, 1 run, to the floor's",
            _ratio("processor", _SQLITE, **alone),
            at_most=6,
        ),
        Goal("the same, 32 runs at once", _ratio("processor", _SQLITE, runs=32), at_most=3),
        Goal("a step, PostgreSQL, 1 run, to the floor", _ratio("step", _POSTGRES, **alone), at_most=1.4),
        Goal(
            "a step, PostgreSQL, 32 runs at once, to the floor",
            _ratio("step", _POSTGRES, runs=32),
            at_most=0.2,
        ),
        Goal("times faster than DBOS, SQLite", _faster_than("DBOS, SQLite", _SQLITE), at_least=6),
        Goal("times faster than DBOS, SQLite WAL", _faster_than("DBOS, SQLite WAL", _SQLITE), at_least=3),
        Goal("times faster than DBOS, PostgreSQL", _faster_than("DBOS, PostgreSQL", _POSTGRES), at_least=6),
    ]


def _goals_of_agents() -> list[Goal]:
    ours, saver = f"gnl, {_AGENT}, SQLite", f"{_AGENT}, SqliteSaver sync"
    return [
        Goal(
            "times less added to create_agent than by SqliteSaver (sync), 50 steps",
            _quotient(_added(saver, 50), _added(ours, 50)),
            at_least=4,
        ),
        Goal("the same, 200 steps", _quotient(_added(saver, 200), _added(ours, 200)), at_least=8),
        Goal(
            "added to create_agent per step at 200 steps, to that at 50",
            _quotient(_added(ours, 200), _added(ours, 50)),
            at_most=1.1,
        ),
    ]


def _goals_of_resuming() -> list[Goal]:
    back, dbos = _value("resume", _SQLITE, steps=_LONG), _value("resume", "DBOS, SQLite WAL", steps=_LONG)
    loaded = _value("load", _SQLITE, steps=_LONG)
    rows = _value("resume", "by hand, the rows of gnl, SQLite", steps=_LONG)
    handed = _value("resume", f"gnl, {_AGENT}, SQLite, handed over", steps=_LONG)
    replayed = _value("resume", f"gnl, {_AGENT}, SQLite", steps=_LONG)
    return [
        Goal(
            "loading 1,000 steps, to reading the rows by hand",
            _quotient(loaded, rows),
            at_most=2,
        ),
        Goal("times faster than DBOS back at step 1,000", _quotient(dbos, back), at_least=10),
        Goal(
            "create_agent back at step 1,000 by hand-over, to replaying",
            _quotient(handed, replayed),
            at_most=0.05,
        ),
        Goal(
            "reading a step back, to doing it",
            _quotient(_value("serve", _SQLITE, steps=_LONG), _live),
            at_most=0.05,
        ),
        Goal(
            "bytes per step at step 1,000, to those at step 100",
            _quotient(_value("bytes", _SQLITE, steps=_LONG), _value("bytes", _SQLITE, steps=100)),
            at_most=1.05,
        ),
        Goal("kB per step with results of 2 kB", _kilobytes, at_most=1.8),
        Goal("import gnl_middleware, to import sqlalchemy", _ratio("import", "gnl_middleware"), at_most=0.4),
        Goal("gnl --help, to a bare click command", _ratio("command", "gnl --help"), at_most=1.5),
    ]


def _kilobytes(results: Results) -> float | None:
    weight = _median(results.find("bytes", _SQLITE, steps=_LONG, payload=_KB2))
    return None if weight is None else weight / 1024


GOALS = (*_goals_of_steps(), *_goals_of_agents(), *_goals_of_resuming())
