"""Model clients without a framework through the journal: ``JournalTransport``, a transport of httpx2 or httpx.

It stands beside the other adapters, above the public surface: the core imports no HTTP client, and this imports no SDK.

Example:
    >>> from gnl_httpx import JournalTransport     # doctest: +SKIP
    >>> client = OpenAI(http_client=httpx2.Client(transport=JournalTransport()))     # doctest: +SKIP
    >>> with journal.run("order:8841"):     # doctest: +SKIP
    ...     client.chat.completions.create(model="gpt-4.1", messages=messages, tools=tools)
"""

try:
    from .transport import JournalTransport
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "httpx2":
        raise
    raise ImportError("gnl_httpx needs httpx2: pip install 'gnl-middleware[httpx]'") from error

__all__ = ["JournalTransport"]
