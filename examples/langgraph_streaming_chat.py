"""A chat endpoint that streams: `POST /chats/42/messages/7` with the conversation as JSON; one run for each message.

A client that lost its connection, or whose server died, posts the same message again: what had been said comes back as
it was, and the rest goes on. Start it with `python langgraph_streaming_chat.py 8000`.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI

from gnl_langchain import JournalMiddleware, stream_durable
from gnl_langchain.demo.desk import HelpDesk
from gnl_middleware import safe

desk = HelpDesk.open("helpdesk")


@safe
def lookup_customer(customer_id: str) -> dict[str, str] | None:
    """Look up a customer's company and email address."""
    return desk.lookup_customer(customer_id)


model = ChatOpenAI(model="gpt-4.1-mini", streaming=True)
agent = create_agent(model, [lookup_customer], middleware=[JournalMiddleware()])


def told(chat: str, message: str, conversation: list[dict[str, str]]) -> Iterator[str]:
    """The pieces of the answer to the last message of a conversation."""
    run_id = f"chat:{chat}:{message}"
    request = {"messages": conversation}
    with closing(
        stream_durable(agent, request, run_id=run_id, journal="chats.db", stream_mode="messages")
    ) as parts:
        for piece, _ in parts:
            if isinstance(piece, AIMessageChunk) and piece.text:
                yield piece.text


class Chat(BaseHTTPRequestHandler):
    """Answers each posted message with a stream of text."""

    def do_POST(self) -> None:
        """Stream the answer."""
        _, _, chat, _, message = self.path.split("/")
        conversation = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.end_headers()
        for piece in told(chat, message, conversation):
            self.wfile.write(piece.encode())
            self.wfile.flush()


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", int(sys.argv[1])), Chat) as server:
        print(f"listening on {server.server_port}", flush=True)
        server.serve_forever()
