"""Calls that are made again without a crash, by middleware that retries and falls back."""

from collections.abc import Sequence

from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, BaseMessage

from gnl_langchain import JournalMiddleware
from gnl_middleware import NotDone, never, safe
from tests.schedules.scripted_model import answers, calls, scripted
from tests.schedules.stage import Stage, program

from .turns import refund_tool

REQUEST = {"messages": [("user", "refund 7")]}


def one_refund(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
    """One refund, then the end."""
    return AIMessage("done") if answers(messages) else calls(("refund", {"order": 7}, f"call_{asked}"))


@program
def tool_times_out(stage: Stage) -> str:
    """A refund goes through, but its answer is late: a retry middleware calls the tool again."""

    def refund(order: int) -> str:
        """Refund an order."""
        stage.world.act(f"refund {order}", f"refunded {order}")
        if stage.world.effects[f"refund {order}"] == 1:
            raise TimeoutError("no answer within 10 s")
        return f"refunded {order}"

    policies = {
        "safe": safe,
        "never": never,
        "truthful": stage.never,
        "not_done": never(recover=lambda call: NotDone()),
        "not_performed": never(not_performed=(TimeoutError,)),
    }
    agent = create_agent(
        scripted(one_refund, stage.world),
        [refund],
        middleware=[
            ToolRetryMiddleware(max_retries=2, initial_delay=0.001, jitter=False),
            JournalMiddleware(policies={"refund": policies[stage.option("policy")]}),
        ],
    )
    return stage.durable(agent, REQUEST)


@program
def falling_back(stage: Stage) -> str:
    """The primary model is down in the first process, so another one answers; in the next process it is up again."""

    def primary(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if stage.job.number == 1:
            raise RuntimeError("429: too many requests")
        return one_refund(messages, asked)

    agent = create_agent(
        scripted(primary, stage.world, name="primary"),
        [refund_tool(stage)],
        middleware=[
            ModelFallbackMiddleware(scripted(one_refund, stage.world, name="fallback")),
            JournalMiddleware(policies={"refund": stage.never}),
        ],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)


@program
def model_retried(stage: Stage) -> str:
    """Every second question gets an error, and a retry middleware asks again."""

    def flaky(messages: Sequence[BaseMessage], asked: int) -> AIMessage:
        if asked % 2 == 1:
            raise RuntimeError("500: internal error")
        return one_refund(messages, asked)

    agent = create_agent(
        scripted(flaky, stage.world),
        [refund_tool(stage)],
        middleware=[
            ModelRetryMiddleware(max_retries=3, initial_delay=0.001, jitter=False),
            JournalMiddleware(policies={"refund": stage.never}),
        ],
        checkpointer=stage.saver,
    )
    return stage.durable(agent, REQUEST)
