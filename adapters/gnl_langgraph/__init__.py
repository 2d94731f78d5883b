"""Hand-written LangGraph graphs through the journal: ``JournalToolNode`` and ``journaled_node``.

Models inside nodes are wrapped with ``gnl_langchain.journaled_model``; the graph is called through
``gnl_langchain.run_durable``, or inside ``with journal.run(...)``.

Example:
    >>> from gnl_langchain import journaled_model, run_durable     # doctest: +SKIP
    >>> from gnl_langgraph import JournalToolNode     # doctest: +SKIP
    >>> graph.add_node("tools", JournalToolNode([search, refund], safe=[search], never=[refund]))     # doctest: +SKIP
    >>> run_durable(graph.compile(), {"messages": [...]}, run_id="support:42", journal="runs.db")     # doctest: +SKIP
"""

try:
    from .nodes import journaled_node
    from .tool_node import JournalToolNode
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise ImportError("gnl_langgraph needs LangGraph: pip install 'gnl-middleware[langgraph]'") from error

__all__ = ["JournalToolNode", "journaled_node"]
