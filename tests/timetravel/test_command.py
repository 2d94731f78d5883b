"""``gnl fork`` and ``gnl diff``."""

import json

import pytest
from click.testing import CliRunner

from gnl_middleware import ForkedEffectError, Journal, never, safe
from gnl_middleware.cli.app import app
from tests.timetravel.acting import World


def program(journal, run_id):
    """Look up and charge; gives what each gave."""
    world = World()
    with journal.run(run_id):
        return [world.act("look_up", safe), world.act("charge", never)]


@pytest.fixture
def path(tmp_path):
    """A journal with one run in it."""
    with Journal(tmp_path / "runs.db") as journal:
        program(journal, "order-7")
    return tmp_path / "runs.db"


@pytest.fixture
def gnl(path):
    """Run a command on it; gives what it printed."""

    def run(*words, code=0):
        ended = CliRunner().invoke(app, words, env={"GNL_JOURNAL": str(path)}, prog_name="gnl")
        assert ended.exit_code == code, ended.output
        return ended.output

    return run


def test_a_fork_is_made_run_and_compared(gnl, path):
    """The command makes the fork, says what it keeps and how to go on; the run, its list and its difference tell of it."""
    told = gnl("fork", "order-7", "b", "--before", "charge", "--edit", 'look_up="gold"', "--by", "ada")

    assert told.splitlines()[0] == "run b  interrupted"
    assert "fork of order-7; no side effect runs" in told
    assert "1 step kept, 1 of them edited." in told
    with Journal(path) as journal, pytest.raises(ForkedEffectError):
        program(journal, "b")
    shown = gnl("show", "b")
    assert 'charge({"given": tuple([])}), has not run, since this fork performs no side effects.' in shown
    assert "gnl resolve b 2 --happened --by YOU --result JSON" in shown
    assert "may have happened" not in shown
    gnl("resolve", "b", "2", "--happened", "--result", '"in mind"', "--by", "ada")
    with Journal(path) as journal:
        assert program(journal, "b") == ["gold", "in mind"]
    compared = gnl("diff", "order-7", "b")
    assert compared.splitlines()[:3] == [
        "0 steps equal, then the outcome differs:",
        "  a  order-7: step 1, tool look_up, done",
        "  b  b: step 1, tool look_up, done",
    ]
    assert compared.splitlines()[-2:] == ["  -look_up done", "  +gold"]


def test_json(gnl):
    """With --json each command prints one object."""
    made = json.loads(gnl("fork", "order-7", "b", "--effects", "--json"))["run"]
    same = json.loads(gnl("diff", "order-7", "b", "--json"))
    gnl("fork", "order-7", "c", "--before", "2", "--fail", "1=no such customer")
    apart = json.loads(gnl("diff", "order-7", "c", "--json"))

    assert (made["run_id"], made["forked_from"], made["effects"]) == ("b", "order-7", True)
    assert (same["a"], same["b"], same["equal_steps"], same["what"], same["step_a"]) == (
        "order-7",
        "b",
        2,
        None,
        None,
    )
    assert (apart["what"], apart["step_a"]["status"], apart["step_b"]["status"]) == (
        "outcome",
        "done",
        "failed",
    )
    assert gnl("diff", "order-7", "b") == "The runs are equal: 2 steps.\n"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("fork", "order-8", "b"), 1, "There is no run 'order-8'"),
        (("fork", "order-7", "order-7"), 1, "a run of that name already"),
        (
            ("fork", "order-7", "b", "--before", "mail"),
            1,
            "no step 'mail'; its steps: 1 (look_up), 2 (charge)",
        ),
        (("fork", "order-7", "b", "--edit", "look_up=gold"), 2, "it is not JSON"),
        (("fork", "order-7", "b", "--edit", "look_up"), 2, "is not STEP="),
        (("fork", "order-7", "b", "--edit", "1=1", "--edit", "1=2"), 2, "is given twice"),
        (("fork", "order-7", "b", "--edit", "1=1", "--fail", "1=no"), 2, "a result with --edit and an error"),
        (("diff", "order-7", "b"), 1, "There is no run 'b'"),
    ],
    ids=["source", "target", "step", "json", "pair", "twice", "both", "diff"],
)
def test_refusals(gnl, words, code, told):
    """What cannot be meant is one paragraph on what to do, and changes nothing."""
    output = gnl(*words, code=code)

    assert told in output
    assert "Traceback" not in output
    assert json.loads(gnl("runs", "--json"))["runs"][0]["run_id"] == "order-7"
    assert len(json.loads(gnl("runs", "--json"))["runs"]) == 1


def test_hostile_names(gnl, path):
    """What a run or a tool is called reaches no terminal as it is."""
    with Journal(path) as journal:
        with journal.run("evil\x1b[2J"):
            World().act("wipe\x1b[2J", safe)
        journal.fork("evil\x1b[2J", "evil\x1b[3J", before=1)

    for words in (("diff", "evil\x1b[2J", "evil\x1b[3J"), ("fork", "evil\x1b[2J", "new\x1b[2J")):
        output = gnl(*words)

        assert "\x1b" not in output
        assert "\\x1b[2J" in output
