"""What a difference says: where, how it looks, and what it probably comes from."""

import pytest

from gnl_middleware.replay.difference import changes, difference, likely_causes, made_anew

UUIDS = "0b0e7a4c-6b1f-4a3e-9f55-0c4bd1f6a001", "9d5c1f0e-52aa-4f0c-8b77-5a86d9f5b002"


def message(role, content):
    return {"role": role, "content": content}


TALK = [message("system", "Be brief."), message("user", "refund 7"), message("assistant", "done")]


class TestWhereItIs:
    """The place is named, whatever surrounds it."""

    @pytest.mark.parametrize(
        ("recorded", "asked", "paths"),
        [
            ({"order": 7}, {"order": 8}, ["arguments.order"]),
            ({"order": 1}, {"order": 1.0}, ["arguments.order"]),
            ({"order": True}, {"order": 1}, ["arguments.order"]),
            ({"order": 7}, {}, ["arguments.order"]),
            ({}, {"order id": 7}, ["arguments['order id']"]),
            ({"a": [1, 2, 3]}, {"a": [1, 3]}, ["arguments.a[1]"]),
            ({"a": [1, 3]}, {"a": [1, 2, 3]}, ["arguments.a[1]"]),
            ({"a": {"b": 1}}, {"a": [1]}, ["arguments.a"]),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ],
        ids=["text", "float", "truth", "gone", "new", "taken out", "put in", "another type", "order of keys"],
    )
    def test_arguments(self, recorded, asked, paths):
        """Each differing argument by its path; the order of keys is no difference, a type is one."""
        assert [change.path for change in changes(recorded, asked, "arguments")] == paths

    def test_a_message_put_in_front_is_one_change(self):
        """What moved because something was put in before it is not told as changed."""
        found = changes(TALK, [TALK[0], message("user", "hello"), *TALK[1:]], "messages")

        assert [change.path for change in found] == ["messages[1]"]


class TestHowItLooks:
    """A person sees the difference, not the conversation."""

    def test_a_text(self):
        """The place, what stood there, and what stands there now."""
        shown = difference(TALK, [message("system", "Be verbose."), *TALK[1:]], "messages")

        assert shown.splitlines() == [
            "--- recorded",
            "+++ asked",
            "@@ messages[0].content @@",
            "-Be brief.",
            "+Be verbose.",
        ]

    def test_a_long_conversation_stays_short(self):
        """One changed word in a hundred long messages is shown in a few short lines."""
        long = [message("user", f"{number} {'lorem ipsum ' * 500}") for number in range(100)]
        asked = [*long[:50], message("user", long[50]["content"].replace("ipsum", "dolor", 1)), *long[51:]]

        shown = difference(long, asked, "messages")

        assert len(shown) < 600
        assert "@@ messages[50].content @@" in shown
        assert "ipsum" in shown
        assert "dolor" in shown

    def test_a_long_text_of_many_lines_shows_the_lines_that_changed(self):
        """Of a prompt of many lines only the changed ones are shown, with one line around."""
        lines = [f"rule {number}" for number in range(200)]
        prompt = "\n".join(lines)

        shown = difference(prompt, prompt.replace("rule 90\n", "rule ninety\n"), "setup.instructions")

        assert shown.splitlines()[3:] == [" rule 89", "-rule 90", "+rule ninety", " rule 91"]

    def test_many_changes_are_counted(self):
        """Where everything changed, the first places are shown and the rest is counted."""
        shown = difference(list(range(100)), [-number - 1 for number in range(100)], "value")

        assert "… 94 more places differ" in shown
        assert len(shown.splitlines()) < 25


MOMENTS = [
    ("Today is 2026-11-29.", "Today is 2026-11-30."),
    ("It is 2026-11-29T10:00:00.123Z now", "It is 2026-11-30T11:30:00Z now"),
    ("now: 10:01", "now: 10:02:30 PM"),
    ("sent at 1764412800", "sent at 1764412800.25"),
    ("Monday, November 29, 2026", "Tuesday, November 30, 2026"),
    ("29.11.2026", "1.12.26"),
]
IDS = [
    (f"trace {UUIDS[0]}", f"trace {UUIDS[1]}"),
    (UUIDS[0].replace("-", ""), UUIDS[1].replace("-", "")),
    ("request 01JDW8ZK3QY5T7X9A1B2C3D4E5", "request 01JDW8ZK3QY5T7X9A1B2C3D4F6"),
    ("sha 0123456789abcdef0", "sha fedcba98765432100"),
]
OTHERS = [
    ("refund order 7", "refund order 8"),
    ("Today is 2026-11-29: refund", "Today is 2026-11-30: cancel"),
    ("at 10:01", "soon"),
    ("deadbeefdeadbeef", "deadbeef"),
]


class TestWhatItComesFrom:
    """What programs make anew each time is recognised, and nothing else is taken for it."""

    @pytest.mark.parametrize(("recorded", "asked"), MOMENTS)
    def test_a_date_or_time(self, recorded, asked):
        """A date or a time in a prompt is named, with its place and run.now()."""
        found = changes([message("system", recorded)], [message("system", asked)], "messages")

        (cause,) = made_anew(found)

        assert cause.startswith("a date or time at messages[0].content: take it from run.now()")

    @pytest.mark.parametrize(("recorded", "asked"), IDS)
    def test_a_random_id(self, recorded, asked):
        """A random id in a prompt is named, with its place and run.uuid4()."""
        (cause,) = made_anew(changes({"id": recorded}, {"id": asked}, "arguments"))

        assert cause.startswith("a random id at arguments.id: take it from run.uuid4()")

    def test_the_same_json_in_another_order(self):
        """JSON that a tool wrote with its keys in another order is told from JSON that says something else."""
        recorded, asked = '{"a": 1, "b": [2]}', '{"b":[2],"a":1}'

        (cause,) = made_anew(changes(recorded, asked, "messages[2].content"))

        assert (
            cause
            == "the same JSON in another order or spacing at messages[2].content: write it with sorted keys"
        )
        assert made_anew(changes(recorded, '{"b":[3],"a":1}', "messages[2].content")) == []

    @pytest.mark.parametrize(("recorded", "asked"), OTHERS)
    def test_anything_else(self, recorded, asked):
        """A difference that is more than a moment or an id is never excused as one."""
        assert made_anew(changes(recorded, asked, "value")) == []

    def test_one_real_change_among_moments(self):
        """Where anything else differs as well, the whole is no mere timestamp."""
        assert made_anew(changes([*MOMENTS[0], "a"], [*MOMENTS[0][::-1], "b"], "messages")) == []

    @pytest.mark.parametrize(
        ("recorded", "asked", "cause"),
        [
            ({"model": "a-1"}, {"model": "a-2"}, "another model: 'a-1' answered then, 'a-2' is asked now"),
            ({"temperature": 0.2}, {"temperature": 0.7}, "the setting temperature changed"),
            ({"tools": []}, {"tools": [{"name": "look"}]}, "a new tool look"),
            ({"tools": [{"function": {"name": "look"}}]}, {"tools": []}, "the tool look is gone"),
            (
                {"tools": [{"name": "look", "description": "a"}]},
                {"tools": [{"name": "look", "description": "b"}]},
                "the schema of a tool changed, at setup.tools[0].description",
            ),
        ],
        ids=["model", "setting", "new tool", "tool gone", "schema"],
    )
    def test_a_changed_setup(self, recorded, asked, cause):
        """An upgraded model, a changed setting and a changed tool are told apart."""
        assert likely_causes(changes(recorded, asked, "setup")) == [cause]
