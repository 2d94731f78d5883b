"""A snapshot fits what has not changed, and nothing whose digest is another."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnl_middleware.adapter import Snapshot, digest

LEAVES = st.sampled_from([None, True, False, 0, 1, 1.0, 0.0, -0.0, "", "a", "1", b"a"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_what_fits_has_the_same_digest(first, second):
    """Two values that Python takes for equal, such as 1 and True, do not fit each other's snapshots."""
    snapshot = Snapshot.of([first])

    assert snapshot.fits([first])
    if snapshot.fits([second]):
        assert digest(first) == digest(second)
        assert repr(first) == repr(second)


@given(VALUES)
def test_what_was_changed_in_place_no_longer_fits(value):
    """A container anywhere in a value that gets more, less or something else makes it another value."""
    for change in changes_of([value]):
        snapshot, before = Snapshot.of(change.root), copy.deepcopy(change.root)
        change.make()
        assert not snapshot.fits(change.root) or repr(before) == repr(change.root)


class Change:
    """A change of one container somewhere in a value of its own."""

    def __init__(self, root, container, how):
        self.root, self.container, self.how = root, container, how

    def make(self):
        if isinstance(self.container, dict):
            {"more": lambda: self.container.update(new=1), "less": self.container.clear}[self.how]()
        else:
            {"more": lambda: self.container.append(1), "less": self.container.clear}[self.how]()


def changes_of(value):
    """Every container of the value once, each in a copy of its own, with each kind of change."""
    for place in range(len(list(containers_of(value)))):
        for how in ("more", "less"):
            root = copy.deepcopy(value)
            yield Change(root, list(containers_of(root))[place], how)


def containers_of(value):
    """The lists and dictionaries in a value."""
    if isinstance(value, list | dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for item in inner:
        yield from containers_of(item)


@pytest.mark.parametrize("value", [[object()], [{1: "a"}], [{"a"}], "text", [type("Text", (str,), {})("a")]])
def test_what_cannot_be_compared_has_no_snapshot(value):
    """Nobody could tell later whether it has changed."""
    assert Snapshot.of(value) is None


def test_a_value_within_itself_has_no_snapshot():
    """A list that holds itself has no end."""
    value = []
    value.append(value)

    assert Snapshot.of(value) is None
