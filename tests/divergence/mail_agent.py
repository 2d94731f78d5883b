"""An agent as `gnl verify` is pointed at it; the environment says what has changed since."""

import os
from pathlib import Path

from langchain.agents import create_agent

from gnl_langchain import JournalMiddleware, run_durable
from gnl_middleware import journaled, safe
from gnl_middleware.testing import EffectLog
from tests.langchain.scripted import QUESTION, ScriptedModel, calling, said, turns

BILL, EFFECTS = "bill", "effects"


@journaled(replay=safe)
def archive(text):
    """A step that the code comes to after the agent."""
    return len(text)


def build():
    changed = os.environ.get("CHANGED", "")

    def mail(to: str) -> str:
        """Mail somebody."""
        EffectLog(Path(os.environ["MAIL_FOLDER"]) / EFFECTS).note("mail")
        return "sent"

    to = "bob" if changed == "arguments" else "ann"
    script = [calling("mail", to=to), said("Mailed.")]
    bill = EffectLog(Path(os.environ["MAIL_FOLDER"]) / BILL)
    model = ScriptedModel(script=turns(*script), bill=_Bill(bill))
    prompt = "Be verbose." if changed == "prompt" else "Be brief."
    return create_agent(model, [mail], system_prompt=prompt, middleware=[JournalMiddleware(never=[mail])])


class _Bill:
    def __init__(self, log):
        self._log = log

    def add(self, line):
        self._log.note("model")


def run(agent, run_id, journal):
    changed = os.environ.get("CHANGED", "")
    with journal.run(run_id):
        if changed == "nothing asked":
            return ""
        reply = agent.invoke(QUESTION)["messages"][-1].text
        if changed == "swallowed":
            return reply
        archive(reply)
        if changed == "one call more":
            archive("more")
    return reply


def run_durably(agent, run_id, journal):
    return run_durable(agent, QUESTION, run_id=run_id, journal=journal)


async def run_async(agent, run_id, journal):
    async with journal.run(run_id):
        reply = (await agent.ainvoke(QUESTION))["messages"][-1].text
        archive(reply)
    return reply


def run_without(agent, run_id, journal):
    return "nothing was opened"


def run_badly(agent, run_id, journal):
    run(agent, run_id, journal)
    raise OSError("the disk is full")
