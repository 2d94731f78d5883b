"""`gnl runs` with filters, `prune`, `erase`, `doctor`, `db` and `completion`: a journal in operation."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gnl_middleware import Journal, journaled, safe
from gnl_middleware.cli.app import app
from tests.cli.interrupts import hear_interrupts

VERSION_1 = Path(__file__).parents[1] / "migrations" / "version_1.sqlite.sql"


def run_ids(output):
    """The runs of a listing."""
    return [run["run_id"] for run in json.loads(output)["runs"]]


def make_old(journal_path, *run_ids):
    """Make runs a week old."""
    with contextlib.closing(sqlite3.connect(journal_path)) as connection, connection:
        for run_id in run_ids:
            connection.execute(
                "UPDATE gnl_runs SET updated_at = updated_at - 604800 WHERE run_id = ?", (run_id,)
            )


class TestRuns:
    def test_filters(self, gnl, one_run, blocked, journal_path):
        """Metadata, tags, patterns, several statuses, age and number narrow the list."""
        one_run("order-1", metadata={"customer": "ann", "items": 2}, tags=["vip"])
        one_run("order-2", metadata={"customer": "ann", "items": 3})
        blocked("refund-1")
        make_old(journal_path, "order-2")

        def listed(*arguments):
            return run_ids(gnl("runs", "--json", *arguments).output)

        assert listed("--where", "customer=ann") == ["order-1", "order-2"]
        assert listed("--where", "customer=ann", "--where", "items=2") == ["order-1"]
        assert listed("--tag", "vip") == ["order-1"]
        assert listed("--like", "order-*") == ["order-1", "order-2"]
        assert listed("--status", "blocked", "--status", "completed", "--since", "1d") == [
            "refund-1",
            "order-1",
        ]
        assert listed("--limit", "1") == ["refund-1"]
        assert gnl("runs", "--tag", "nobody").output == "No run fits.\n"

    @pytest.mark.parametrize(
        "arguments", [("--since", "yesterday"), ("--where", "customer"), ("--limit", "0")]
    )
    def test_what_means_nothing_is_a_usage_error(self, gnl, one_run, arguments):
        """A filter that cannot be understood is refused, not ignored."""
        one_run()

        assert "Error: Invalid value" in gnl("runs", *arguments, exit_code=2).stderr

    def test_watch_tells_what_changes(self, journal_path, one_run):
        """`--watch --json` prints each run, and again once it has changed; Ctrl-C ends it well."""
        one_run("order-1")
        watching = subprocess.Popen(
            [sys.executable, "-m", "gnl_middleware.cli", "runs", "--watch", "--json"],
            env=os.environ | {"GNL_JOURNAL": str(journal_path), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=hear_interrupts,  # noqa: PLW1509 - it takes no lock
        )
        with watching:
            first = json.loads(watching.stdout.readline())
            one_run("order-2", policy=safe)
            second = json.loads(watching.stdout.readline())
            watching.send_signal(signal.SIGINT)
            rest, _ = watching.communicate(timeout=30)

        assert (first["run_id"], second["run_id"], second["tags"]) == ("order-1", "order-2", [])
        assert watching.returncode == 0
        assert [json.loads(line)["run_id"] for line in rest.splitlines()] in ([], ["order-2"])


class TestShow:
    def test_attempts_say_what_they_did_not_spend(self, gnl, journal_path):
        """Each attempt stands under the one before, with the steps that it read back and the time that they took."""
        for _ in range(2):
            with contextlib.suppress(ValueError), Journal(journal_path) as journal, journal.run("order-1"):
                journaled(lambda: "found", replay=safe, name="look_up")()
                raise ValueError("no stock")

        lines = gnl("show", "order-1").output.splitlines()

        (first, second) = [line for line in lines if line.startswith("attempt ")]
        assert first.startswith("attempt 1  failed")
        assert "read back" not in first
        assert "read back 1 step:" in second
        assert "not spent again; ValueError: no stock" in second

    def test_an_erased_run_shows_its_proof(self, gnl, one_run):
        """Of a removed run, what is gone, who asked for it and why is shown, and how to begin anew."""
        one_run()
        gnl("erase", "order-1", "--yes", "--by", "desk", "--note", "ticket 9")

        output = gnl("show", "order-1").output
        told = json.loads(gnl("show", "order-1", "--json").output)

        assert "by desk (ticket 9): 1 steps and 2 payloads" in output
        assert "restart=True" in output
        assert told["removals"][0]["digest"] in output
        assert (told["run"]["status"], told["steps"], told["attempts"]) == ("erased", [], [])

    def test_decisions_are_shown_with_who_and_why(self, gnl, blocked):
        """Whoever looks later sees who decided what, and why."""
        blocked()
        gnl("resolve", "order-1", "1", "--happened", "--by", "ada", "--note", "mailbox says so")

        output = gnl("show", "order-1").output
        (decision,) = json.loads(gnl("show", "order-1", "--json").output)["resolutions"]

        assert "ada decided send_email/" in output
        assert ": happened: mailbox says so" in output
        assert (decision["by"], decision["decision"], decision["note"]) == (
            "ada",
            "happened",
            "mailbox says so",
        )


class TestResolveOnATerminal:
    def answered(self, journal_path, monkeypatch, *answers, step=()):
        """Resolve as a person at a terminal does."""
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("getpass.getuser", lambda: "ada")
        runner = CliRunner()
        monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _self: True, raising=False)
        return runner.invoke(
            app,
            ["resolve", "order-1", *step, "--journal", str(journal_path)],
            input="\n".join(answers) + "\n",
        )

    def test_each_call_is_shown_and_asked_for(self, blocked, journal_path, monkeypatch):
        """Arguments, key and reason are shown; what the person answers is recorded under the login name."""
        blocked(names=("send_email", "send_sms"))

        result = self.answered(journal_path, monkeypatch, "h", '{"id": 7}', "looked", "s")

        assert result.exit_code == 0, result.output
        assert '["ann"]' in result.output or '"to": "ann"' in result.output
        assert "idempotency key" in result.output
        assert "the tool has no recover=" in result.output
        assert "The run waits for 1 more: gnl resolve order-1" in result.output
        with Journal(journal_path) as journal:
            steps = journal.steps("order-1")
            assert [step.value for step in steps if step.resolution == "happened"] == [{"id": 7}]
            assert [found.by for found in journal.resolutions("order-1")] == ["ada"]

    def test_what_cannot_be_understood_is_asked_again(self, blocked, journal_path, monkeypatch):
        """A letter that is none of the choices, or a result that is no JSON, decides nothing."""
        blocked()

        result = self.answered(journal_path, monkeypatch, "x", "h", "{", '"sent"', "", step=["send_email"])

        assert result.exit_code == 0, result.output
        with Journal(journal_path) as journal:
            assert journal.steps("order-1")[0].value == "sent"

    def test_nothing_waits(self, one_run, journal_path, monkeypatch):
        """Where nothing waits, nobody is asked, and the command ends with 1."""
        one_run()

        result = self.answered(journal_path, monkeypatch)

        assert (result.exit_code, "waiting: none" in result.output) == (1, True)


class TestRemoving:
    def test_prune(self, gnl, one_run, journal_path):
        """Old runs go when a script says so; a dry run tells which, and removes nothing."""
        one_run("order-1")
        one_run("order-2")
        make_old(journal_path, "order-1")

        tried = gnl("prune", "--older-than", "1d", "--dry-run").output
        refused = gnl("prune", "--older-than", "1d", exit_code=2).stderr
        told = json.loads(gnl("prune", "--older-than", "1d", "--yes", "--by", "ops", "--json").output)

        assert tried.splitlines()[-1].startswith("1 run would be removed, ")
        assert "--yes" in refused
        assert ([run["run_id"] for run in told["runs"]], told["dry_run"]) == (["order-1"], False)
        assert run_ids(gnl("runs", "--json").output) == ["order-2"]
        assert run_ids(gnl("runs", "--status", "erased", "--json").output) == ["order-1"]

    def test_prune_never_touches_open_runs(self, gnl, one_run):
        """A status whose runs are open cannot even be asked for."""
        one_run()

        for status in ("running", "paused"):
            assert (
                "Invalid value" in gnl("prune", "--older-than", "1d", "--status", status, exit_code=2).stderr
            )

    def test_erase_by_metadata_as_json(self, gnl, one_run):
        """A customer's data goes, with a proof whose shape is documented."""
        one_run("order-1", metadata={"customer": "ann"})
        one_run("order-2", metadata={"customer": "bob"})

        told = json.loads(gnl("erase", "--where", "customer=ann", "--yes", "--by", "desk", "--json").output)

        (proof,) = told["runs"]
        assert told == {
            "dry_run": False,
            "runs": [proof],
            "busy": [],
            "bytes": proof["bytes"],
            "rewritten": True,
        }
        assert proof == {
            "run_id": "order-1",
            "kind": "erased",
            "removed_at": proof["removed_at"],
            "by": "desk",
            "note": "",
            "steps": 1,
            "steps_kept": 0,
            "payloads": 2,
            "bytes": proof["bytes"],
            "digest": proof["digest"],
        }
        assert run_ids(gnl("runs", "--json").output) == ["order-2"]

    def test_erase_of_a_held_run(self, gnl, journal_path):
        """What a worker holds stays: alone it is an error, among others it is named and the command ends with 1."""
        with Journal(journal_path) as journal, journal.run("order-1", metadata={"customer": "ann"}):
            alone = gnl("erase", "order-1", "--yes", exit_code=1).stderr
            among = gnl("erase", "--where", "customer=ann", "--yes", exit_code=1).stderr

        assert "held by another worker" in alone
        assert "order-1" in among

    def test_what_to_erase_must_be_said(self, gnl, one_run):
        """Neither nothing nor a run that is not there is erased."""
        one_run()

        assert "Give either" in gnl("erase", "--yes", exit_code=2).stderr
        assert "There is no run" in gnl("erase", "order-9", "--yes", exit_code=1).stderr


class TestDoctor:
    def test_a_healthy_journal(self, gnl, one_run):
        """Where nothing needs doing, the command ends with 0 and says what it looked at."""
        one_run()

        told = json.loads(gnl("doctor", "--json").output)

        assert told["ok"]
        assert [finding["check"] for finding in told["findings"]] == [
            *("database", "schema", "sync", "clock", "runs", "payloads"),
        ]
        assert told["counts"] == {"runs": 1, "steps": 1, "payloads": 2, "bytes": told["counts"]["bytes"]}
        assert told["open"] == []

    def test_what_the_next_attempt_would_do(self, gnl, blocked, interrupted):
        """Blocked runs need a person, so the command ends with 1; each open run says what comes next."""
        blocked("order-1")
        interrupted("order-2")

        told = json.loads(gnl("doctor", "--json", exit_code=1).output)
        text = gnl("doctor", exit_code=1).output

        assert [run["run_id"] for run in told["open"]] == ["order-2", "order-1"]
        assert "may have happened: its recover= is asked, else it stops" in told["open"][0]["next"][1]
        assert "waits for a decision: gnl resolve order-1 1 --happened" in told["open"][1]["next"][1]
        assert "1 blocked, 1 interrupted" in text

    def test_a_clock_that_is_off(self, gnl, one_run, journal_path):
        """A run that changed in the future tells that some machine's clock is wrong."""
        one_run()
        with contextlib.closing(sqlite3.connect(journal_path)) as connection, connection:
            connection.execute("UPDATE gnl_runs SET updated_at = updated_at + 3600")

        assert "synchronise it (NTP)" in gnl("doctor", exit_code=1).output

    def test_large_payloads_are_named(self, gnl, one_run):
        """A payload that makes the journal grow is named with its run, step and size."""
        one_run(value=os.urandom(1_200_000).hex())

        assert "value of look_up in order-1: 1." in gnl("doctor").output


class TestDatabase:
    def test_upgrade(self, gnl, one_run, journal_path):
        """An up-to-date journal stays as it is, and says so."""
        one_run()

        assert json.loads(gnl("db", "upgrade", "--json").output) == {"from": 3, "to": 3}
        assert gnl("db", "upgrade").output == "Up to date: 3.\n"
        assert json.loads(gnl("db", "version", "--json").output) == {"found": 3, "supported": 3}

    def test_an_old_journal_is_brought_up_to_date(self, gnl, journal_path):
        """A journal that version 1 wrote is upgraded once, and its runs are all there."""
        with contextlib.closing(sqlite3.connect(journal_path)) as database, database:
            database.executescript(VERSION_1.read_text(encoding="utf-8"))

        assert json.loads(gnl("db", "version", "--json").output)["found"] == 1
        assert gnl("db", "upgrade").output == "Upgraded from schema version 1 to 3.\n"
        assert sorted(run_ids(gnl("runs", "--json").output)) == ["order-7", "order-8"]


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_script(self, gnl, shell, monkeypatch):
        """Each shell gets a script of its own that asks `gnl`."""
        monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda *_: None)

        assert f"_GNL_COMPLETE={shell}_complete" in gnl("completion", shell).output

    def test_run_ids_are_completed(self, gnl_process, one_run):
        """A shell that asks gets the runs that begin so; where there is no journal, it gets none, and no error."""
        one_run("order-1")
        one_run("refund-1")
        asked = {"_GNL_COMPLETE": "zsh_complete", "COMP_WORDS": "gnl show or", "COMP_CWORD": "2"}

        found = gnl_process(environment=asked)
        nothing = gnl_process(environment=asked | {"GNL_JOURNAL": "/nowhere.db"})

        assert "order-1" in found.stdout
        assert "refund-1" not in found.stdout
        assert (nothing.stdout.strip(), nothing.stderr) == ("", "")
