"""An agent whose model is told what its tools gave, and what stands in the journal of it."""

import base64
import random

import sqlalchemy as sa

from gnl_middleware import safe
from gnl_middleware.adapter import (
    Message,
    ModelCall,
    Reply,
    ReplyCall,
    ToolCall,
    digest,
    perform,
    request_of,
    session_for,
)
from gnl_middleware.storage.schema import blobs, steps

RUN = "order-7"


def text(seed, size=3000):
    """A long text that compressing makes little smaller."""
    return base64.b64encode(random.Random(seed).randbytes(size * 3 // 4)).decode()


class Agent:
    """Asks its model, calls the tools that it asks for, and tells it what they gave.

    Attributes:
        ran: The bodies that ran.
        told: The messages, as the model was told them.
    """

    def __init__(self, *, policy=safe, given=None, policies=None):
        self._policy, self._policies = policy, policies or {}
        self._given = given or (lambda number, _told: text(number))
        self.ran, self.told, self._parts = [], [], []
        self._tell({"role": "user", "content": "please begin"})

    def run(self, journal, turns, *, run_id=RUN, calls=1, **options):
        """Play a run of so many turns, each with so many calls; gives what the tools gave."""
        given = []
        with journal.run(run_id, **options):
            session = session_for(name="model")
            for turn in range(turns):
                reply = self._ask(session, turn, calls)
                for place in range(calls):
                    number = turn * calls + place
                    given.append(self._call(session, reply, place, number))
                    content = {"role": "tool", "content": given[-1], "id": f"call_{number}"}
                    self._tell(content, answers=f"call_{number}")
            self._ask(session, turns, 0)
        return given

    def _ask(self, session, turn, calls):
        messages = tuple(self.told)
        asked = [
            {"id": f"call_{turn * calls + place}", "name": "search", "args": {"number": turn * calls + place}}
            for place in range(calls)
        ]

        def answer():
            self.ran.append(f"model {turn}")
            return {"role": "assistant", "tool_calls": asked}

        def describe(reply):
            told = [ReplyCall(each["id"], each["name"], digest(each["args"])) for each in reply["tool_calls"]]
            return Reply(digest=digest(reply), calls=tuple(told))

        request = request_of(messages, tuple(self._parts), {"model": "scripted"})
        call = ModelCall(
            name="model", request=request, messages=messages, setup={"model": "scripted"}, describe=describe
        )
        reply = perform(session, call, answer)
        self._tell(reply, call_ids=tuple(each["id"] for each in reply["tool_calls"]), reply=digest(reply))
        return reply

    def _call(self, session, reply, place, number):
        asked = reply["tool_calls"][place]

        def body():
            self.ran.append(f"tool {number}")
            return self._given(number, self.told)

        call = ToolCall(
            name="search",
            policy=self._policies.get(number, self._policy),
            arguments=asked["args"],
            call_id=asked["id"],
            carrier=digest(reply),
            place=place,
        )
        return perform(session, call, body)

    def _tell(self, message, **identity):
        self.told.append(message)
        self._parts.append(Message(message["role"], digest(message), **identity))


def stored(journal, run_id=RUN):
    """The payloads of a run: hash, how it is stored, bytes, and source."""
    its = sa.select(blobs.c.hash, blobs.c.compressed, sa.func.length(blobs.c.body), blobs.c.source)
    return found(journal, its.where(blobs.c.run_id == run_id))


def spliced(journal, run_id=RUN):
    """The payloads that are stored with a part of another one: hash, and hash of that one."""
    return [(row[0], row[3]) for row in stored(journal, run_id) if row[1] == 2]


def model_keys(journal, run_id=RUN):
    """The keys of the model's steps, by the hashes of what it was told."""
    its = sa.select(steps.c.arguments_hash, steps.c.key)
    return dict(found(journal, its.where(steps.c.run_id == run_id, steps.c.kind == "model")))


def found(journal, query):
    """What a query finds."""
    return journal._database().read(lambda connection: [tuple(row) for row in connection.execute(query)])


def change(journal, statement):
    """Change rows past the library."""
    return journal._database().write(lambda connection: connection.execute(statement).rowcount)
