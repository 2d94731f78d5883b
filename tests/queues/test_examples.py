"""The examples of queues: a worker is killed in the middle, its job is delivered again and ends with one effect."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnl_langchain.demo.desk import HelpDesk
from gnl_middleware import Journal
from gnl_middleware.testing import CRASH_EXIT_CODE
from tests.lacking import lack
from tests.postgres.server import create_database
from tests.queues.redis_server import NoRedisError, RedisServer
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall

EXAMPLES = Path(__file__).parents[2] / "examples/workers"
DYING = Path(__file__).with_name("dying")
TOOLS = {
    "create_ticket": {"customer_id": "C-1042", "subject": "Order 8841"},
    "send_email": {"to": "ops@acme.example", "subject": "Order 8841", "body": "We are at it."},
}
IN_THE_MIDDLE = "create_ticket:after_body"


def script(request):
    """Calls each tool once, then says that all is done."""
    called = {
        call["function"]["name"]
        for message in request["messages"]
        for call in message.get("tool_calls") or ()
    }
    for name, arguments in TOOLS.items():
        if name not in called:
            return Reply(calls=(ToolCall(f"call_{name}", name, arguments),))
    return Reply("All of it is done.")


@pytest.fixture
def server():
    """The model's provider."""
    with ScriptedOpenAI(script) as server:
        yield server


@pytest.fixture
def redis_url():
    """A Redis. In CI there must be one."""
    try:
        server = RedisServer()
    except NoRedisError as missing:
        lack(f"no Redis for Celery: {missing}")
    yield server.url
    server.remove()


class Desk:
    """A folder in which workers run, and what has happened there.

    Args:
        folder: Theirs.
        server: The model's provider.
        settings: More of the environment.
    """

    def __init__(self, folder, server, **settings):
        self.folder, self.place = folder, settings.get("JOURNAL", str(folder / "journal.db"))
        self._environment = os.environ | {
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "none",
            "PYTHONPATH": str(EXAMPLES),
            **settings,
        }

    def start(self, *command, crash_at=None):
        """Start a worker, or one that dies at this point."""
        environment = self._environment
        if crash_at is not None:
            paths = f"{DYING}:{EXAMPLES}"
            environment = environment | {"GNL_CRASH_AT": crash_at, "PYTHONPATH": paths}
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, *command], cwd=self.folder, env=environment, stdout=log, stderr=log
            )

    def run(self, *command, crash_at=None):
        """The exit code of a worker that ends by itself."""
        return self.start(*command, crash_at=crash_at).wait(timeout=120)

    def run_example(self, name, *arguments, crash_at=None):
        """Run an example as a reader would."""
        return self.run(str(EXAMPLES / f"{name}.py"), *arguments, crash_at=crash_at)

    def happened(self):
        """How many tickets there are, and how many mails."""
        desk = HelpDesk(self.folder / "helpdesk")
        return len(desk.tickets()), len(desk.mails())

    def runs(self):
        """Status and attempts of each run."""
        with Journal(self.place) as journal:
            return [(run.status, run.attempts) for run in journal.runs()]

    def log(self):
        """What the workers have said."""
        return (self.folder / "log").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path):
    """Each stays under 80 lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) < 80


def test_table_of_jobs(server, tmp_path):
    """A job whose worker was killed is taken up by the next sweep: one ticket, one mail; then there is nothing to do."""
    desk = Desk(tmp_path, server)
    assert desk.run_example("sqlite_queue", "add", "42") == 0
    assert desk.run_example("sqlite_queue", "work", crash_at=IN_THE_MIDDLE) == CRASH_EXIT_CODE
    assert (desk.happened(), desk.runs()) == ((1, 0), [("interrupted", 1)])

    assert [desk.run_example("sqlite_queue", "work") for _ in range(2)] == [0, 0]

    assert (desk.happened(), desk.runs()) == ((1, 1), [("completed", 2)])
    assert desk.log().count("All of it is done.") == 1


@pytest.mark.long
def test_table_of_jobs_that_wait_for_a_person(server, tmp_path):
    """A mail that may have gone out is not sent again: the job waits for a person, and says which command decides it."""
    desk = Desk(tmp_path, server)
    desk.run_example("sqlite_queue", "add", "42")
    desk.run_example("sqlite_queue", "work", crash_at="send_email:after_body")

    assert [desk.run_example("sqlite_queue", "work") for _ in range(2)] == [0, 0]

    assert (desk.happened(), desk.runs()) == ((1, 1), [("blocked", 2)])
    assert desk.log().count("gnl resolve") >= 1


def test_procrastinate(server, server_url, tmp_path):
    """A job whose worker fell silent is given out again: one ticket, one mail, queue and journal in one database."""
    desk = Desk(tmp_path, server, JOURNAL=create_database(server_url), SILENCE="0.5")
    assert desk.run_example("procrastinate_worker", "setup") == 0, desk.log()
    assert desk.run_example("procrastinate_worker", "add", "42") == 0
    assert desk.run_example("procrastinate_worker", "work", crash_at=IN_THE_MIDDLE) == CRASH_EXIT_CODE
    assert (desk.happened(), desk.runs()) == ((1, 0), [("interrupted", 1)])

    # Until its heartbeat is old enough, nothing is given out.
    wait_until(
        desk, lambda: desk.run_example("procrastinate_worker", "work") == 0 and desk.happened() == (1, 1)
    )

    assert desk.runs() == [("completed", 2)]


def test_celery(server, redis_url, tmp_path):
    """A message that a killed worker never acknowledged is delivered again: one ticket, one mail."""
    desk = Desk(tmp_path, server, BROKER=redis_url, VISIBILITY="1")
    celery = ("-m", "celery", "--app", "celery_worker")
    worker = (*celery, "worker", "--pool", "solo", "--without-gossip", "--without-mingle")
    assert desk.run(*celery, "call", "case", "--args", '["42"]') == 0
    assert desk.run(*worker, crash_at=IN_THE_MIDDLE) == CRASH_EXIT_CODE, desk.log()
    assert (desk.happened(), desk.runs()) == ((1, 0), [("interrupted", 1)])

    with ended(desk.start(*worker)):
        wait_until(desk, lambda: desk.runs() == [("completed", 2)])

    assert desk.happened() == (1, 1)


@contextlib.contextmanager
def ended(process):
    """End a worker that would go on for ever."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_until(desk, holds):
    """Look again and again until something is so."""
    patience = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < patience, desk.log()
        time.sleep(0.1)
