"""Processes that really die, forked from a server that has imported the Agents SDK as well."""

import multiprocessing

from tests.langchain.processes import Ended, in_process

multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["pytest", "tests.langchain.preloaded", "tests.openai_agents.preloaded"]
)

__all__ = ["Ended", "in_process"]
