"""What was measured, as values that are written to a file and read back."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .measure import Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One thing that was measured.

    Attributes:
        what: ``step``, ``whole``, ``processor``, ``resume``… as ``benchmarks/README.md`` explains them.
        subject: Of whom.
        unit: What the value counts.
        value: The value.
        ratio: To what it is compared with, round by round.
        to: With what.
        runs: Runs at once.
        steps: Steps of each run.
        payload: Bytes that each tool returned.
    """

    what: str
    subject: str
    unit: str
    value: Spread
    ratio: Spread | None = None
    to: str | None = None
    runs: int = 1
    steps: int = 0
    payload: int = 0


@dataclass(frozen=True, slots=True)
class Results:
    """All that one campaign measured.

    Attributes:
        campaign: ``full``, ``quick`` or ``tiny``.
        machine: Where.
        missing: What could not be measured, and why.
        figures: What was measured.
    """

    campaign: str
    machine: dict[str, Any]
    missing: dict[str, str]
    figures: list[Figure]

    def find(self, what: str, subject: str, **where: int) -> Figure | None:
        """The first figure that fits, or None."""
        fits = (figure for figure in self.all(what) if figure.subject == subject)
        return next((figure for figure in fits if _is_at(figure, where)), None)

    def all(self, what: str, **where: int) -> list[Figure]:
        """All the figures that fit, in the order in which they were measured."""
        return [figure for figure in self.figures if figure.what == what and _is_at(figure, where)]

    def write(self, path: Path) -> None:
        """Write it as JSON, rounded to what can have been measured."""
        path.write_text(json.dumps(_rounded(dataclasses.asdict(self)), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Results":
        """What was written there."""
        found = json.loads(path.read_text(encoding="utf-8"))
        figures = [
            Figure(**{**figure, "value": Spread(**figure["value"]), "ratio": _spread(figure["ratio"])})
            for figure in found["figures"]
        ]
        return cls(found["campaign"], found["machine"], found["missing"], figures)


def _is_at(figure: Figure, where: dict[str, int]) -> bool:
    return all(getattr(figure, name) == value for name, value in where.items())


def _spread(found: dict[str, Any] | None) -> Spread | None:
    return None if found is None else Spread(**found)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
