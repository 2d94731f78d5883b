"""`gnl show`: what a run did, and what it waits for."""

import json
import shlex
from dataclasses import dataclass

import pytest

from gnl_middleware import Journal, UnserializableValueError, current_run, journaled, never, safe
from gnl_middleware.adapter import Message, ModelCall, Reply, digest, perform, register, request_of
from gnl_middleware.identity import idempotency_key


def rows(output):
    """The rows of the table of steps, without the spaces that fill the columns."""
    lines = [line.rstrip() for line in output.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.endswith("──")) + 1
    return [" ".join(line.split()) for line in lines[first : lines.index("", first)]]


def test_header_and_steps(gnl, one_run):
    """The header says how the run stands, and each step is a row with its kind, label, status, tries and value."""
    one_run(value={"name": "Ann"}, metadata={"customer": 7})

    output = gnl("show", "order-1").output

    header, times, metadata, *_ = output.splitlines()
    assert header == "run order-1  completed"
    assert times.startswith("1 attempt; created 20")
    assert times.endswith("; nobody holds it")
    assert metadata == 'metadata {"customer": 7}'
    (row,) = rows(output)
    assert row.startswith("1 tool look_up safe done 1 ")
    assert row.endswith(' ms {"name": "Ann"}')


def test_steps_stand_under_what_they_happened_in(gnl, journal_path):
    """What happened inside a step or on a named branch is indented under it, in the order in which it began."""

    def agent():
        inner()
        with current_run().scope("eu"):
            inner()

    inner = journaled(lambda: "inner", replay=safe, name="inner")
    outer = journaled(agent, replay=safe, name="outer")
    with Journal(journal_path) as journal, journal.run("order-1") as run:
        outer()
        with run.scope("billing"):
            outer()
        inner()

    output = gnl("show", "order-1").output

    column = output.splitlines()[3].index("step")
    names = [line[column:].partition("  safe")[0].rstrip() for line in output.splitlines()[5:-1]]
    assert names == [
        "tool outer",
        "  tool inner",
        "  eu",
        "    tool inner",
        "billing",
        "  tool outer",
        "    tool inner",
        "    eu",
        "      tool inner",
        "tool inner",
    ]


def test_a_branch_without_its_step_is_still_shown(gnl, journal_path):
    """A scope that hangs from no step, such as a branch of a branch, stands under its own name."""
    look_up = journaled(lambda: 1, replay=safe, name="look_up")
    with (
        Journal(journal_path) as journal,
        journal.run("order-1") as run,
        run.scope("billing"),
        run.scope("eu"),
    ):
        look_up()

    output = gnl("show", "order-1").output

    branch, row = rows(output)
    assert branch == "billing/eu"
    assert row.startswith("1 tool look_up")


def test_a_failed_step_shows_its_error(gnl, one_run):
    """A step that failed shows the type and text of its error."""
    with pytest.raises(RuntimeError):
        one_run(value=RuntimeError("desk closed"))

    output = gnl("show", "order-1").output

    assert output.startswith("run order-1  failed\n")
    (row,) = rows(output)
    assert "failed" in row
    assert row.endswith("RuntimeError: desk closed")


def test_a_value_that_could_not_be_recorded_is_told_from_none(gnl, one_run, journal_path):
    """A step whose value was lost says so, where a step that returned None shows null."""
    one_run("order-1", value=None)
    with pytest.raises(UnserializableValueError):
        one_run("order-2", value=object())

    (recorded,) = rows(gnl("show", "order-1").output)
    (lost,) = rows(gnl("show", "order-2").output)

    assert recorded.endswith("null")
    assert lost.endswith("its value could not be recorded: $ is of type object")


def test_a_drifted_step_is_marked(gnl, journal_path):
    """A reply that was served to a slightly different request is marked as drifted."""
    message = {"role": "user", "content": "hello"}
    for setup in ("model a", "model b"):
        call = ModelCall(
            name="gpt",
            request=request_of((message,), (Message("user", digest(message)),), setup),
            messages=(message,),
            describe=lambda value: Reply(digest=digest(value)),
        )
        with Journal(journal_path) as journal, journal.run("order-1") as run:
            perform(run.session, call, lambda: "hi")

    (row,) = rows(gnl("show", "order-1").output)

    assert "model gpt done, drifted 1" in row


def test_a_long_value_is_shortened(gnl, one_run):
    """A long value is cut with an ellipsis; the whole of it is what --json is for."""
    one_run(value="x" * 5000)

    output = gnl("show", "order-1").output
    answer = json.loads(gnl("show", "order-1", "--json").output)

    assert max(map(len, output.splitlines())) < 250
    assert output.count("…") == 1
    assert answer["steps"][0]["value"] == "x" * 5000


@dataclass(frozen=True)
class ChatMessage:
    """What a framework wraps a reply in."""

    fields: dict[str, object]


register(
    ChatMessage, tag="tests.ChatMessage", to_plain=lambda message: message.fields, from_plain=ChatMessage
)


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"id": "m-1", "content": "T-7 is open"}, '"T-7 is open"'),
        ({"id": "m-1", "content": [{"type": "text", "text": "T-7"}, {"type": "image"}]}, '"T-7"'),
        (
            {"content": "", "tool_calls": [{"name": "mail", "args": {"to": "ann"}}, 7]},
            'mail({"to": "ann"}) 7',
        ),
        ({"content": "Wait", "tool_calls": [{"name": "mail", "args": {}}]}, '"Wait" mail({})'),
        ({"content": ""}, '{"replies": [{"message": tests.ChatMessage({"content": ""})}]}'),
        ({"text": "T-7"}, '{"replies": [{"message": tests.ChatMessage({"text": "T-7"})}]}'),
    ],
    ids=["text", "blocks", "calls", "both", "nothing", "no message"],
)
def test_a_chat_message_is_shown_by_what_it_says(gnl, one_run, reply, shown):
    """A reply is reduced to its text and the calls that it asks for; what says neither is shown as it is."""
    one_run(value={"replies": [{"message": ChatMessage(reply)}]})

    (row,) = rows(gnl("show", "order-1").output)

    assert row.endswith(f" ms {shown}")


def test_a_stream_is_shown_as_one_text(gnl, one_run):
    """A reply that came in pieces is shown whole."""
    one_run(value=[ChatMessage({"content": "T-7 "}), ChatMessage({"content": "is open"})])

    (row,) = rows(gnl("show", "order-1").output)

    assert row.endswith('"T-7 is open"')


def test_types_of_the_agent_need_not_be_importable(gnl_process, one_run):
    """The command line knows none of the agent's types, and shows and prints their values all the same."""
    one_run(value=ChatMessage({"content": "T-7 is open"}), arguments=(ChatMessage({"a": 1}),))

    shown = gnl_process("show", "order-1")
    as_json = gnl_process("show", "order-1", "--json")

    assert shown.returncode == 0, shown.stderr
    assert '"T-7 is open"' in shown.stdout
    (step,) = json.loads(as_json.stdout)["steps"]
    assert step["value"] == {"$gnl": "tests.ChatMessage", "value": {"content": "T-7 is open"}}


def test_a_blocked_step_comes_with_the_commands_that_resolve_it(gnl, blocked, journal_path):
    """What is blocked says why, with the idempotency key to look for and one exact command for each decision."""
    blocked()
    with Journal(journal_path) as journal:
        (step,) = journal.steps("order-1")

    output = gnl("show", "order-1", "--journal", str(journal_path)).output

    assert "started, blocked" in output
    assert 'blocked: step 1, send_email({"to": "ann"}), may have happened.' in output
    assert "the tool has no recover=" in output
    assert idempotency_key("order-1", step.key) in output
    commands = [line.strip() for line in output.splitlines() if line.startswith("    gnl")]
    named = shlex.quote(str(journal_path))
    assert commands == [
        f"gnl resolve order-1 1 --happened --by YOU --journal {named}",
        f"gnl resolve order-1 1 --did-not-happen --by YOU --journal {named}",
        f"gnl resolve order-1 1 --failed TEXT --by YOU --journal {named}",
    ]


def test_commands_leave_out_the_journal_that_the_environment_names(gnl, blocked):
    """A journal that came from GNL_JOURNAL will come from there again, so the command stays short."""
    blocked()

    output = gnl("show", "order-1").output

    assert "    gnl resolve order-1 1 --happened --by YOU\n" in output


def test_an_interrupted_effect_can_be_decided_before_an_attempt_stops_at_it(gnl, interrupted):
    """After a crash the commands are there at once, with the news that the next attempt may settle it alone."""
    interrupted()

    output = gnl("show", "order-1").output

    assert "interrupted: step 1, send_email" in output
    assert "the next attempt asks its recover=" in output
    assert "    gnl resolve order-1 1 --did-not-happen --by YOU\n" in output


def test_a_call_that_is_still_running_waits_for_nobody(gnl, journal_path):
    """While a worker holds the run its open call is at work, and no command offers to decide it."""
    shown = []
    with Journal(journal_path) as journal, journal.run("order-1"):
        journaled(lambda: shown.append(gnl("show", "order-1").output), replay=never, name="send_email")()

    (output,) = shown
    assert "held by pid" in output
    assert "started" in output
    assert "gnl resolve" not in output


def test_a_run_that_can_go_on_says_so(gnl, interrupted):
    """Once everything is decided, the next thing to do is to run the same code again, and that is said."""
    interrupted()
    gnl("resolve", "order-1", "1", "--did-not-happen", "--by", "ops")

    output = gnl("show", "order-1").output

    assert "started, not_done" in output
    assert output.endswith("Run the same code again: it goes on from here.\n")


def test_an_unknown_run_names_the_list(gnl, one_run):
    """A run that is not there is an error of exit code 1 that says how to list those that are."""
    one_run()

    result = gnl("show", "order-2", exit_code=1)

    assert "'order-2'" in result.stderr
    assert result.stderr.endswith("gnl runs\n")


def test_show_as_json(gnl, blocked, one_run, journal_path):
    """`--json` prints the documented object: the run, every attribute of its steps, and what waits with its commands."""
    blocked()
    with Journal(journal_path) as journal:
        (record,) = journal.runs()
        (step,) = journal.steps("order-1")
        first, second = journal.attempts("order-1")

    answer = json.loads(gnl("show", "order-1", "--json").output)

    assert answer == {
        "run": {
            "run_id": "order-1",
            "status": "blocked",
            "attempts": 2,
            "created_at": record.created_at,
            "updated_at": record.updated_at,
            "holder": None,
            "lease_ends_at": None,
            "metadata": {},
            "tags": [],
            "forked_from": None,
            "effects": True,
        },
        "steps": [
            {
                "run_id": "order-1",
                "key": step.key,
                "number": 1,
                "scope": "",
                "kind": "tool",
                "name": "send_email",
                "policy": "never",
                "status": "started",
                "blocked": "the tool has no recover=",
                "attempts": 1,
                "started_at": step.started_at,
                "finished_at": None,
                "arguments": {"to": "ann"},
                "value": None,
                "error": None,
                "drifted": False,
                "resolution": None,
                "attempt": 1,
                "tokens": 0,
                "origin": None,
            }
        ],
        "waiting": [
            {
                "key": step.key,
                "number": 1,
                "name": "send_email",
                "blocked": True,
                "reason": "the tool has no recover=",
                "idempotency_key": idempotency_key("order-1", step.key),
                "commands": {
                    "happened": "gnl resolve order-1 1 --happened --by YOU",
                    "did_not_happen": "gnl resolve order-1 1 --did-not-happen --by YOU",
                    "failed": "gnl resolve order-1 1 --failed TEXT --by YOU",
                },
            }
        ],
        "attempts": [
            {
                "number": 1,
                "holder": first.holder,
                "started_at": first.started_at,
                "ended_at": first.ended_at,
                "status": "interrupted",
                "error": "KeyboardInterrupt: ",
                "steps_ran": 1,
                "steps_read_back": 0,
                "tokens_not_spent": 0,
                "seconds_not_spent": 0.0,
            },
            {
                "number": 2,
                "holder": second.holder,
                "started_at": second.started_at,
                "ended_at": second.ended_at,
                "status": "blocked",
                "error": second.error,
                "steps_ran": 0,
                "steps_read_back": 0,
                "tokens_not_spent": 0,
                "seconds_not_spent": 0.0,
            },
        ],
        "resolutions": [],
        "removals": [],
    }


def test_every_column_fits_a_terminal_of_80_columns(gnl_terminal, one_run):
    """On a narrow terminal the value gives way, and no other column does; each step stays on one line."""
    one_run("order-1", value={"name": "Ann " * 50})

    exit_code, screen = gnl_terminal("show", "order-1", environment={"NO_COLOR": "1", "TERM": "dumb"})

    assert exit_code == 0
    lines = [line for line in screen.splitlines() if "tool look_up" in line]
    assert len(lines) == 1
    assert len(lines[0]) <= 80
    for word in ("1 ", "safe", "done", " ms", '{"name": "Ann ', "…"):
        assert word in lines[0]
