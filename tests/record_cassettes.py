"""Record the cassettes that this repository ships: real clients against scripted servers, both on this machine.

Run it after a change of an agent, a script, or a client library that shapes requests:

    python tests/record_cassettes.py                            # all of them
    python tests/record_cassettes.py demo chat_structured       # some
    OPENAI_API_KEY=... python tests/record_cassettes.py --live gpt-4.1-mini chat_sequential
                                                                # from the real provider, where the scenario has one
"""

import argparse
import asyncio
import copy
import inspect
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

sys.path.append(str(Path(__file__).parents[1]))

from gnl_langchain import JournalMiddleware, run_durable
from gnl_langchain.demo.agent import BASE_URL, REQUEST, support_agent, support_model
from gnl_langchain.demo.desk import HelpDesk
from gnl_langchain.demo.traffic import RECORDING
from gnl_middleware import Journal
from gnl_middleware.cassettes import export_run, layout, use_cassette
from tests.cassettes.scenarios import SCENARIOS, Provider, Scenario
from tests.servers.scripted_formats import message, message_events, response, response_events
from tests.servers.scripted_openai import Reply, ScriptedOpenAI, ToolCall
from tests.servers.support_turn import support_turn

_NOTE = """\
Script:   {script}; no provider was asked, and the model's name is the script's
Again:    python tests/record_cassettes.py {name}"""


def record_demo(path: Path) -> None:
    """The traffic of `gnl demo`: two turns, of which answers that both got are kept once.

    In the first turn the desk is empty; in the second it has a ticket already, so that a ticket opened twice
    (`gnl demo --relabel create_ticket=safe`) finds answers too.
    """
    note = _NOTE.format(
        script="tests/servers/scripted_openai.py playing tests/servers/support_turn.py", name="demo"
    )
    with tempfile.TemporaryDirectory() as folder, ScriptedOpenAI(support_turn) as server:
        address, shown = urlsplit(server.base_url).netloc, urlsplit(BASE_URL).netloc
        with use_cassette(path, record=True, replace={address: shown}, note=note):
            for tickets_before in (0, 1):
                _play_demo(server.base_url, Path(folder, str(tickets_before)), tickets_before)
    _keep_one_of_each(path)


def _play_demo(base_url: str, folder: Path, tickets_before: int) -> None:
    desk = HelpDesk.open(folder)
    for number in range(tickets_before):
        desk.open_ticket("C-1042", "an earlier ticket", reference=f"earlier-{number}")
    agent = support_agent(desk, model=support_model(base_url))
    request = {"messages": [HumanMessage(REQUEST)]}
    with Journal(str(folder / "journal.db")) as journal:
        run_durable(agent, request, run_id="record", journal=journal)


def _keep_one_of_each(path: Path) -> None:
    """Keep the first of equal interactions: in the demo, a request that is made again must find no answer."""
    header = [
        line.lstrip("# ") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")
    ]
    kept = []
    for interaction in layout.read(path):
        if interaction not in kept:
            kept.append(interaction)
    path.write_text(layout.written(kept, "\n".join(header)), encoding="utf-8")


FOLDER = Path(__file__).parents[1] / "cassettes"
PLAYED = Provider("http://provider.test", "scripted-1")
"""Whom the recorded programs ask when they are played: a name that nobody can have."""

FORMATS = {"/v1/responses": (response, response_events), "/v1/messages": (message, message_events)}
REAL = {
    "openai": ("https://api.openai.com", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}


def play(scenario: Scenario, provider: Provider) -> Any:
    """What the scenario's program finds out from this provider."""
    found = scenario.program(provider)
    return asyncio.run(found) if inspect.iscoroutine(found) else found


def record_scenario(name: str, path: Path) -> Any:
    """Record a scenario against its script; gives what its program found out."""
    scenario = SCENARIOS[name]
    note = _note(scenario, name, "tests/servers/scripted_openai.py playing tests/cassettes/scenarios.py")
    # A copy: a script may remember what it has refused already.
    with ScriptedOpenAI(copy.deepcopy(scenario.script), formats=FORMATS) as server:
        address = urlsplit(server.base_url).netloc
        with use_cassette(path, record=True, replace={address: urlsplit(PLAYED.url).netloc}, note=note):
            return play(scenario, Provider(f"http://{address}", PLAYED.model))


def record_live(name: str, path: Path, model: str) -> Any:
    """Record a scenario from its real provider, with the key in the environment."""
    scenario = SCENARIOS[name]
    if scenario.api is None:
        raise SystemExit(f"{name} is scripted only: no provider can be asked for it")
    url, variable = REAL[scenario.api]
    note = f"Shows:    {scenario.what}\nAgain:    python tests/record_cassettes.py --live {model} {name}"
    replace = {url: PLAYED.url, f'"{model}"': f'"{PLAYED.model}"'}
    with use_cassette(path, record=True, replace=replace, note=note):
        return play(scenario, Provider(url, model, os.environ[variable]))


def invoice(request: dict[str, Any]) -> Reply:
    """Looks the customer up, sends the invoice, and says so."""
    answered = sum(message["role"] == "tool" for message in request["messages"])
    if answered == 0:
        return Reply(calls=(ToolCall("call_1", "look_up", {"customer": "C-1042"}),))
    if answered == 1:
        arguments = {"to": "ada@example.com", "subject": "Your invoice"}
        return Reply(calls=(ToolCall("call_2", "send_mail", arguments),))
    return Reply("Your invoice is on its way to ada@example.com.")


def look_up(customer: str) -> str:
    """Look up a customer's address."""
    return f"{customer}: ada@example.com"


def send_mail(to: str, subject: str) -> str:
    """Send a mail."""
    return f"sent {subject!r} to {to}"


def record_invoice(path: Path) -> None:
    """The conversation of the notebooks: a journalled run, exported; any client of any framework can play it."""
    with (
        ScriptedOpenAI(invoice) as server,
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder, "runs.db")) as journal,
    ):
        model = ChatOpenAI(model="scripted-1", base_url=server.base_url, api_key="none")
        middleware = JournalMiddleware(safe=[look_up], never=[send_mail])
        agent = create_agent(model, [look_up, send_mail], middleware=[middleware])
        question = {"messages": [HumanMessage("Mail customer C-1042 their invoice.")]}
        run_durable(agent, question, run_id="invoice", journal=journal)
        export_run(journal, "invoice", path)


def _note(scenario: Scenario, name: str, script: str) -> str:
    return f"Shows:    {scenario.what}\n{_NOTE.format(script=script, name=name)}"


def main(arguments: list[str]) -> None:
    """Record these, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: demo, invoice, {', '.join(SCENARIOS)}")
    parser.add_argument("--live", metavar="MODEL", help="ask the real provider for this model")
    chosen = parser.parse_args(arguments)
    for name in chosen.names or ["demo", "invoice", *SCENARIOS]:
        path = RECORDING if name == "demo" else FOLDER / f"{name}.yaml"
        if name == "demo":
            record_demo(path)
        elif name == "invoice":
            record_invoice(path)
        elif chosen.live:
            record_live(name, path, chosen.live)
        else:
            record_scenario(name, path)
        sys.stdout.write(f"recorded {path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
