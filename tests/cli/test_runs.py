"""`gnl runs`: which runs there are, and how they stand."""

import json

from gnl_middleware import Journal


def listed(output):
    """The rows of the table, as words."""
    return [line.split() for line in output.splitlines() if line.startswith(" order")]


def test_runs_are_listed_the_latest_first(gnl, one_run, blocked):
    """Each run stands with its status and attempts, and the one that changed last stands first."""
    one_run("order-1")
    blocked("order-2")

    output = gnl("runs").output

    assert [row[:3] for row in listed(output)] == [["order-2", "blocked", "2"], ["order-1", "completed", "1"]]


def test_a_held_run_shows_its_holder(gnl, journal_path):
    """A run that a worker holds now names the worker."""
    with Journal(journal_path) as journal, journal.run("order-1"):
        output = gnl("runs").output

    (row,) = listed(output)
    assert row[1] == "running"
    assert "pid" in row


def test_runs_of_one_status(gnl, one_run, interrupted):
    """`--status` leaves out every other status."""
    one_run("order-1")
    interrupted("order-2")

    output = gnl("runs", "--status", "interrupted").output

    assert [row[0] for row in listed(output)] == ["order-2"]


def test_no_run_of_a_status(gnl, one_run):
    """Where no run has the status, a sentence says so; that is no error."""
    one_run()

    output = gnl("runs", "--status", "blocked").output

    assert output == "No run is blocked.\n"


def test_a_status_that_does_not_exist_is_a_usage_error(gnl, one_run):
    """A mistyped status is refused with the choices, not answered with an empty list."""
    one_run()

    result = gnl("runs", "--status", "blokced", exit_code=2)

    assert "'blocked'" in result.stderr


def test_an_empty_journal_has_no_runs(gnl, journal_path):
    """A journal without runs says so and is no error."""
    with Journal(journal_path) as journal:
        journal.runs()

    output = gnl("runs").output

    assert output == "No runs.\n"


def test_runs_as_json(gnl, one_run, journal_path):
    """`--json` prints the documented object: every attribute of a run, and values as the journal keeps them."""
    one_run(metadata={"customer": "ann", "parts": (1, 2)}, tags=["vip"])
    with Journal(journal_path) as journal:
        (record,) = journal.runs()

    answer = json.loads(gnl("runs", "--json").output)

    assert answer == {
        "runs": [
            {
                "run_id": "order-1",
                "status": "completed",
                "attempts": 1,
                "created_at": record.created_at,
                "updated_at": record.updated_at,
                "holder": None,
                "lease_ends_at": None,
                "metadata": {"customer": "ann", "parts": {"$gnl": "tuple", "value": [1, 2]}},
                "tags": ["vip"],
                "forked_from": None,
                "effects": True,
            }
        ]
    }


def test_no_runs_as_json(gnl, one_run):
    """Where nothing fits, `--json` prints an empty list, so that a program needs no special case."""
    one_run()

    answer = json.loads(gnl("runs", "--status", "failed", "--json").output)

    assert answer == {"runs": []}


def test_a_long_run_id_stays_whole_in_a_pipe(gnl, one_run):
    """Where no person looks, no line is folded or cut to the width of a terminal."""
    run_id = "order-" + "7" * 200
    one_run(run_id)

    output = gnl("runs").output

    assert [row[0] for row in listed(output)] == [run_id]
