"""LangChain agents through the journal: ``JournalMiddleware``, ``journaled_model``, ``run_durable``.

Example:
    >>> from gnl_langchain import JournalMiddleware, run_durable     # doctest: +SKIP
    >>> agent = create_agent(model, tools, middleware=[JournalMiddleware(never=[send_email])])     # doctest: +SKIP
    >>> run_durable(agent, {"messages": [...]}, run_id="support:42", journal="runs.db")     # doctest: +SKIP
"""

try:
    from .durable import arun_durable, astream_durable, run_durable, stream_durable
    from .middleware import JournalMiddleware
    from .models import journaled_model
    from .observer import JournalCallbackHandler
    from .owned import journaled_tools
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise ImportError("gnl_langchain needs LangChain: pip install 'gnl-middleware[langchain]'") from error

__all__ = [
    "JournalCallbackHandler",
    "JournalMiddleware",
    "arun_durable",
    "astream_durable",
    "journaled_model",
    "journaled_tools",
    "run_durable",
    "stream_durable",
]
