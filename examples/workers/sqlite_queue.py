"""One machine, no server: a table of jobs in SQLite, and a sweeper for the runs whose worker died.

python sqlite_queue.py add 42      put a job into the table
python sqlite_queue.py work        do what there is to do; any number of these may run at once
"""

import contextlib
import sqlite3
import sys
import time

from support import handle, journal, run_id_of

from gnl_middleware import RunBusyError, RunRecord, SideEffectRetryBlockedError

VISIBILITY = 600  # seconds after which a job that was taken and never finished is given out again
TABLE = "CREATE TABLE IF NOT EXISTS jobs (name TEXT PRIMARY KEY, status TEXT DEFAULT 'ready', taken_at REAL DEFAULT 0)"
TAKE = """
UPDATE jobs SET status = 'taken', taken_at = :now WHERE name =
  (SELECT name FROM jobs WHERE status = 'ready' OR (status = 'taken' AND taken_at < :now - :visibility) LIMIT 1)
RETURNING name
"""


def execute(statement: str, **values: object) -> list[tuple[str]]:
    with contextlib.closing(sqlite3.connect("jobs.db", timeout=30)) as connection, connection:
        connection.execute(TABLE)
        return connection.execute(statement, values).fetchall()


def work() -> None:
    # A worker that died on this machine is noticed at once, long before its job is given out again.
    journal.sweep(take_up_again)
    while jobs := execute(TAKE, now=time.time(), visibility=VISIBILITY):
        do(jobs[0][0])


def take_up_again(run: RunRecord) -> None:
    do(run.run_id.removeprefix(run_id_of("")))


def do(job: str) -> None:
    try:
        print(handle(job))
    except RunBusyError:
        return  # its worker lives, and finishes it
    except SideEffectRetryBlockedError as blocked:
        print(blocked, file=sys.stderr)
        execute("UPDATE jobs SET status = 'waits for a person' WHERE name = :name", name=job)
    else:
        execute("UPDATE jobs SET status = 'done' WHERE name = :name", name=job)


if __name__ == "__main__":
    if sys.argv[1] == "add":
        execute("INSERT INTO jobs (name) VALUES (:name) ON CONFLICT DO NOTHING", name=sys.argv[2])
    else:
        work()
