"""A journalled function is the function: its name, its signature, its methods, its colour."""

import asyncio
import functools
import inspect

import pytest

from gnl_middleware import journaled, keyed, never, safe
from tests.functions.scripted import RUN, only_step, run_async


class Desk:
    """A desk whose methods are journalled in every way that Python offers."""

    def __init__(self, name):
        self.name = name
        self.ran = []

    @journaled(replay=never)
    def open_ticket(self, subject, *, urgent=False):
        """Open one."""
        self.ran.append(subject)
        return f"{self.name}: {subject}"

    @classmethod
    @journaled(replay=safe)
    def count(cls, kind):
        return f"{cls.__name__}: {kind}"

    @staticmethod
    @journaled(replay=safe)
    def lookup(customer):
        return f"customer {customer}"

    def close(self, ticket):
        self.ran.append(ticket)
        return f"{self.name} closed {ticket}"

    @journaled(replay=never)
    def log(*args):
        """As a decorator that does not tell what it wraps makes it."""
        return list(args[1:])

    async def close_async(self, ticket):
        self.ran.append(ticket)
        return f"{self.name} closed {ticket}"


def test_function_keeps_its_face():
    """Name, documentation, signature and colour are those of the function."""

    def charge(order: str, *, amount: int = 3) -> str:
        """Charge it."""
        return order

    async def charge_async(order: str) -> str:
        return order

    wrapped, wrapped_async = journaled(charge, replay=never), journaled(charge_async, replay=never)

    assert (wrapped.__name__, wrapped.__doc__, wrapped.__wrapped__) == ("charge", "Charge it.", charge)
    assert inspect.signature(wrapped) == inspect.signature(charge)
    assert inspect.iscoroutinefunction(wrapped_async)
    assert not inspect.iscoroutinefunction(wrapped)


def test_method(journal):
    """A method is known by what it is called with; its object is not data, and on replay any object will do."""
    with journal.run(RUN):
        recorded = Desk("first").open_ticket("printer", urgent=True)
    second = Desk("second")
    with journal.run(RUN):
        replayed = second.open_ticket("printer", urgent=True)

    step = only_step(journal, "open_ticket")
    assert recorded == replayed == "first: printer"
    assert (step.arguments, second.ran) == ({"subject": "printer", "urgent": True}, [])


def test_class_method_and_static_method(journal):
    """Class methods and static methods are known by what they are called with, through the class or an object."""
    with journal.run(RUN):
        recorded = Desk.count("open"), Desk("a").lookup("c-1")
    with journal.run(RUN) as run:
        replayed = Desk("a").count("open"), Desk.lookup("c-1")

    assert recorded == replayed == ("Desk: open", "customer c-1")
    assert run.steps_ran == 0


def test_method_that_collects_its_arguments(journal):
    """A method that takes its object among any number of arguments is known by the others."""
    desk = Desk("desk")

    with journal.run(RUN):
        recorded = [desk.log("a"), desk.log("b", "c")]
    with journal.run(RUN):
        replayed = [desk.log("b", "c"), desk.log("a")]

    assert recorded == [["a"], ["b", "c"]]
    assert replayed == [["b", "c"], ["a"]]


def test_bound_method(journal):
    """A method taken from an object is journalled like a function: its arguments are those it is called with."""
    desk = Desk("desk")
    close = journaled(desk.close, replay=never)

    with journal.run(RUN):
        result = close("T-7")
    with journal.run(RUN):
        again = close(ticket="T-7")

    assert result == again == "desk closed T-7"
    assert (only_step(journal, "close").arguments, desk.ran) == ({"ticket": "T-7"}, ["T-7"])


def test_bound_coroutine_method(journal):
    """The same holds for a coroutine method taken from an object."""
    desk = Desk("desk")
    close = journaled(desk.close_async, replay=never)

    async def program():
        async with journal.run(RUN):
            return await close("T-7")

    assert run_async(program()) == run_async(program()) == "desk closed T-7"
    assert desk.ran == ["T-7"]


def test_built_in_function(journal):
    """A function written in C is journalled like any other."""
    length = journaled(len, replay=safe)

    with journal.run(RUN):
        assert length("abc") == 3

    assert only_step(journal, "len").value == 3


def test_partial_function(journal):
    """A partial function takes a name, and its arguments are those that were left open."""
    mail = journaled(functools.partial(lambda to, text: f"{to}: {text}", "a"), replay=safe, name="mail")

    with journal.run(RUN):
        result = mail("hello")

    assert (result, only_step(journal, "mail").arguments) == ("a: hello", {"text": "hello"})


def test_object_whose_call_is_a_coroutine(journal):
    """An object that is called like a coroutine function is journalled like one."""

    class Charge:
        def __init__(self):
            self.ran = []

        async def __call__(self, order):
            await asyncio.sleep(0)
            self.ran.append(order)
            return f"charged {order}"

    charge = Charge()
    pay = journaled(charge, replay=never, name="pay")

    async def program():
        async with journal.run(RUN):
            return await pay("o-7")

    assert run_async(program()) == run_async(program()) == "charged o-7"
    assert charge.ran == ["o-7"]


def test_function_that_hands_out_a_coroutine(journal):
    """A plain function that only hands out a coroutine has not done anything: it is refused, not recorded as done."""
    ran = []

    async def charge(order):
        ran.append(order)

    pay = journaled(lambda order: charge(order), replay=never, name="pay")  # noqa: PLW0108 - as a plain decorator does

    with pytest.raises(TypeError, match="coroutine"), journal.run(RUN):
        pay("o-7")

    assert only_step(journal).status != "done"
    assert ran == []


def test_any_number_of_arguments(journal):
    """Arguments collected by `*` and `**` are recorded and told apart."""
    echo = journaled(lambda *args, **kwargs: [list(args), kwargs], replay=safe, name="echo")
    calls = [((1, 2), {}), ((), {"a": 1}), (((1, 2),), {}), ((1, 2), {"a": 1})]

    with journal.run(RUN):
        results = [echo(*args, **kwargs) for args, kwargs in calls]

    assert results == [[[1, 2], {}], [[], {"a": 1}], [[(1, 2)], {}], [[1, 2], {"a": 1}]]
    assert len({step.key for step in journal.steps(RUN)}) == 4


def test_wrong_arguments(journal):
    """A call with arguments that do not fit is the TypeError that Python raises, before anything is recorded."""
    pay = journaled(lambda order: order, replay=never, name="pay")

    with journal.run(RUN), pytest.raises(TypeError, match="order"):
        pay("o-7", order="o-8")

    assert journal.steps(RUN) == []


def test_arguments_as_they_were_when_it_was_called(journal):
    """A body that changes its arguments does not change what is recorded of the call."""
    clear = journaled(lambda lines: lines.clear() or len(lines), replay=safe, name="clear")

    with journal.run(RUN):
        clear([1, 2])
    with journal.run(RUN) as run:
        clear([1, 2])

    assert run.steps_ran == 0
    assert only_step(journal, "clear").arguments == {"lines": [1, 2]}


@pytest.mark.parametrize(
    "decorate",
    [
        pytest.param(lambda function: journaled(keyed(function)), id="decorator"),
        pytest.param(journaled(replay=keyed), id="argument"),
    ],
)
def test_label_by_decorator_or_by_argument(journal, decorate):
    """A label counts the same whether it is a decorator below or an argument."""

    @decorate
    def pay(order):
        return order

    with journal.run(RUN):
        pay("o-7")

    assert only_step(journal).policy == "keyed"


def test_name_in_the_journal(journal):
    """A function is listed under its own name, or the one that it was given."""
    plain = journaled(lambda: 1, replay=safe)
    named = journaled(lambda: 2, replay=safe, name="second")

    with journal.run(RUN):
        plain(), named()

    assert [step.name for step in journal.steps(RUN)] == ["<lambda>", "second"]


def test_two_runs_at_once_in_one_loop(journal):
    """Runs that take turns in one event loop keep their calls apart."""
    ran = []

    @journaled(replay=never)
    async def pay(order):
        await asyncio.sleep(0)
        ran.append(order)
        return f"paid {order}"

    async def one(order):
        async with journal.run(order):
            return [await pay(order), await pay(order)]

    async def many():
        return await asyncio.gather(*(one(f"order-{number}") for number in range(8)))

    first = run_async(many())
    second = run_async(many())

    assert first == second == [[f"paid order-{number}"] * 2 for number in range(8)]
    assert len(ran) == 16
