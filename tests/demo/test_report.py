"""What the demo prints: red where something was done twice, and a command to copy where a person is asked."""

import dataclasses
import io
import re
import shlex

import pytest
from rich.console import Console

from gnl_langchain.demo import report
from gnl_langchain.demo.sweep import Clean, CrashPoint, Measurement

CLEAN = Clean(
    prefix="demo",
    reply="Ticket T-1001 is open.",
    steps=(("model", "scripted-support-1"), ("tool", "send_email")),
    requests=("first", "second"),
    tickets=1,
    emails=1,
    seconds=0.1,
)
HELD = Measurement(
    point=CrashPoint(2, "after_body", "tool", "send_email"),
    run_id="demo:2:after_body",
    model_calls_repeated=0,
    requests_identical=True,
    tickets=1,
    emails=1,
    same_reply=True,
    decided=None,
    inquiries=(),
    error=None,
)
BLOCKED = dataclasses.replace(HELD, decided={"status": "resolved", "tool": "send_email", "result": "sent"})


def printed(show, *arguments, terminal=False):
    """What a function of the report prints: on a terminal of 80 columns with colours, or into a file."""
    output = io.StringIO()
    colours = "standard" if terminal else None
    console = Console(file=output, width=80, force_terminal=terminal, color_system=colours, highlight=False)
    show(console, *arguments)
    return output.getvalue()


def test_a_duplicate_is_said_in_red():
    """When a mail went out twice, table and verdict say so in red, with the point at which it happened."""
    doubled = dataclasses.replace(HELD, emails=2)

    verdict = printed(report.print_verdict, [HELD, doubled], {"send_email": "safe"}, 1.0, terminal=True)
    table = printed(report.print_table, CLEAN, [doubled], terminal=True)

    assert "\x1b[1;31mThe email was sent twice\x1b[0m at 2:after_body: `safe` lets it." in verdict
    assert "\x1b[1;31mBroken at 1 of 2 points\x1b[0m" in verdict
    assert re.search(r"\x1b\[1;31m *2\x1b\[0m", table)


def test_the_verdict_says_what_was_proved_and_at_what_cost():
    """When all points held, one paragraph gives their number, the time, and who had to be asked."""
    asked = dataclasses.replace(HELD, inquiries=("T-1001",))

    verdict = " ".join(printed(report.print_verdict, [HELD, asked, BLOCKED], {}, 1.25).split())

    assert verdict.startswith("3 deaths, 3 times the same reply, in 1.2 s:")
    assert verdict.endswith("1 runs needed nothing, 1 asked the desk, 1 asked a person.")


@pytest.mark.parametrize(
    "flaw",
    [
        {"model_calls_repeated": 1},
        {"requests_identical": False},
        {"tickets": 0},
        {"tickets": 2},
        {"emails": 2},
        {"same_reply": False},
        {"error": "it broke"},
    ],
)
def test_any_flaw_breaks_a_point(flaw):
    """A point holds only if nothing was repeated, doubled, lost or changed on the way."""
    flawed = dataclasses.replace(HELD, **flaw)

    assert (HELD.held, flawed.held) == (True, False)


@pytest.mark.parametrize(
    ("result", "answer"),
    [("sent", ["--happened", "--result", '"sent"']), (None, ["--did-not-happen"])],
)
def test_the_resolve_command_can_be_pasted_into_a_shell(result, answer):
    """The command shown for a blocked run names run, step, finding and person, quoted for a shell, on one line."""
    blocked = dataclasses.replace(BLOCKED, decided=BLOCKED.decided | {"result": result})

    shown = printed(report.print_decisions, [blocked])

    (command,) = [line for line in shown.splitlines() if line.startswith("  gnl ")]
    assert shlex.split(command) == [
        "gnl",
        "resolve",
        "demo:2:after_body",
        "send_email",
        *answer,
        "--by",
        "demo",
    ]


def test_a_row_of_the_table_fits_eighty_columns():
    """Each crash point takes one line on a narrow terminal."""
    rows = [
        dataclasses.replace(
            HELD, decided=decided, inquiries=inquiries, point=dataclasses.replace(HELD.point, phase=phase)
        )
        for phase in ("before_intent", "before_outcome", "after_outcome")
        for decided, inquiries in ((BLOCKED.decided | {"result": None}, ()), (None, (None,)), (None, ()))
    ]

    table = printed(report.print_table, CLEAN, rows)

    assert len([line for line in table.splitlines() if line.strip()]) == len(rows) + 4
