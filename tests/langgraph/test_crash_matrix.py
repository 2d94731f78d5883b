"""The crash matrix over graphs of every kind: hand-written, of the functional API, and teams of agents that hand over."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gnl_middleware.testing import POINTS, CrashMatrix, crash_matrix
from tests.langgraph.matrix import functional, handing_over, written
from tests.langgraph.matrix.jobs import BRANCHES, Job, World

KINDS: dict[str, dict[str, Callable[..., Any]]] = {
    "StateGraph": written.SHAPES,
    "functional": functional.SHAPES,
    "handoffs": handing_over.SHAPES,
}
SHAPES = ("sequential", "parallel", "nested", "fan-out", "interrupt")
WAYS = ("invoke", "ainvoke", "stream", "astream")
EFFECTS: dict[str, dict[str, int]] = {"fan-out": {"book": BRANCHES, "mail": 1}}
CASES = [(kind, shape, way) for kind in KINDS for shape in SHAPES for way in WAYS]
SLICE = [
    (kind, shape, WAYS[(place + number) % 4])
    for number, kind in enumerate(KINDS)
    for place, shape in enumerate(SHAPES)
]
"""Each shape of each kind in one way; the ways change from one to the next."""


def matrix(world: World, kind: str, shape: str, way: str, **options: Any) -> CrashMatrix:
    build = KINDS[kind][shape]
    if kind == "functional":
        build = partial(build, synchronous=way in ("invoke", "stream"))
    # Half of them with checkpoints, half without; a pause needs some.
    job = Job(world, way, saved=shape == "interrupt" or way in ("stream", "ainvoke"))
    return crash_matrix(lambda: partial(build, world), job, world.effects, **options)


def check(found: CrashMatrix, kind: str, shape: str) -> None:
    found.assert_safe()
    expected = EFFECTS.get(shape, {"book": 1, "mail": 1})
    if kind == "handoffs" and shape == "fan-out":
        expected = {"book": BRANCHES}
    assert found.clean.effects == expected
    assert {cell.ending for cell in found.cells} == {"finished"}
    assert {tuple(sorted((cell.effects or {}).items())) for cell in found.cells} == {
        tuple(sorted(expected.items()))
    }
    assert sum(cell.model_calls_repeated for cell in found.cells) == 0


@pytest.mark.parametrize(("kind", "shape", "way"), SLICE)
def test_a_slice_of_the_places_to_die(tmp_path, kind, shape, way):
    """Whatever kind of graph: died anywhere, each effect happens once, no answered model is asked again, and it ends."""
    chosen = random.Random(f"{kind} {shape} {way}")
    points, step = chosen.sample(POINTS, 1), chosen.choice(["model", "book"])

    check(matrix(World(tmp_path), kind, shape, way, points=points, steps=[step]), kind, shape)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "shape", "way"), CASES)
def test_every_place_to_die(tmp_path, kind, shape, way):
    """The same at every point of every step, in every way to run a graph."""
    check(matrix(World(tmp_path), kind, shape, way), kind, shape)
