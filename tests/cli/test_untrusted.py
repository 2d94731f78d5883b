"""Whatever models, tools and callers wrote: it reaches a terminal as harmless characters, and a shell as one word."""

import contextlib
import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnl_middleware import Journal, SideEffectRetryBlockedError, journaled, never, safe
from gnl_middleware.viewer.plain import Place, compact, visible

HOSTILE = "[bold red]owned[/]\x1b[2J\x1b]0;title\x07\r\x9b31m\u202e:boom:"
BASH = shutil.which("bash") or "bash"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def effect(to):
    raise KeyboardInterrupt


def unsure(call):
    raise ValueError(HOSTILE)


@pytest.fixture
def hostile_run(journal_path):
    """A run whose every text is hostile: id, metadata, names, arguments, values, errors and the reason of its block."""
    run_id = f"run {HOSTILE}"
    with Journal(journal_path) as journal:
        for expected in (KeyboardInterrupt, SideEffectRetryBlockedError):
            with pytest.raises(expected):
                work(journal.run(run_id, metadata={HOSTILE: HOSTILE}))
    return run_id


def work(opening):
    with opening as run:
        journaled(lambda: {HOSTILE: [HOSTILE, (HOSTILE,)]}, replay=safe, name=HOSTILE)()
        with contextlib.suppress(ZeroDivisionError):
            journaled(lambda: 1 / 0, replay=safe, name="fails" + HOSTILE)()
        with run.scope(HOSTILE):
            journaled(effect, replay=never(recover=unsure), name=HOSTILE)(HOSTILE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs"],
        ["show", "RUN"],
        ["show", "RUN", "--json"],
        ["resolve", "RUN", "no such step", "--happened", "--by", "ops"],
        ["resolve", "RUN", "3", "--happened", "--by", HOSTILE],
        ["show", f"no such {HOSTILE}"],
    ],
)
def test_a_terminal_is_not_steered(gnl_terminal, hostile_run, arguments):
    """On a real terminal no command gives out a control character but the colours that are its own."""
    exit_code, screen = gnl_terminal(*[hostile_run if word == "RUN" else word for word in arguments])

    assert exit_code in (0, 1), screen
    harmless = COLOUR.sub("", screen).replace("\r\n", "")
    assert harmless.isprintable(), ascii(harmless)


def test_markup_is_shown_as_it_was_written(gnl, one_run):
    """Square brackets in a value are text, not a style: they come out as they went in."""
    one_run(name="[bold]look[/bold]", value="[red]:boom:[/]")

    output = gnl("show", "order-1").output

    assert "tool [bold]look[/bold]" in output
    assert '"[red]:boom:[/]"' in output


def test_json_holds_the_values_unchanged(gnl, hostile_run):
    """`--json` is plain ASCII, and what is parsed from it is what was journalled."""
    output = gnl("show", hostile_run, "--json").output

    assert output.isascii()
    assert output.rstrip("\n").isprintable()
    answer = json.loads(output)
    assert answer["run"]["run_id"] == hostile_run
    assert answer["steps"][0]["value"] == {HOSTILE: [HOSTILE, {"$gnl": "tuple", "value": [HOSTILE]}]}


@given(st.text(st.characters(codec=None)))
def test_visible_text_is_printable(text):
    """Any text at all becomes printable, and a printable text stays as it is."""
    shown = visible(text)

    assert shown.isprintable()
    assert (shown == text) == text.isprintable()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_compact_value_is_one_printable_line(value):
    """Any value becomes one printable line."""
    shown = compact(value)

    assert shown.isprintable()


@pytest.mark.parametrize(
    "run_id",
    [
        "order-1",
        "two words",
        "it's",
        "--json",
        "-",
        '$(touch owned) `id` \\ " ; & | > * ~ !',
        "line\nbreak\ttab",
        "\x1b[2J\x9b\u202e\\'",
        "naïve 北京 🎈",
        "zero\u200bwidth",
    ],
)
def test_a_shell_takes_the_command_for_what_was_meant(run_id):
    """Pasted into a shell, the printed command is one line and hands over exactly this run id and this journal."""
    command = Place(("--journal", f"{run_id}.db")).command("show", run_id, options=["--json"])

    script = f'gnl() {{ printf "%s\\0" "$@"; }}; {command}'
    handed = subprocess.run([BASH, "-c", script], capture_output=True, check=True).stdout

    assert command.isprintable()
    words = [word.decode() for word in handed.split(b"\0")[:-1]]
    assert sorted(word for word in words if word != "--") == sorted(
        ["show", run_id, "--json", "--journal", f"{run_id}.db"]
    )


def test_a_run_that_is_called_like_an_option_can_be_shown(gnl, blocked):
    """The commands printed for a run id that begins with a dash work as they stand."""
    blocked("--status")

    shown = gnl("show", "--", "--status").output

    assert "    gnl resolve --happened --by YOU -- --status 1\n" in shown
    gnl("resolve", "--happened", "--by", "ops", "--", "--status", "1")
