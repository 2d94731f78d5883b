"""Agents of the OpenAI Agents SDK through the journal: ``DurableRunner``.

Example:
    >>> from gnl_openai_agents import DurableRunner     # doctest: +SKIP
    >>> runner = DurableRunner("runs.db", policies={"send_email": never})     # doctest: +SKIP
    >>> result = await runner.run(agent, "Please mail me my invoice.", run_id="support:42")     # doctest: +SKIP
"""

try:
    from .models import JournaledModel, JournaledProvider
    from .runner import DurableRunner
    from .sessions import journaled_session
    from .streams import DurableStream
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("agents", "openai", "pydantic"):
        raise
    raise ImportError(
        "gnl_openai_agents needs the Agents SDK: pip install 'gnl-middleware[openai-agents]'"
    ) from error

__all__ = ["DurableRunner", "DurableStream", "JournaledModel", "JournaledProvider", "journaled_session"]
