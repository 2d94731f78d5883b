"""An incident becomes an offline test: a journalled run as a cassette, and a cassette as a journalled run."""

import asyncio
import json
import subprocess
import sys

import httpx2
import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, function_tool
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from gnl_httpx import JournalTransport
from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import Journal, safe
from gnl_middleware.cassettes import (
    CassetteExportError,
    CassetteMissError,
    CassetteSecretError,
    export_run,
    import_cassette,
    use_cassette,
)
from gnl_openai_agents import DurableRunner
from tests.cassettes.scenarios import CHAT_TOOLS, QUESTION, SUMMARY, both_at_once, one_after_another, weather
from tests.httpx.loops import openai_loop
from tests.record_cassettes import FOLDER, FORMATS
from tests.servers.scripted_openai import ScriptedOpenAI

ELSEWHERE = "http://changed.test"


def run_langchain(url, journal, run_id, *, model=ChatOpenAI, stream=False, system=None):
    base = url if model is ChatAnthropic else f"{url}/v1"
    chat = model(model="scripted", api_key="none", base_url=base, max_retries=0, streaming=stream)
    agent = create_agent(
        chat, [weather], middleware=[JournalMiddleware(safe=[weather])], system_prompt=system
    )
    question = {"messages": [("user", QUESTION)]}
    return run_durable(agent, question, run_id=run_id, journal=journal)["messages"][-1].text


def run_agents(url, journal, run_id, *, model=OpenAIResponsesModel):
    runner = DurableRunner(journal, policies={"weather": safe})

    async def run():
        async with openai.AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as client:
            agent = Agent(name="Forecaster", model=model("scripted", client), tools=[function_tool(weather)])
            configuration = RunConfig(tracing_disabled=True)
            return (await runner.run(agent, QUESTION, run_id=run_id, run_config=configuration)).final_output

    return asyncio.run(run())


def run_plain(url, journal, run_id, *, stream=False, offline=False):
    http_client = httpx2.Client(transport=JournalTransport())
    client = openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0, http_client=http_client)
    question = [{"role": "user", "content": QUESTION}]
    with client, journal.run(run_id, offline=offline):
        run = lambda _name, arguments: weather(**arguments)  # noqa: E731
        return openai_loop(client, question, CHAT_TOOLS, run, model="scripted-1", stream=stream)


PROGRAMS = {
    "LangChain, OpenAI": (run_langchain, {}),
    "LangChain, OpenAI, streamed": (run_langchain, {"stream": True}),
    "LangChain, Anthropic": (run_langchain, {"model": ChatAnthropic}),
    "LangChain, Anthropic, streamed": (run_langchain, {"model": ChatAnthropic, "stream": True}),
    "Agents SDK, responses": (run_agents, {}),
    "Agents SDK, chat": (run_agents, {"model": OpenAIChatCompletionsModel}),
    "plain": (run_plain, {}),
    "plain, streamed": (run_plain, {"stream": True}),
}


@pytest.fixture
def journal(tmp_path):
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


@pytest.fixture
def incident(journal):
    """A run in production, which asked a provider that is gone by now."""

    def happen(program, *, script=one_after_another, **options):
        with ScriptedOpenAI(script, formats=FORMATS) as server:
            url = server.base_url.removesuffix("/v1")
            assert program(url, journal, "incident", **options) == SUMMARY
            return len(server.requests)

    return happen


@pytest.mark.parametrize("script", [one_after_another, both_at_once], ids=lambda script: script.__name__)
@pytest.mark.parametrize(("program", "options"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_run_becomes_a_cassette_that_its_program_plays(
    journal, incident, tmp_path, *, program, options, script
):
    """The program runs again from the exported cassette, offline, wherever its provider was, and ends as the incident did."""
    path = tmp_path / "incident.yaml"
    calls = incident(program, script=script, **options)
    before = [step.key for step in journal.steps("incident")]

    assert export_run(journal, "incident", path) == calls

    with use_cassette(path) as cassette:
        assert program(ELSEWHERE, journal, "test", **options) == SUMMARY
    assert cassette.unplayed == ()
    assert [step.key for step in journal.steps("incident")] == before


def test_a_run_of_one_framework_is_a_test_of_another(journal, incident, tmp_path):
    """What is compared is the conversation: another client, format or way of streaming gets the same answers."""
    path = tmp_path / "incident.yaml"
    incident(run_langchain)
    export_run(journal, "incident", path)

    for number, (program, options) in enumerate(PROGRAMS.values()):
        with use_cassette(path):
            assert program(ELSEWHERE, journal, f"test-{number}", **options) == SUMMARY


def test_changed_code_that_tells_the_model_something_else_is_refused(journal, incident, tmp_path):
    """A new instruction is another conversation: nobody has recorded what the model says to it."""
    path = tmp_path / "incident.yaml"
    incident(run_langchain)
    export_run(journal, "incident", path)

    with pytest.raises(CassetteMissError) as missed, use_cassette(path):
        run_langchain(ELSEWHERE, journal, "test", system="Be brief.")

    assert '"text": "Be brief."' in missed.value.diff


def test_a_secret_in_the_conversation_is_refused(journal, incident, tmp_path):
    """A production run holds what customers wrote: what must not be written is refused, or replaced."""
    path = tmp_path / "incident.yaml"

    def asks(url, journal, run_id):
        chat = ChatOpenAI(model="scripted", api_key="none", base_url=f"{url}/v1", max_retries=0)
        agent = create_agent(chat, [weather], middleware=[JournalMiddleware(safe=[weather])])
        question = {"messages": [("user", "I am ada@lovelace.io: what is the weather?")]}
        return run_durable(agent, question, run_id=run_id, journal=journal)["messages"][-1].text

    incident(asks)
    with pytest.raises(CassetteSecretError, match="an e-mail address"):
        export_run(journal, "incident", path)
    assert not path.exists()

    replace = {"ada@lovelace.io": "ada@example.com"}
    export_run(journal, "incident", path, replace=replace)
    with use_cassette(path, replace=replace):
        assert asks(ELSEWHERE, journal, "test") == SUMMARY


def test_what_cannot_be_exported_is_refused(journal, tmp_path):
    """A run without an answer of a model is none for a cassette, and the message says so."""
    with journal.run("no model"):
        pass

    with pytest.raises(CassetteExportError, match="no model call with an outcome"):
        export_run(journal, "no model", tmp_path / "none.yaml")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_cassette_becomes_a_run_that_is_read_back_offline(journal, stream):
    """An imported run answers a plain SDK client through its transport: nothing is asked and nothing is played."""
    count = import_cassette(journal, FOLDER / "chat_sequential.yaml", "imported")

    assert count == 3
    assert run_plain(ELSEWHERE, journal, "imported", stream=False, offline=True) == SUMMARY
    with pytest.raises(CassetteExportError, match="exists already"):
        import_cassette(journal, FOLDER / "chat_sequential.yaml", "imported")


def test_errors_and_cut_streams_are_no_part_of_an_imported_run(journal):
    """What is no outcome for the journal is none when it is imported."""
    assert import_cassette(journal, FOLDER / "chat_errors.yaml", "errors") == 2
    with pytest.raises(CassetteExportError, match="no whole answer"):
        import_cassette(journal, FOLDER / "chat_broken_stream.yaml", "broken")


def gnl(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "gnl_middleware.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_from_the_command_line(journal, incident, tmp_path):
    """`gnl export RUN --cassette FILE` and `gnl import FILE` do the same, and say what to do next."""
    incident(run_langchain)

    exported = gnl(tmp_path, "export", "incident", "--cassette", "incident.yaml", "--journal", "runs.db")
    unknown = gnl(tmp_path, "export", "other", "--cassette", "x.yaml", "--journal", "runs.db")
    imported = gnl(tmp_path, "import", "incident.yaml", "--journal", "new.db")

    assert (exported.returncode, exported.stderr) == (0, "")
    assert "3 model calls written to incident.yaml" in exported.stdout
    assert "use_cassette('incident.yaml')" in exported.stdout
    assert (unknown.returncode, "no run 'other'" in unknown.stderr) == (1, True)
    assert "3 model calls journalled as run 'incident'" in imported.stdout, imported.stderr
    shown = json.loads(gnl(tmp_path, "show", "incident", "--journal", "new.db", "--json").stdout)
    assert [step["kind"] for step in shown["steps"]] == ["model"] * 3
