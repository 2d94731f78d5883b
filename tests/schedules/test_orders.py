"""The benchmark of the field: die before and after the body of each call, run a finished order again, run it twice at once."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.schedules.nursery import Course
from tests.schedules.programs.orders import REPLY
from tests.schedules.stage import Job, play
from tests.schedules.sweeping import Ended, look

DEATHS = [(f"{step}:{point}", None) for step in range(1, 6) for point in ("before_body", "after_body")]
AGAIN = (None, None)
ORDERED = Ended(died=True, reply=REPLY, effects={"email": 1})


def test_eleven_cells(trial):
    """Ten deaths and one rerun: the clean run's reply, one email, no finished model call repeated, the same call each time."""
    assert trial.clean("order") == ORDERED

    ended = trial.each("order", [*DEATHS, AGAIN])

    assert len(ended) == 11
    assert ended == dict.fromkeys(ended, ORDERED)


def test_two_deaths_in_a_row(sweep):
    """Dying again at a later step changes nothing."""
    pairs = [
        (f"{first}:{point}", f"{second}:{later}", None)
        for first in range(1, 5)
        for second in range(first + 1, 6)
        for point in ("after_intent", "after_body", "after_outcome")
        for later in ("before_intent", "before_body", "before_outcome")
    ]
    chosen = sweep.choose([" ".join(map(str, pair)) for pair in pairs], "two deaths in a row")

    ended = sweep.each("order", [pair for pair in pairs if " ".join(map(str, pair)) in chosen])

    assert ended == dict.fromkeys(ended, ORDERED)


def test_two_workers_at_once(nursery, tmp_path):
    """While one worker is in the middle of an order, the other one is told so at once and does nothing."""
    with socket.create_server(("127.0.0.1", 0)) as mail_server, ThreadPoolExecutor(1) as pool:
        mail_server.settimeout(30)
        course = Course("slow_order", str(tmp_path), options={"port": str(mail_server.getsockname()[1])})
        first = pool.submit(nursery.run, [course])
        connection, _ = mail_server.accept()
        with connection:
            second = play(Job("slow_order", str(tmp_path), number=2))
        (codes,) = first.result()

    assert (second.error, second.reply) == ("RunBusyError", None)
    assert look(course, codes) == ORDERED


@pytest.mark.parametrize("replay", ["lenient", "strict"])
def test_an_input_that_is_given_again_by_hand(sweep, replay):
    """While its effect stands unanswered in the thread, the run stops; once it is answered, the input is a new request."""
    ended = sweep("input_given_again", saver="sqlite", replay=replay)

    for point, how in ended.items():
        outcome = (how.reply, how.error, how.effects)
        if point in ("2:after_body", "2:before_outcome", "2:after_outcome"):
            assert outcome == (None, "DivergenceError", {"refund 7": 1}), point
        else:
            assert outcome == ("done", None, {"refund 7": 2 if point.startswith("3:") else 1}), point
