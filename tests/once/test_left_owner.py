"""The run that owns an effect was left while its body went on in this process: others wait for that body (DESIGN 3.1, 3.4)."""

import contextlib
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gnl_middleware import NotDone, journaled, keyed, never
from tests.functions.scripted import PATIENCE


@pytest.mark.parametrize("locked", [True, False], ids=["lock", "no lock"])
@pytest.mark.parametrize("label", [never, keyed], ids=["never", "keyed"])
def test_body_that_outlives_its_run_is_waited_for(journal, label, locked):
    """Another run with the same piece of business asks nobody while the body may still have its effect, and shares it."""
    inside, go, asked, charged = threading.Event(), threading.Event(), [], []

    def recover(call):
        asked.append(call)
        return NotDone()

    def charge(order):
        inside.set()
        go.wait(PATIENCE)
        charged.append(order)
        return f"charged {order}"

    policy = label(once_per="args", window="journal", **({"recover": recover} if label is never else {}))
    charging = journaled(charge, replay=policy)
    with ThreadPoolExecutor(2) as pool:
        with journal.run("left", grace=0.0, lock=locked):
            first = pool.submit(contextvars.copy_context().run, charging, "o-7")
            assert inside.wait(PATIENCE)
        with journal.run("other"):
            second = pool.submit(contextvars.copy_context().run, charging, "o-7")
            with contextlib.suppress(TimeoutError):
                second.result(0.2)
            go.set()
            assert second.result(PATIENCE) == "charged o-7"
        assert first.exception(PATIENCE) is None
    assert (charged, asked) == (["o-7"], [])
