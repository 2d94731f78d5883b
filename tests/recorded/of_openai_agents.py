"""The recorded application as agents of the OpenAI Agents SDK, inside one strict run of the journal."""

from typing import Any

import drive_openai_agents
from replay import playing

from gnl_middleware import Journal, never, safe
from gnl_openai_agents import DurableRunner

RUN_ID = "recorded"


class JournaledAgents(drive_openai_agents.OpenAIAgentsDriver):
    """The recorded application, with every tool labelled alike."""

    def __init__(self, job: Any, path: Any, world: Any) -> None:
        super().__init__(path)
        self.job, self.world = job, world
        self.score.counted = False

    async def adrive(self) -> Any:
        """Play all runs of the recording inside one run of the journal."""
        policy = safe if self.job.label == "safe" else never(recover=self.world.recover)
        with playing(self.path, self.score) as tape, Journal(self.job.folder / "journal.db") as journal:
            self.world.remember(tape)
            # The driver's own name for the SDK's runner: it is given ours, which joins the open run.
            drive_openai_agents.Runner = DurableRunner(journal, default_policy=policy)
            async with journal.run(RUN_ID, replay="strict"):
                for run in self.rec.runs:
                    self.score.finals.append(await self.run_one(run))
        return self.score

    def _answer(self, run: Any, name: str, args: Any, call_id: str) -> str:
        answer = super()._answer(run, name, args, call_id)
        if name not in run.terminal_tools:
            self.world.executed(name, args, call_id)
        return answer
