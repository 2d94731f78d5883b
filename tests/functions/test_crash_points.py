"""A worker that really dies, at each point of a step; the next worker does what the step's label promises."""

import pytest

from gnl_middleware import Done, NotDone, SideEffectRetryBlockedError
from gnl_middleware.testing import POINTS
from tests.functions.crashing import die_at
from tests.functions.scripted import only_step, run_status
from tests.functions.shop import POLICIES, RUN, Shop, sell

# What the journal and the world hold after a death at a point: whether the body had run, and its outcome was recorded.
BODY_RAN = {"after_body", "before_outcome", "after_outcome"}
RECORDED = {"after_outcome"}
# A `never` call may have happened from its durable intent on, until its outcome is recorded.
IN_DOUBT = {"after_intent", "before_body", "after_body", "before_outcome"}

both_colours = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
every_point = pytest.mark.parametrize("point", POINTS)


@both_colours
@every_point
@pytest.mark.parametrize("policy", POLICIES)
def test_death_at_a_point(tmp_path, policy, point, asynchronous):
    """After a death at any point, the retry repeats a body only where its label allows it, and finished steps never."""
    shop = Shop(tmp_path, policy, asynchronous=asynchronous)
    die_at(f"pay:{point}", sell, tmp_path, policy, asynchronous)
    before = len(shop.effects("pay"))

    if policy == "never" and point in IN_DOUBT:
        with pytest.raises(SideEffectRetryBlockedError):
            shop.sell()
        after = 0
    else:
        results = shop.sell()
        after = len(shop.effects("pay")) - before
        found = policy == "never_with_recover" and point in IN_DOUBT & BODY_RAN
        assert results[0] == "prepare o-7: 1"
        assert results[1] == ("pay o-7: found" if found else f"pay o-7: {before + after}")
        assert results[2] == "finish o-7: 1"

    allowed_twice = policy in ("safe", "keyed")
    assert before == (point in BODY_RAN)
    assert after == (
        point not in RECORDED
        and (before == 0 or allowed_twice)
        and not (policy == "never" and point in IN_DOUBT)
    )
    assert len(set(shop.effects("pay"))) <= 1
    assert len(shop.effects("prepare")) == 1


@both_colours
@pytest.mark.parametrize("point", sorted(IN_DOUBT))
def test_person_finishes_a_blocked_order(tmp_path, point, asynchronous):
    """A blocked run names what may have happened; after a person looked and said so, the same code ends with one effect."""
    shop = Shop(tmp_path, "never", asynchronous=asynchronous)
    die_at(f"pay:{point}", sell, tmp_path, "never", asynchronous)
    with pytest.raises(SideEffectRetryBlockedError) as blocked:
        shop.sell()
    with shop.journal() as journal:
        status, step = run_status(journal), only_step(journal)
        happened = blocked.value.idempotency_key in shop.effects("pay")
        journal.resolve(RUN, step.key, Done("pay o-7: 1") if happened else NotDone(), by="ops")

    results = shop.sell()

    assert (status, step.key, step.arguments) == ("blocked", blocked.value.step_key, blocked.value.arguments)
    assert results == ["prepare o-7: 1", "pay o-7: 1", "finish o-7: 1"]
    assert shop.effects("pay") == [blocked.value.idempotency_key]


@both_colours
@every_point
def test_death_in_the_last_step_of_three(tmp_path, point, asynchronous):
    """Whatever point the last step dies at, the steps before it are read back and paid once."""
    shop = Shop(tmp_path, "never", asynchronous=asynchronous)
    die_at(f"finish:{point}", sell, tmp_path, "never", asynchronous)

    results = shop.sell()

    assert results[:2] == ["prepare o-7: 1", "pay o-7: 1"]
    assert (len(shop.effects("prepare")), len(shop.effects("pay"))) == (1, 1)
    assert len(shop.effects("finish")) == 1 + (point in BODY_RAN - RECORDED)


def test_death_upon_death(tmp_path):
    """A worker that dies again and again at another point of the same step still pays once."""
    shop = Shop(tmp_path, "never_with_recover", asynchronous=False)
    for point in ("after_intent", "before_body", "after_body"):
        die_at(f"pay:{point}", sell, tmp_path, "never_with_recover", False)
    die_at("finish:before_intent", sell, tmp_path, "never_with_recover", False)

    results = shop.sell()

    assert results == ["prepare o-7: 1", "pay o-7: found", "finish o-7: 1"]
    assert len(shop.effects("pay")) == 1


def test_dead_worker_leaves_an_interrupted_run(tmp_path):
    """A run whose worker died is listed as interrupted, held by nobody, and taken up again at once."""
    shop = Shop(tmp_path, "safe", asynchronous=False)
    die_at("pay:before_body", sell, tmp_path, "safe", False)
    with shop.journal() as journal:
        (record,) = journal.runs()

    shop.sell()

    with shop.journal() as journal:
        (finished,) = journal.runs()
    assert (record.status, record.holder, record.attempts) == ("interrupted", None, 1)
    assert (finished.status, finished.holder, finished.attempts) == ("completed", None, 2)
