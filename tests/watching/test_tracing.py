"""Spans tell what ran, once; what was read back is marked and costs nothing (OpenTelemetry's API, GenAI conventions)."""

import asyncio
import contextlib
import subprocess
import sys
import threading

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from gnl_middleware import Journal, RecordedError, journaled, never, safe


class Killed(BaseException):
    """The worker is gone."""


@pytest.fixture
def exporter():
    """Where spans end up."""
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    """A provider of the user's."""
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


@pytest.fixture
def journal(tmp_path, provider):
    """A journal that traces."""
    with Journal(tmp_path / "runs.db", tracing=provider) as opened:
        yield opened


def job(journal, *, dies=False):
    """A step with one inside, and one that fails and is handled; then one in whose place the worker may die."""

    @journaled(replay=safe)
    def inner(text):
        return text.upper()

    @journaled(replay=safe)
    def outer(text):
        return inner(text)

    @journaled(replay=safe)
    def broken():
        raise ValueError("secret of ann")

    @journaled(replay=never)
    def send(to):
        if dies:
            raise Killed
        return "sent"

    with journal.run("order-1") as run:
        run.uuid4()
        outer("ann")
        with contextlib.suppress(ValueError, RecordedError):
            broken()
        inner("bob")
        if dies:
            raise Killed
        return send("ann")


def spans(exporter):
    """The spans by name."""
    return {span.name: span for span in exporter.get_finished_spans()}


def test_what_ran_is_a_span_in_its_place(journal, exporter):
    """An attempt is a span, a step one inside it, and what happened inside a step stands inside that."""
    job(journal)

    found = spans(exporter)
    attempt, outer = found["attempt 1"], found["execute_tool outer"]
    inside = next(span for span in exporter.get_finished_spans() if span.name == "execute_tool inner")
    assert inside.parent.span_id == outer.context.span_id
    assert outer.parent.span_id == attempt.context.span_id
    assert outer.attributes["gen_ai.operation.name"] == "execute_tool"
    assert outer.attributes["gen_ai.tool.name"] == "outer"
    assert (outer.attributes["gnl.run_id"], outer.attributes["gnl.policy"]) == ("order-1", "safe")
    assert "gen_ai.operation.name" not in found["value uuid4"].attributes
    assert attempt.attributes["gnl.status"] == "completed"
    assert attempt.attributes["gnl.steps_ran"] == 6


def test_an_error_is_marked_without_its_text(journal, exporter):
    """A step that failed says with which class; what the error said stays in the journal."""
    job(journal)

    broken = spans(exporter)["execute_tool broken"]
    assert broken.status.status_code is StatusCode.ERROR
    assert broken.attributes["error.type"] == "ValueError"
    assert "secret" not in broken.to_json()
    assert all("ann" not in span.to_json() for span in exporter.get_finished_spans())


def test_a_retry_adds_no_span_of_what_finished(journal, exporter):
    """What a retry reads back is marked on its attempt, has no second span, and adds no tokens; what runs has one."""
    with pytest.raises(Killed):
        job(journal, dies=True)
    exporter.clear()

    job(journal)

    found = spans(exporter)
    assert set(found) == {"attempt 2", "execute_tool send", "run order-1"}
    events = found["attempt 2"].events
    assert [event.attributes["gnl.name"] for event in events] == ["uuid4", "outer", "broken", "inner"]
    assert all(event.attributes["gnl.replayed"] for event in events)
    assert not any("token" in name for event in events for name in event.attributes)
    assert found["attempt 2"].attributes["gnl.steps_read_back"] == 4


def test_attempts_of_a_run_share_a_trace(tmp_path, provider, exporter):
    """Attempts of different processes are found together: their trace follows from the run's id."""
    for dies in (True, False):
        with Journal(tmp_path / "runs.db", tracing=provider) as journal, contextlib.suppress(Killed):
            job(journal, dies=dies)

    finished = exporter.get_finished_spans()
    assert len({span.context.trace_id for span in finished}) == 1
    whole = spans(exporter)["run order-1"]
    assert whole.start_time <= spans(exporter)["attempt 1"].start_time + 1_000_000_000
    assert whole.end_time >= spans(exporter)["attempt 2"].end_time
    assert whole.attributes["gnl.attempts"] == 2


def test_within_a_trace_of_the_caller(journal, provider, exporter):
    """Where the caller has a span of its own, the attempt stands inside it, and is linked to the run's."""
    with provider.get_tracer("app").start_as_current_span("request") as request:
        job(journal)

    attempt = spans(exporter)["attempt 1"]
    assert attempt.parent.span_id == request.get_span_context().span_id
    assert len(attempt.links) == 1


def test_a_completed_run_has_one_span(journal, exporter):
    """Reading a completed run back once more makes no second span of the run."""
    job(journal)
    job(journal)

    assert [span.name for span in exporter.get_finished_spans()].count("run order-1") == 1


def test_a_step_that_was_cut_off_has_ended(journal, exporter):
    """A body that the worker's end cuts off leaves no span open."""

    @journaled(replay=never)
    def send():
        raise Killed

    with pytest.raises(Killed), journal.run("a"):
        send()

    found = spans(exporter)
    assert found["execute_tool send"].attributes["gnl.status"] == "started"
    assert found["attempt 1"].attributes["gnl.status"] == "running"
    assert found["attempt 1"].status.status_code is StatusCode.ERROR


def test_coroutines_and_threads(journal, exporter):
    """Steps of tasks and of threads stand inside the attempt, too, whatever goes on at the same time."""

    @journaled(replay=safe)
    async def fetch(number):
        await asyncio.sleep(0)
        return number

    async def both(run):
        async with run:
            await asyncio.gather(*(fetch(number) for number in range(3)))

    asyncio.run(both(journal.run("a")))

    @journaled(replay=safe)
    def compute():
        return 1

    with journal.run("b") as run:

        def inside():
            with run.inside():
                compute()

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()

    finished = exporter.get_finished_spans()
    attempts = {span.attributes["gnl.run_id"]: span for span in finished if span.name == "attempt 1"}
    steps = [span for span in finished if "gnl.step_key" in span.attributes]
    assert len(steps) == 4
    assert all(
        step.parent.span_id == attempts[step.attributes["gnl.run_id"]].context.span_id for step in steps
    )


def test_nothing_is_traced_unless_it_is_asked_for(tmp_path, provider, exporter):
    """Without tracing=, there are no spans, and the package is not even loaded."""
    script = (
        "import sys\nfrom gnl_middleware import Journal\n"
        f"with Journal({str(tmp_path / 'other.db')!r}) as journal, journal.run('a') as run: run.uuid4()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )

    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert finished.stdout == "[]\n"


def test_without_a_provider_nothing_happens(tmp_path):
    """With tracing on and no SDK configured, the API's own silence is kept, and the run works."""
    with Journal(tmp_path / "runs.db", tracing=True) as journal:
        assert job(journal) == "sent"


def test_a_model_s_reply_is_a_chat_span(journal, exporter):
    """A model call of an adapter is a `chat` span of a client with the model's name; read back, it is an event only."""
    from langchain_core.language_models import FakeListChatModel

    from gnl_langchain import journaled_model, run_durable

    model = journaled_model(FakeListChatModel(responses=["hello", "never given"]))
    said = [run_durable(model, "hi", run_id="chat-1", journal=journal).content for _ in range(2)]

    assert said == ["hello", "hello"]
    chats = [span for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    assert [span.attributes["gen_ai.operation.name"] for span in chats] == ["chat"]
    assert chats[0].kind.name == "CLIENT"
    assert chats[0].attributes["gen_ai.request.model"] == chats[0].name.removeprefix("chat ")
    events = spans(exporter)["attempt 2"].events
    assert [event.attributes["gnl.step_kind"] for event in events] == ["model"]
