"""Something was changed between two attempts: a prompt, a model, the input, the order of what the code does."""

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from gnl_langchain import JournalMiddleware
from gnl_middleware import safe
from tests.schedules.loops import Loop
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.stage import Stage, program

from .branches import refunds
from .turns import one_after_another, refund_tool

TEXT = "refund 7, 8 and 9"
CHANGED_INPUTS: dict[str, list[tuple[str, str]]] = {
    "system message added": [("system", "be nice"), ("user", TEXT)],
    "user text changed": [("user", f"{TEXT}, it is 12:01")],
    "user message added": [("user", TEXT), ("user", "please")],
}


def _invoked(stage: Stage, agent: Any, messages: Sequence[tuple[str, str]]) -> str:
    # run_durable would refuse another input at once; a run opened by hand lets it through to the identity rules.
    with stage.run():
        return agent.invoke({"messages": list(messages)})["messages"][-1].text


@program
def new_prompt_and_model(stage: Stage) -> str:
    """A deployment between the attempts: another system prompt, another model."""
    version = f"v{min(stage.job.number, 2)}"
    agent = create_agent(
        scripted(one_after_another("fresh"), stage.world, name=f"model-{version}"),
        [refund_tool(stage)],
        system_prompt=f"prompt {version}",
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, {"messages": [("user", TEXT)]})


@program
def new_input(stage: Stage) -> str:
    """The messages differ between the attempts."""
    agent = create_agent(
        scripted(one_after_another("fresh"), stage.world),
        [refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"refund": stage.never})],
    )
    messages = [("user", TEXT)] if stage.job.number == 1 else CHANGED_INPUTS[stage.option("change")]
    return _invoked(stage, agent, messages)


@program
def new_plan(stage: Stage) -> str:
    """A system message is added between the attempts, and the model asks for other calls because of it."""

    def look(what: str) -> str:
        """Look something up."""
        return "found"

    def script(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if answers(messages):
            return AIMessage("done")
        refund = ("refund", {"order": 7}, f"refund_{asked}")
        if messages[0].type == "system":
            return calls(refund)
        return calls(("look", {"what": "order"}, f"look_{asked}"), refund)

    agent = create_agent(
        scripted(script, stage.world),
        [look, refund_tool(stage)],
        middleware=[JournalMiddleware(policies={"look": safe, "refund": stage.never})],
    )
    messages = [("user", TEXT)] if stage.job.number == 1 else [("system", "be nice"), ("user", TEXT)]
    return _invoked(stage, agent, messages)


@program
def agents_in_turn(stage: Stage) -> str:
    """Agents that only answer, in the order that ``agents`` gives for each process, such as ``A B|B A``."""
    with stage.run():
        return " ".join(
            Loop(
                scripted(refunds(name, 0), stage.world, name=model or "scripted"),
                {"refund": refund_tool(stage)},
                stage.never,
                system="same system" + added,
            ).ask(f"agent {name}")
            for name, added, model in _planned(stage)
        )


def _planned(stage: Stage) -> list[tuple[str, str, str]]:
    """Name, addition to the system prompt, and model of each agent of this process: ``A`` or ``A+text`` or ``A@model``."""
    planned = []
    for word in stage.option("agents").split("|")[stage.job.number - 1].split():
        name, _, model = word.partition("@")
        name, _, added = name.partition("+")
        planned.append((name, added, model))
    return planned
