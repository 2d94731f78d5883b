"""How crash points and model calls are counted, on notes of workers made up here."""

from collections import Counter

import pytest

from gnl_middleware.testing.cells import MatrixStep
from gnl_middleware.testing.jobs import Death, Event, StepReport, new_report
from gnl_middleware.testing.measure import answered_conversations, repeatable, repeated_model_calls, worked
from gnl_middleware.testing.spots import spots_of

MODEL, BOOK, MAIL = (
    MatrixStep(1, "model", "gpt"),
    MatrixStep(2, "tool", "book", "never"),
    MatrixStep(3, "tool", "mail", "safe"),
)


def step(
    number, key="model/ab/1", *, kind="model", status="done", name="gpt", label="", scope="", blocked=None
):
    return StepReport(
        number=number,
        key=key,
        scope=scope,
        kind=kind,
        name=name,
        label=label,
        status=status,
        blocked=blocked,
        resolution=None,
    )


def reported(before, after):
    report = new_report("finished")
    report["before"], report["steps"] = before, after
    return report


def asked(number, *, answered=True):
    """A model call of a worker, answered or cut off by its death."""
    events = [Event("before_body", number, "gpt")]
    return [*events, Event("after_outcome", number, "gpt")] if answered else events


CLEAN = Counter({"model/ab": 1, "model/cd": 1})
BOTH = [step(1, "model/ab/1"), step(2, "model/cd/1")]


@pytest.mark.parametrize(
    ("dead", "heir", "before", "after", "repeated"),
    [
        (asked(1), asked(2), [step(1)], BOTH, 0),
        (asked(1, answered=False), asked(1) + asked(2), [], BOTH, 0),
        (asked(1, answered=False), asked(2), [step(1)], BOTH, 0),
        (asked(1), asked(1) + asked(2), [step(1)], BOTH, 1),
        (asked(1, answered=False), asked(1) + asked(2), [step(1)], BOTH, 1),
        (asked(1), asked(2) + asked(3), [step(1)], [*BOTH, step(3, "model/ab/2")], 1),
        (asked(1), asked(2) + asked(3), [step(1)], [*BOTH, step(3, "model/xy/1")], 1),
    ],
    ids=[
        "each once",
        "an answer that never came",
        "an answer that came as the worker died",
        "the same step again",
        "again, though the answer had come as the worker died",
        "the same words as another step",
        "other words, and one answer too many",
    ],
)
def test_answered_model_calls_that_were_made_again_are_counted(dead, heir, before, after, repeated):
    """Only what had been answered counts, be it by the worker's own note or by the journal, in the same or other words."""
    workers = worked([dead, heir], [reported(before, after)])

    assert repeated_model_calls(CLEAN, workers, other_course=False) == repeated


def test_another_course_may_need_more_answers():
    """An agent that was told something new may ask its model more: only the same words twice are a repetition then."""
    more = worked([asked(1), asked(2) + asked(3)], [reported([step(1)], [*BOTH, step(3, "model/xy/1")])])
    twice = worked([asked(1), asked(2) + asked(3)], [reported([step(1)], [*BOTH, step(3, "model/ab/2")])])

    assert repeated_model_calls(CLEAN, more, other_course=True) == 0
    assert repeated_model_calls(CLEAN, twice, other_course=True) == 1


def test_what_the_clean_run_asks_twice_may_be_asked_twice():
    """A conversation that was meant to be asked twice is no repetition the second time."""
    clean = Counter({"model/ab": 2})
    workers = worked([asked(1), asked(2)], [reported([step(1)], [step(1), step(2, "model/ab/2")])])

    assert answered_conversations(workers) == clean
    assert repeated_model_calls(clean, workers, other_course=False) == 0


def test_parallel_calls_are_told_apart_by_name():
    """Before its intent a step has no number: two calls that see the same next one are still two crash points."""
    events = [
        Event("before_intent", 2, "book"),
        Event("before_intent", 2, "mail"),
        Event("after_intent", 2, "book"),
        Event("after_intent", 3, "mail"),
    ]

    spots = spots_of(events, [MODEL, BOOK, MAIL], points=None, chosen=None)

    assert [(spot.step.number, spot.point, spot.death) for spot in spots] == [
        (2, "before_intent", Death("before_intent", "book", 1)),
        (2, "after_intent", Death("after_intent", "book", 1)),
        (3, "before_intent", Death("before_intent", "mail", 1)),
        (3, "after_intent", Death("after_intent", "mail", 1)),
    ]


def test_calls_of_the_same_name_are_told_apart_by_their_turn():
    """The second call of a tool dies where it comes to its point for the second time."""
    mails = [MatrixStep(1, "tool", "mail", "never"), MatrixStep(2, "tool", "mail", "never")]
    events = [
        Event("before_body", 1, "mail"),
        Event("after_body", 1, "mail"),
        Event("before_body", 2, "mail"),
    ]

    spots = spots_of(events, mails, points=["before_body"], chosen=[2])

    assert [(spot.step.number, spot.death) for spot in spots] == [(2, Death("before_body", "mail", 2))]


DESK = MatrixStep(2, "tool", "desk", "safe")
BEGUN = [Event("before_body", 2, "book"), Event("before_body", 3, "mail")]
BLOCKED = step(
    2, "model/ab/1/0/c", kind="tool", status="started", name="book", label="never", blocked="no recover="
)


@pytest.mark.parametrize(
    ("events", "steps", "names"),
    [
        (BEGUN, [BLOCKED], ["mail"]),
        ([*BEGUN, Event("after_outcome", 3, "mail")], [BLOCKED], []),
        (BEGUN, [BLOCKED, step(3, "model/ab/1/1/d", kind="tool", name="mail", label="safe")], []),
        (
            [Event("before_body", 2, "desk"), Event("before_body", 3, "book")],
            [
                step(2, "model/ab/1/0/c", kind="tool", status="started", name="desk", label="safe"),
                {**BLOCKED, "number": 3, "scope": "model/ab/1/0/c/"},
            ],
            [],
        ),
    ],
    ids=[
        "began, and no more is known",
        "ended",
        "its outcome is in the journal",
        "only contains the blocked one",
    ],
)
def test_calls_that_a_blocked_run_will_make_again(events, steps, names):
    """Beside a blocked call, those are played on that began without outcome and may run again by their label."""
    assert repeatable(events, steps, [MODEL, BOOK, MAIL, DESK]) == names
