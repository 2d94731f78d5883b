"""Every kind of local tool is journalled or refused; what a provider runs itself is part of its reply."""

import asyncio
import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    RunHooks,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    ToolOutputImage,
    ToolOutputText,
    WebSearchTool,
    function_tool,
)
from agents.testing import ScriptedModel, assistant_message
from pydantic import BaseModel

from gnl_middleware import UnjournaledCallError, UnlabelledToolError, current_step, never, safe
from gnl_openai_agents import DurableRunner
from tests.openai_agents.driving import let_time_pass, run
from tests.openai_agents.mcp import desk_server
from tests.openai_agents.origins import Editor, custom_call, patch_call, shell_call, streamable
from tests.openai_agents.scripted import QUIET, agent, call, effect_tool, outputs, said, turns
from tests.worlds import Log

SHELL_RESULT = ShellResult(
    output=[ShellCommandOutput(stdout="a.txt", outcome=ShellCallOutcome(type="exit", exit_code=0))],
    max_output_length=100,
)


def shelled(effects: Log, result: Any) -> Agent[Any]:
    async def execute(request: Any) -> Any:
        effects.add("shell " + " ".join(request.data.action.commands))
        return result

    model = ScriptedModel([streamable([shell_call()]), [assistant_message("Done.")]])
    return Agent(name="A", model=model, tools=[ShellTool(executor=execute)])


def customised(effects: Log) -> Agent[Any]:
    async def invoke(context: Any, given: str) -> str:
        effects.add(f"custom {given}")
        return f"found {given}"

    model = ScriptedModel([streamable([custom_call()]), [assistant_message("Done.")]])
    tool = CustomTool(name="grep", description="", on_invoke_tool=invoke)
    return Agent(name="A", model=model, tools=[tool])


def patched(effects: Log) -> Agent[Any]:
    async def edit(operation: Any) -> str:
        effects.add(f"patch {operation.path}")
        return f"created {operation.path}"

    calls = [patch_call("a.txt", "c1"), patch_call("a.txt", "c2"), patch_call("b.txt", "c3")]
    model = ScriptedModel([streamable(calls), [assistant_message("Done.")]])
    return Agent(name="A", model=model, tools=[ApplyPatchTool(editor=Editor(edit))])


KINDS = {
    "shell": (lambda effects: shelled(effects, "a.txt"), ["shell ls"]),
    "shell_result": (lambda effects: shelled(effects, SHELL_RESULT), ["shell ls"]),
    "custom": (customised, ["custom x"]),
    "apply_patch": (patched, ["patch a.txt", "patch a.txt", "patch b.txt"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_is_a_step_and_is_read_back(journal, effects, durable, kind):
    """Shell, custom and apply-patch calls run once, equal calls of one reply too; a second run reads them back."""
    build, expected = KINDS[kind]
    runner = DurableRunner(journal, default_policy=never)
    first = durable(runner, build(effects), "go", run_id="order-7")

    again = durable(runner, build(effects), "go", run_id="order-7", offline=True)

    assert again.to_input_list() == first.to_input_list()
    assert again.final_output == "Done."
    assert effects.lines() == expected
    assert [step.status for step in journal.steps("order-7") if step.kind == "tool"] == ["done"] * len(
        expected
    )


@pytest.mark.parametrize("kind", ["shell", "custom", "apply_patch"])
def test_an_unlabelled_one_is_refused(journal, effects, kind):
    """These tools need a label like any other."""
    with pytest.raises(UnlabelledToolError):
        run(DurableRunner(journal), KINDS[kind][0](effects), "go", run_id="order-7")


def test_a_computer_is_refused(journal):
    """What a computer does cannot be journalled, so it is refused before anything runs, and never silently live."""
    computer = ComputerTool(computer=lambda *, run_context: None)
    refused = Agent(name="A", model=ScriptedModel([[said()]]), tools=[computer])

    with pytest.raises(UnjournaledCallError, match="computer"):
        run(DurableRunner(journal, default_policy=safe), refused, "go", run_id="order-7")


def test_a_sandbox_is_refused(journal):
    """Nor can what happens in a sandbox."""
    from agents.sandbox import SandboxAgent

    with pytest.raises(UnjournaledCallError, match="sandbox"):
        run(DurableRunner(journal), SandboxAgent(name="A"), "go", run_id="order-7")


def test_hosted_tools_need_no_label(journal):
    """What the provider runs itself is inside the model's reply."""
    hosting = Agent(name="A", model=ScriptedModel([[said()]]), tools=[WebSearchTool()])

    assert run(DurableRunner(journal), hosting, "go", run_id="order-7").final_output == "Done."


def test_a_tool_that_a_hook_adds_is_journalled(journal, effects):
    """Tools that come while the agent runs are wrapped when they come, and need a label too."""

    class Adding(RunHooks[Any]):
        async def on_agent_start(self, context: Any, started: Any) -> None:
            started.tools.append(effect_tool(effects))

    def build() -> Agent[Any]:
        return agent(turns([call("refund", order="7")], [said()]))

    runner = DurableRunner(journal, policies={"refund": never})
    for _ in range(2):
        result = run(runner, build(), "go", run_id="order-7", hooks=Adding())
    assert outputs(result)[2] == "output refund ok 7"
    assert effects.lines() == ["refund 7"]

    with pytest.raises(UnlabelledToolError):
        run(DurableRunner(journal), build(), "go", run_id="order-8", hooks=Adding())


class Price(BaseModel):
    amount: int


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, None, 2.5]},
        ["x", 1],
        (1, 2),
        Decimal("1.50"),
        b"\x00\xff",
        ToolOutputText(text="hi"),
        [ToolOutputText(text="a"), ToolOutputImage(image_url="https://x/y.png", detail="low")],
        Price(amount=3),
        "lone \ud800 surrogate",
        None,
    ],
    ids=["dict", "list", "tuple", "Decimal", "bytes", "text", "parts", "model", "surrogate", "None"],
)
def test_what_tools_return_comes_back(journal, value):
    """The model is told the same, live, on replay and without us; the SDK's own output types stay what they are."""
    seen: list[Any] = []

    def build() -> Agent[Any]:
        def give() -> Any:
            return value

        return agent(turns([call("give")], [said()]), function_tool(give))

    class Looking(RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append(result)

    from agents import Runner

    plain = asyncio.run(Runner.run(build(), "go", run_config=QUIET))
    runner = DurableRunner(journal, default_policy=safe)
    live = run(runner, build(), "go", run_id="order-7", hooks=Looking())
    again = run(runner, build(), "go", run_id="order-7", hooks=Looking(), offline=True)

    assert plain.to_input_list() == live.to_input_list() == again.to_input_list()
    assert seen[0] == seen[1]
    assert seen[0] == (str(value) if isinstance(value, Price) else value)


def test_a_timeout_is_what_the_model_is_told(journal, effects, durable):
    """Trap B: a tool that takes too long is told to the model as without us, and the record gives the same text."""

    def build() -> Agent[Any]:
        @function_tool(timeout=60)
        async def slow() -> str:
            effects.add("slow")
            let_time_pass(60)
            await asyncio.Event().wait()
            return "never"

        return agent(turns([call("slow")], [said()]), slow)

    runner = DurableRunner(journal, default_policy=never)
    first = durable(runner, build(), "go", run_id="order-7")
    again = durable(runner, build(), "go", run_id="order-7", offline=True)

    assert outputs(first)[2] == "output Tool 'slow' timed out after 60 seconds."
    assert outputs(again) == outputs(first)
    assert effects.lines() == ["slow"]


def test_what_a_label_on_a_function_says(journal, effects):
    """A label under ``function_tool``, or over it, is as good as ``policies=``; the tool itself stays as it was."""

    @function_tool
    @never
    def under(order: str) -> str:
        effects.add(f"under {order} {bool(current_step().idempotency_key)}")
        return "ok"

    plain = effect_tool(effects, "over")
    over = never(plain)
    labelled = agent(turns([call("under", order="1"), call("over", order="2")], [said()]), under, over)

    run(DurableRunner(journal), labelled, "go", run_id="order-7")

    assert {step.name: step.policy for step in journal.steps("order-7") if step.kind == "tool"} == {
        "under": "never",
        "over": "never",
    }
    assert over is not plain
    with pytest.raises(UnlabelledToolError, match="over"):
        run(DurableRunner(journal), agent(turns([said()]), plain), "go", run_id="order-8")


def test_nothing_of_the_users_is_changed(journal, effects):
    """Agents, tools, handoffs and models stay the very objects that they were."""
    tool, target = effect_tool(effects), agent(turns([said()]), name="B")
    given = agent(turns([call("refund", order="7")], [said()]), tool, handoffs=[target])
    before = dict(vars(given)), dict(vars(tool)), dict(vars(target))

    run(DurableRunner(journal, default_policy=never), given, "go", run_id="order-7")

    assert (vars(given), vars(tool), vars(target)) == before
    assert given.tools == [tool]


def test_a_thread_that_outlives_its_cancelled_call_is_recorded(journal, effects):
    """A synchronous tool is cancelled with its siblings, its thread goes on: its outcome is recorded when it ends."""
    began = threading.Event()

    def build(fails: bool) -> Agent[Any]:
        def slow() -> str:
            began.set()
            time.sleep(0.3)
            effects.add("slow")
            return "slow ok"

        @function_tool(failure_error_function=None)
        async def failing() -> str:
            await asyncio.to_thread(began.wait)
            if fails:
                raise ConnectionError("down")
            return "ok"

        both = [call("slow"), call("failing")]
        return agent(turns(both, [said()]), function_tool(slow), failing)

    runner = DurableRunner(journal, policies={"slow": never, "failing": safe})
    with pytest.raises(Exception, match="down"):
        run(runner, build(True), "go", run_id="order-7")

    result = run(runner, build(False), "go", run_id="order-7")

    assert outputs(result)[3:5] == ["output slow ok", "output ok"]
    assert effects.lines() == ["slow"]


def test_our_own_error_leaves_no_sibling_in_the_dark(journal, effects):
    """An error of ours waits for the siblings whose bodies run; the next attempt reads back what they did."""
    began = asyncio.Event()

    def build(stops: bool) -> Agent[Any]:
        @function_tool
        async def slow() -> str:
            began.set()
            await asyncio.sleep(0.2)
            effects.add("slow")
            return "slow ok"

        @function_tool
        async def stopping() -> str:
            await began.wait()
            if stops:
                from gnl_middleware.adapter import current_session
                from tests.openai_agents.test_exceptions import blocked

                current_session().stop(blocked())
            return "ok"

        return agent(turns([call("slow"), call("stopping")], [said()]), slow, stopping)

    runner = DurableRunner(journal, policies={"slow": never, "stopping": safe})
    with pytest.raises(Exception, match="may have happened"):
        run(runner, build(True), "go", run_id="order-7")

    result = run(runner, build(False), "go", run_id="order-7")

    assert (result.final_output, effects.lines()) == ("Done.", ["slow"])


async def through_mcp(runner: DurableRunner, started: Any, script: Any, **options: Any) -> Any:
    async with started() as server:
        asking = agent(script, mcp_servers=[server])
        result = await runner.run(asking, "go", run_config=QUIET, run_id="order-7", **options)
        return result, len(asking.model.calls)


def test_tools_of_an_mcp_server(journal, effects, tmp_path):
    """A call of a real MCP server's tool is a step with a label of its own, and is read back."""

    def mcp_server() -> Any:
        return desk_server(tmp_path / "server.py", effects.path)

    script = turns([call("refund", order="7")], [said()])
    with pytest.raises(UnlabelledToolError, match="refund"):
        asyncio.run(through_mcp(DurableRunner(journal), mcp_server, script))
    runner = DurableRunner(journal, policies={"refund": never})
    first, _ = asyncio.run(through_mcp(runner, mcp_server, script))

    again, asked = asyncio.run(through_mcp(runner, mcp_server, script, offline=True))

    assert again.to_input_list() == first.to_input_list()
    assert (again.final_output, asked, effects.lines()) == ("Done.", 0, ["refund 7"])
