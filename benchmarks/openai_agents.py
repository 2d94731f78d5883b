"""Agents of the OpenAI Agents SDK: as they are, and through this library."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from gnl_middleware import Journal, never
from gnl_openai_agents import DurableRunner

from .subject import AsyncWork, Database, LoopedSubject, Place, Work, database_size, file_size
from .text import payload

_QUIET = RunConfig(tracing_disabled=True)


class _InstantModel(Model):
    """Asks for one call of the tool again and again, so often as the first message says; without any state of its own."""

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the name of the SDK
        *_args: Any,
        **_options: Any,
    ) -> ModelResponse:
        items = [{"content": input}] if isinstance(input, str) else input
        steps, size = (int(number) for number in items[0]["content"].split())
        number = len(items) // 2
        said = _said() if number == steps else _calling(number, size)
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def _calling(number: int, size: int) -> ResponseFunctionToolCall:
    arguments = f'{{"number": {number}, "size": {size}}}'
    return ResponseFunctionToolCall(
        type="function_call", name="effect", call_id=f"call_{number}", arguments=arguments
    )


def _said() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
    return ResponseOutputMessage(
        id="done", type="message", role="assistant", status="completed", content=[text]
    )


@function_tool
def effect(number: int, size: int) -> str:
    """Do something that must not be done twice."""
    return payload(number, size)


class SdkUndurable(LoopedSubject):
    """The SDK as it is: a crash loses everything."""

    name = "Agents SDK, nothing kept"
    database: Database = "none"

    def prepare(self, place: Place) -> None:
        """Make the agent."""
        self._agent = Agent(name="agent", model=_InstantModel(), tools=[effect])

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is open before the agent runs."""
        yield lambda steps: Runner.run_sync(self._agent, f"{steps} {size}", **_options(steps)) and None

    @asynccontextmanager
    async def open_async(self, run_id: str, size: int) -> AsyncGenerator[AsyncWork]:
        """Nothing is open before the agent runs."""

        async def work(steps: int) -> None:
            await Runner.run(self._agent, f"{steps} {size}", **_options(steps))

        yield work


class SdkJournaled(LoopedSubject):
    """The SDK through this library."""

    resumes = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self.name = f"gnl, Agents SDK, {'SQLite' if database == 'sqlite' else 'PostgreSQL'}"

    def prepare(self, place: Place) -> None:
        """Name the journal, and make the agent."""
        self._path = place.file() if self.database == "sqlite" else None
        self._url = "" if self._path else place.database()
        self.journal = Journal(self._path or self._url)
        self._runner = DurableRunner(self.journal, policies={"effect": never})
        self._agent = Agent(name="agent", model=_InstantModel(), tools=[effect])

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Open the run."""
        with self.journal.run(run_id):
            yield (
                lambda steps: (
                    self._runner.run_sync(self._agent, f"{steps} {size}", **_options(steps)) and None
                )
            )

    @asynccontextmanager
    async def open_async(self, run_id: str, size: int) -> AsyncGenerator[AsyncWork]:
        """Open the run."""

        async def work(steps: int) -> None:
            await self._runner.run(self._agent, f"{steps} {size}", **_options(steps))

        async with self.journal.run(run_id):
            yield work

    def stored(self) -> int:
        """Bytes of the journal."""
        return file_size(self._path) if self._path else database_size(self._url)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


class SdkHandedOver(SdkJournaled):
    """The same; a recorded run is not replayed: what is over is handed to the SDK."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.name = f"{self.name}, handed over"

    @contextmanager
    def open(self, run_id: str, size: int) -> Generator[Work]:
        """Nothing is open before the agent runs, which opens the run."""

        def work(steps: int) -> None:
            options: dict[str, Any] = _options(steps) | {"resume": "handover"}
            self._runner.run_sync(self._agent, f"{steps} {size}", run_id=run_id, **options)

        yield work


def _options(steps: int) -> dict[str, Any]:
    return {"max_turns": steps + 2, "run_config": _QUIET}
