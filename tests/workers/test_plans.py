"""With many runs in one journal, taking, working on, loading and listing a run stay as cheap as with one.

The plans are those of the very statements that the library sends, with the parameters that it sends.
"""

import pytest
import sqlalchemy as sa

from gnl_middleware import Journal, journaled, keyed, never, safe

STEPS = 20
BIG = ("gnl_runs", "gnl_attempts", "gnl_steps", "gnl_blobs", "gnl_effects")


def fill(connection, runs):
    """So many runs of twenty steps, written at once."""
    postgres = connection.dialect.name == "postgresql"
    prefix = "gnl." if postgres else ""

    def numbers(last):
        if postgres:
            return f"generate_series(1, {last}) AS n(i)"
        return f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n)"

    filled = {
        "gnl_runs": (
            runs,
            {
                "run_id": "'old-' || i",
                "status": "CASE i % 100 WHEN 0 THEN 'blocked' WHEN 1 THEN 'running' ELSE 'completed' END",
                "attempts": "1",
                "created_at": "i",
                "updated_at": "i",
                "fence": "1",
                "lease_ends_at": "0",
                "metadata": "'{}'",
                "locked": "i % 2",
            },
        ),
        "gnl_attempts": (
            runs,
            {
                "run_id": "'old-' || i",
                "attempt": "1",
                "holder": "'{}'",
                "started_at": "i",
                "status": "'completed'",
            },
        ),
        "gnl_steps": (
            runs * STEPS,
            {
                "run_id": f"'old-' || (i / {STEPS})",
                "key": f"'call/' || (i % {STEPS})",
                **dict.fromkeys(
                    (
                        "number",
                        "fence",
                        "tries",
                        "attempt",
                        "started_at",
                        "begun",
                        "tokens",
                        "raw",
                        "drifted",
                    ),
                    "1",
                ),
                **dict.fromkeys(("scope", "name", "policy", "token", "fingerprint", "intent_seal"), "'x'"),
                **dict.fromkeys(("rounds", "setups", "answered", "calls"), "'[]'"),
                "side_effect": "0",
                "kind": "'tool'",
                "status": "'done'",
                "arguments_hash": "'x'",
            },
        ),
        "gnl_effects": (
            runs,
            {
                "window_run": "''",
                "tool": "'old'",
                "digest": "'digest-' || i",
                "owner_run": "'old-' || i",
                "owner_key": "'call/1'",
                "claimed_at": "i",
            },
        ),
        "gnl_blobs": (
            runs * STEPS,
            {
                "run_id": f"'old-' || (i / {STEPS})",
                "hash": f"'hash-' || (i % {STEPS})",
                "compressed": "0",
                "body": "'body'",
            },
        ),
    }
    bytes_of = "bytea" if postgres else "BLOB"
    for table, (rows, columns) in filled.items():
        values = [
            f"CAST({value} AS {bytes_of})" if column in ("metadata", "body") else value
            for column, value in columns.items()
        ]
        statement = f"INSERT INTO {prefix}{table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {numbers(rows)}"
        connection.exec_driver_sql(statement.replace("%", "%%") if postgres else statement)
    if postgres:
        connection.exec_driver_sql("ANALYZE")


def statements_of(journal, work):
    """What a piece of work sends to the database, with parameters; each statement once."""
    sent = {}

    def note(_connection, _cursor, statement, parameters, _context, many):
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "WITH")):
            sent.setdefault(statement, parameters[0] if many else parameters)

    engine = journal._database().engine
    sa.event.listen(engine, "before_cursor_execute", note)
    work()
    sa.event.remove(engine, "before_cursor_execute", note)
    return sent


def full_scans(journal, sent):
    """The plans that read a big table from end to end, with their statements."""
    scans = []

    def explain(connection):
        postgres = connection.dialect.name == "postgresql"
        for statement, parameters in sent.items():
            if "clock_timestamp" in statement or "pg_catalog" in statement:
                continue
            words = "EXPLAIN" if postgres else "EXPLAIN QUERY PLAN"
            rows = connection.exec_driver_sql(f"{words} {statement}", parameters).all()
            for line in (str(row[-1]) for row in rows):
                scanned = "Seq Scan on" in line if postgres else line.strip().startswith("SCAN")
                if scanned and " USING " not in line and any(table in line for table in BIG):
                    scans.append((line, statement))

    journal._database().read(explain)
    return scans


def order(journal, run_id, **options):
    """A run with steps of each label, one of which may happen once in the whole journal."""
    with journal.run(run_id, **options) as run:
        run.now()
        journaled(lambda: 1, replay=safe, name="look_up")()
        journaled(lambda: 2, replay=never(once_per="args", window="journal"), name=f"charge-{run_id}")()
        journaled(lambda: 3, replay=keyed, name="mail")()


def check_plans(place, runs):
    """Nothing that a worker or a sweeper asks reads all runs or all steps."""
    with Journal(place) as journal:
        journal.runs()
        journal._database().write(lambda connection: fill(connection, runs))

        def all_of_it():
            for run_id, options in (("new", {}), ("shared", {"lock": False})):
                order(journal, run_id, **options)
                order(journal, run_id, **options)
                assert len(journal.steps(run_id)) == 4
            with journal.run("held") as run:
                assert journal._database().renew_lease("held", run.session.lease.fence, 0.0, 30.0)
            journal.runs(status="blocked", limit=20)
            journal.runs(limit=20)
            assert len(journal.runs(status="interrupted", limit=20)) == min(20, runs // 100)

        sent = statements_of(journal, all_of_it)

        assert len(sent) > 20
        assert full_scans(journal, sent) == []
        (scan,) = full_scans(journal, statements_of(journal, lambda: _read_everything(journal)))
        assert "gnl_steps" in scan[0]


def _read_everything(journal):
    """What the check must notice."""
    from gnl_middleware.storage.schema import steps

    its = sa.select(steps.c.name).where(steps.c.name == "nobody's")
    journal._database().read(lambda connection: connection.execute(its).all())


def test_plans_with_five_hundred_runs(place):
    """No statement of a worker or sweeper scans a table of 500 runs with 20 steps each."""
    check_plans(place, 500)


@pytest.mark.long
def test_plans_with_ten_thousand_runs(place):
    """The same with 10,000 runs."""
    check_plans(place, 10_000)
