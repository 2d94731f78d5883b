"""A matrix as words, as JSON and as a page: what each says of cells made up here, hostile names among them."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from gnl_middleware.testing import Blocked, Cell, Clean, CrashMatrix, MatrixStep, Settled

HOSTILE = "<script>alert('mail')</script>&\x1b[2J"
MODEL = MatrixStep(1, "model", "gpt-4o")
MAIL = MatrixStep(2, "tool", "mail", "safe")
FAX = MatrixStep(3, "tool", HOSTILE, "never", "model/ab/1/0/c/")
CLEAN = Clean("crash-clean", HOSTILE, "ab12", 2, {"mail": 1, HOSTILE: 1}, (MODEL, MAIL, FAX), 4)
FINE = Cell(
    MODEL, "mid_stream", 1, "crash-1", "finished", effects=dict(CLEAN.effects), reply_equal=True, restarts=1
)
WAITS = replace(
    FINE,
    step=FAX,
    point="after_body",
    ending="blocked",
    blocked=(Blocked(HOSTILE, "no recover="),),
    reply_equal=None,
)
DOUBLED = replace(FINE, step=MAIL, point="after_body", effects={"mail": 2, HOSTILE: 1})
RECOVERED = replace(FINE, step=FAX, point="before_body", settled=(Settled(HOSTILE, "recover", "not_done"),))


def matrix_of(*cells):
    return CrashMatrix(CLEAN, cells, 1.25)


class Page(HTMLParser):
    """What a browser would make of a page: its tags, and the text between them."""

    def __init__(self, page):
        super().__init__()
        self.opened, self.closed, self.attributes, self.texts = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.opened.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        self.closed.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize(
    ("changes", "kind", "told"),
    [
        ({"effects": {"mail": 2, HOSTILE: 1}}, "doubled", "mail happened 2 times instead of 1"),
        ({"effects": {"mail": 2}, "ending": "blocked"}, "doubled", "mail happened 2 times instead of 1"),
        ({"effects": {HOSTILE: 1}}, "lost", "mail happened 0 times instead of 1"),
        ({"effects": {**CLEAN.effects, "sms": 1}}, "doubled", "sms happened 1 time instead of 0"),
        ({"model_calls_repeated": 2}, "asked_again", "2 model calls that had been answered were made again"),
        ({"reply_equal": False}, "other_reply", "the reply is not the clean run's"),
        (
            {"ending": "failed", "error": "OSError: gone\n\nTraceback"},
            "failed",
            "cannot be finished: OSError: gone",
        ),
        ({"ending": "missed", "error": "it finished"}, "missed", "no worker came to this crash point"),
    ],
)
def test_every_broken_promise_fails_the_assertion(changes, kind, told):
    """Each kind of problem makes a matrix unsafe, is said with its crash point, and comes with a cure."""
    matrix = matrix_of(FINE, replace(FINE, step=MAIL, point="before_outcome", **changes))

    assert [problem.kind for problem in matrix.problems] == [kind]
    assert not matrix.safe
    with pytest.raises(AssertionError) as raised:
        matrix.assert_safe()
    assert told in str(raised.value)
    assert "when the worker died at 2:before_outcome (mail)" in str(raised.value)
    assert "not safe at 1 of 2 crash points" in str(raised.value)
    assert matrix.problems[0].cure in str(raised.value)


@pytest.mark.parametrize(
    "cell",
    [
        FINE,
        WAITS,
        RECOVERED,
        replace(WAITS, effects={}),
        replace(FINE, reply_equal=False, settled=(Settled("mail", "model", "told"),)),
        replace(FINE, effects={HOSTILE: 1}, settled=(Settled("mail", "person", "failed"),)),
    ],
    ids=["finished", "blocked", "recovered", "blocked before the effect", "told", "given up by a person"],
)
def test_what_is_safe_passes(cell):
    """A job that ended as the clean one, waits for a person, or legitimately took another course, is safe."""
    matrix_of(cell).assert_safe()


@pytest.mark.parametrize(
    ("label", "cure"),
    [
        ("safe", "Relabel it never"),
        ("keyed", "Pass current_step().idempotency_key on"),
        ("never", "Let recover= look for the idempotency key"),
        (None, "not journalled under it"),
    ],
)
def test_the_cure_fits_the_label(label, cure):
    """A doubled effect is cured according to the label of its tool; one of no tool is not journalled at all."""
    steps = () if label is None else (replace(MAIL, label=label),)
    matrix = CrashMatrix(replace(CLEAN, steps=steps), (DOUBLED,), 1.0)

    with pytest.raises(AssertionError) as raised:
        matrix.assert_safe()

    assert cure in str(raised.value)


def test_one_problem_at_many_points_is_told_once():
    """Six cells with the same double are one paragraph, which lists four of them and counts the rest."""
    cells = [replace(DOUBLED, step=replace(MAIL, number=number)) for number in range(1, 7)]

    with pytest.raises(AssertionError) as raised:
        matrix_of(*cells).assert_safe()

    assert str(raised.value).count("mail happened 2 times") == 1
    assert "4:after_body (mail) and 2 more." in str(raised.value)


def test_the_json_has_the_documented_shape():
    """Programs may rely on these keys, in the matrix, its clean run, its cells and their problems."""
    found = json.loads(matrix_of(FINE, WAITS, DOUBLED, RECOVERED).to_json())

    assert list(found) == ["version", "safe", "seconds", "clean", "cells"]
    assert (found["version"], found["safe"], found["seconds"]) == (1, False, 1.25)
    assert set(found["clean"]) == {
        "run_id",
        "reply",
        "reply_digest",
        "model_calls",
        "effects",
        "steps",
        "crash_points",
    }
    assert set(found["clean"]["steps"][0]) == {"number", "kind", "name", "label", "scope"}
    fine, waits, doubled, recovered = found["cells"]
    assert set(fine) == {
        "step",
        "point",
        "attempt",
        "run_id",
        "ending",
        "safe",
        "model_calls_repeated",
        "effects",
        "reply_equal",
        "recover_used",
        "blocked",
        "settled",
        "restarts",
        "error",
        "problems",
    }
    assert [cell["safe"] for cell in found["cells"]] == [True, True, False, True]
    assert waits["blocked"] == [{"tool": HOSTILE, "reason": "no recover="}]
    assert (recovered["recover_used"], fine["recover_used"]) == (True, False)
    assert recovered["settled"] == [{"tool": HOSTILE, "by": "recover", "answer": "not_done"}]
    (problem,) = doubled["problems"]
    assert set(problem) == {"kind", "tool", "found", "expected", "text", "cure"}
    assert (problem["kind"], problem["tool"], problem["found"], problem["expected"]) == (
        "doubled",
        "mail",
        2,
        1,
    )


def test_the_page_is_escaped_and_needs_nothing_else():
    """Whatever tools and models are called or say is text in the page: no tag of theirs, no script, nothing to load."""
    page = Page(matrix_of(FINE, WAITS, DOUBLED, RECOVERED).to_html())

    assert "script" not in page.opened
    assert not {"link", "img", "iframe", "object", "base"} & set(page.opened)
    assert not [
        value for _, name, value in page.attributes if name in ("src", "href") or name.startswith("on")
    ]
    assert "".join(page.texts).count(HOSTILE) >= 3  # the reply, the step, and what it waits for
    assert [
        value for _, name, value in page.attributes if name == "content" and "default-src 'none'" in value
    ]


def test_the_page_is_well_formed_and_fits_both_themes():
    """Each tag that is opened is closed, and the colours are chosen for light and dark."""
    html = matrix_of(FINE, WAITS, DOUBLED, RECOVERED).to_html()
    page = Page(html)

    void = {"meta"}
    assert sorted(tag for tag in page.opened if tag not in void) == sorted(page.closed)
    assert "color-scheme: light dark" in html
    assert "prefers-color-scheme: dark" in html


def test_the_page_shows_the_matrix_and_what_to_repair():
    """Rows are steps, columns the points that occur, each cell a word and a colour; what is broken comes with its cure."""
    html = matrix_of(FINE, WAITS, DOUBLED, RECOVERED).to_html()
    texts = Page(html).texts

    assert "Crash matrix: not safe at 1 of 4 crash points" in texts
    assert [text for text in texts if text in ("before body", "mid stream", "after body")] == [
        "before body",
        "mid stream",
        "after body",
    ]
    assert html.count('<td class="broken">doubled') == 1
    assert html.count('<td class="blocked">blocked') == 1
    assert html.count('<td class="recovered">recovered') == 1
    assert any("Relabel it never" in text for text in texts)
