"""``settle_failures``: an equal call after a failure that proves nothing is settled as the failed one."""

import pytest

from gnl_middleware import (
    Done,
    Journal,
    NotDone,
    SideEffectRetryBlockedError,
    journaled,
    keyed,
    never,
    safe,
)


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


def job(journal, charged, **options):
    """Charges, goes on from the failure, and charges again."""

    @journaled(replay=never(settle_failures=True, **options))
    def charge(order: str) -> str:
        charged.append(order)
        if len(charged) == 1:
            raise ConnectionError("no answer")
        return "charged"

    @journaled(replay=safe)
    def tell(text: str) -> str:
        return text

    with journal.run("order-7"):
        try:
            return charge("7")
        except ConnectionError as error:
            tell(str(error))
        return charge("7")


def test_the_run_stops_where_nothing_can_tell(journal):
    """The second call does not run; it is blocked, and says which call may have happened."""
    charged: list[str] = []

    with pytest.raises(SideEffectRetryBlockedError, match="owns the same effect"):
        job(journal, charged)

    assert charged == ["7"]
    assert [step.blocked is not None for step in journal.steps("order-7") if step.name == "charge"] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("answer", "result", "times"), [(Done("known"), "known", 1), (NotDone(), "charged", 2)]
)
def test_recover_is_asked_about_the_failed_call(journal, answer, result, times):
    """``Done`` gives the second call the first one's outcome, ``NotDone`` lets it run; a retry reads either back."""
    charged: list[str] = []

    assert job(journal, charged, recover=lambda call: answer) == result
    assert job(journal, [*charged, "no more"], recover=lambda call: answer) == result

    assert charged == ["7"] * times


@pytest.mark.parametrize("label", [safe, keyed])
def test_it_is_for_never(label):
    """A call that may simply run again needs no settling."""
    with pytest.raises(ValueError, match="is for never"):
        label(settle_failures=True)
