"""A transport that answers without a network, in chunks that the test decides on, in httpx2's and httpx's classes."""

import asyncio
from dataclasses import dataclass, field

import httpx
import httpx2

LIBRARIES = {"httpx2": httpx2, "httpx": httpx}
URLS = {
    "chat": "https://api.openai.com/v1/chat/completions",
    "responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
}


@dataclass
class Prepared:
    """An answer: its chunks, and what breaks off behind them."""

    chunks: list = field(default_factory=list)
    status: int = 200
    headers: dict = field(
        default_factory=lambda: {"content-type": "text/event-stream", "set-cookie": "secret=1"}
    )
    breaks: bool = False


class Sender:
    """Answers with what is prepared, the last answer for ever; counts what it was asked, and what was closed."""

    def __init__(self, library, *answers):
        self.classes, self.answers = LIBRARIES[library], list(answers)
        self.asked, self.closed = [], 0

    def _response(self, request):
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(request.content)
        return self.classes.Response(answer.status, headers=answer.headers, stream=_stream(self, answer))

    def handle_request(self, request):
        return self._response(request)

    async def handle_async_request(self, request):
        await asyncio.sleep(0)
        return self._response(request)

    def close(self):
        pass

    async def aclose(self):
        pass


def _stream(sender, answer):
    classes = sender.classes

    class Stream(classes.SyncByteStream, classes.AsyncByteStream):
        def __iter__(self):
            yield from answer.chunks
            if answer.breaks:
                raise classes.ReadError("the connection broke off")

        async def __aiter__(self):
            for chunk in self:
                await asyncio.sleep(0)
                yield chunk

        def close(self):
            sender.closed += 1

        async def aclose(self):
            sender.closed += 1

    return Stream()


def read(library, transport, body, *, url=URLS["chat"], way="sync", stop_behind=None):
    """Send a request and read the raw chunks of its answer; gives status, headers and chunks."""
    if way == "async":
        return asyncio.run(_read_async(library, transport, body, url, stop_behind))
    client = LIBRARIES[library].Client(transport=transport)
    with client.stream("POST", url, json=body) as answer:
        chunks = []
        for chunk in answer.iter_raw():
            chunks.append(chunk)
            if chunk == stop_behind:
                break
        return answer.status_code, dict(answer.headers), chunks


async def _read_async(library, transport, body, url, stop_behind):
    client = LIBRARIES[library].AsyncClient(transport=transport)
    async with client.stream("POST", url, json=body) as answer:
        chunks = []
        async for chunk in answer.aiter_raw():
            chunks.append(chunk)
            if chunk == stop_behind:
                break
        return answer.status_code, dict(answer.headers), chunks
