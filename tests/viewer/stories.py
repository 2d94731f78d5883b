"""Runs worth looking at: a support agent that died twice, and one whose tools wrote whatever would harm a reader."""

import contextlib
import time

from gnl_middleware import DivergenceError, RecordedError, SideEffectRetryBlockedError, journaled, never, safe
from gnl_middleware.replay.call import FunctionCall
from gnl_middleware.session.perform import perform

HOSTILE = (
    '<script>window.harmed = true</script><img src=x onerror="window.harmed = true">'
    "</pre></style></script>{{ 7 * 7 }}&lt;b&gt;\x1b[2J\u202egnp.exe\u2066'\"><svg onload=window.harmed=true>"
)


class Died(BaseException):
    """The worker is gone."""


def ask(run, name, answer, seconds=0.0):
    """A model's reply, as an adapter would record it."""

    def body():
        time.sleep(seconds)  # how long it took is what the page shows
        return answer

    return perform(
        run.session, FunctionCall(name=name, arguments={"messages": [f"turn of {name}"]}, kind="model"), body
    )


def support(journal, run_id="support:42", *, die_at=None, stop=False):
    """A support agent: two lookups inside a nested agent, a ticket, an e-mail that may have happened."""

    @journaled(replay=safe)
    def lookup_customer(customer):
        time.sleep(0.03)
        return {"customer": customer, "company": "Fjord & Søn", "email": "ann@example.com"}

    @journaled(replay=safe)
    def research(question):
        with contextlib.suppress(RecordedError, KeyError):
            search_orders("8840")
        return [lookup_customer("C-1042"), search_orders("8841")]

    @journaled(replay=safe)
    def search_orders(order):
        time.sleep(0.05)
        if order == "8840":
            raise KeyError(order)
        return {"order": order, "state": "delivered", "damage": "water"}

    @journaled(replay=never)
    def create_ticket(subject):
        time.sleep(0.04)
        if die_at == "create_ticket":
            raise Died
        return "T-7"

    @journaled(replay=never)
    def send_email(to, subject, body):
        time.sleep(0.02)
        if die_at == "send_email":
            raise Died
        return "sent"

    expected = (Died, SideEffectRetryBlockedError) if stop else Died
    marks = {"metadata": {"customer": "C-1042", "region": "eu"}, "tags": ["refund", "vip"]}
    with contextlib.suppress(expected), journal.run(run_id, **marks) as run:
        ask(run, "plan", "Look the customer up, then the order.", 0.06)
        research("Who ordered 8841, and what happened to it?")
        ask(run, "decide", "Open a ticket and tell the customer.", 0.09)
        if die_at == "thinking":
            raise Died
        create_ticket("Order 8841 is water damaged")
        with run.scope("billing"):
            ask(run, "price", {"refund": 129.90, "currency": "EUR"}, 0.03)
        send_email("ann@example.com", "Your order 8841", "We are sorry. Ticket T-7 is open.")
        ask(run, "close", "Ticket T-7 is open, and Ann has been told.", 0.04)


def interrupted_twice(journal, run_id="support:42"):
    """Attempts one and two died, the third stopped at the e-mail that may have been sent."""
    support(journal, run_id, die_at="thinking")
    support(journal, run_id, die_at="send_email")
    support(journal, run_id, stop=True)


def hostile(journal, run_id=f"evil:{HOSTILE[:60]}"):
    """Everything that a page shows was written by somebody who means harm."""

    def body(text):
        raise Died

    marks = {"metadata": {HOSTILE: HOSTILE}, "tags": ["<b>tag</b>"]}
    with contextlib.suppress(Died), journal.run(run_id, **marks) as run:
        ask(run, HOSTILE, HOSTILE)
        with run.scope(HOSTILE[:20]):
            ask(run, "inside", {HOSTILE: [HOSTILE]})
        with contextlib.suppress(ValueError):
            journaled(_raises, replay=safe, name=HOSTILE)(HOSTILE)
        journaled(body, replay=never, name=f"send {HOSTILE}")(HOSTILE)
    return run_id


def _raises(text):
    raise ValueError(text)


def diverged(journal, run_id="order:9"):
    """A retry whose arguments changed, in a run that compares."""

    @journaled(replay=never)
    def charge(order, amount):
        return f"charged {amount}"

    for amount in (10, 12):
        with contextlib.suppress(DivergenceError), journal.run(run_id, replay="strict"):
            charge("9", amount)
