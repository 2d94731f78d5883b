"""Values of a program's own classes: by registration or by the annotations of a step, never by a name in the journal."""

import dataclasses
import enum
import sys
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel, model_validator

from gnl_middleware import (
    Done,
    NotDone,
    UnreadableTypeError,
    UnserializableValueError,
    codec,
    journaled,
    never,
    register,
    safe,
)
from tests.trust import stored
from tests.trust.order import RUN, Killed


class State(enum.Enum):
    OPEN = "open"
    PAID = "paid"


class Priority(enum.IntEnum):
    LOW = 1


class Mood(enum.StrEnum):
    GOOD = "good"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass(frozen=True)
class Money:
    amount: Decimal
    currency: str = "EUR"


@dataclasses.dataclass(slots=True)
class Line:
    text: str
    price: Money
    total: Money = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = self.price


class Position(NamedTuple):
    x: int
    y: int = 0


class Customer(BaseModel):
    name: str = Field(alias="customerName")
    state: State = State.OPEN
    model_config = ConfigDict(populate_by_name=True)


class Invoice(BaseModel):
    number: int
    customer: Customer
    lines: list[Line] = []
    tags: set[str] = set()
    note: str | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Numbers(RootModel[list[int]]):
    pass


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]


class Report(TypedDict):
    invoice: Invoice
    states: dict[str, State]


def invoice():
    return Invoice(
        number=7,
        customer=Customer(customerName="ann", state=State.PAID),
        lines=[Line("tea", Money(Decimal("1.10")))],
        tags={"a"},
    )


VALUES: dict[str, tuple[Any, Any]] = {
    "an enum": (State, State.PAID),
    "an enum of numbers": (Priority, Priority.LOW),
    "an enum of texts": (Mood, Mood.GOOD),
    "flags": (Rights, Rights.READ | Rights.WRITE),
    "a dataclass": (Money, Money(Decimal("1.10"), "USD")),
    "a computed field": (Line, Line("tea", Money(Decimal(1)))),
    "a named tuple": (Position, Position(1, 2)),
    "a model": (Invoice, invoice()),
    "a model with more": (Open, Open(anything=[1, (2,)])),
    "a root model": (Numbers, Numbers([1, 2])),
    "a generic model": (Page[Money], Page[Money](items=[Money(Decimal(1))])),
    "a typed dictionary": (Report, {"invoice": invoice(), "states": {"now": State.OPEN}}),
    "in a list": (list[Invoice], [invoice()]),
    "in a union": (Invoice | None, invoice()),
    "as a key": (dict[State, Money], {State.OPEN: Money(Decimal(1))}),
}


@pytest.mark.parametrize("name", VALUES)
def test_what_a_step_declares_comes_back(url, open_journal, name):
    """A value of the declared return type comes back equal and of its class, live and on replay, in a later process, too."""
    declared, value = VALUES[name]

    def get():
        ran.append(1)
        return value

    get.__annotations__ = {"return": declared}
    ran, given = [], []
    for _ in range(2):
        with open_journal(url) as journal, journal.run(RUN, replay="strict"):
            given.append(journaled(get, replay=safe)())

    assert given == [value, value]
    assert [repr(each) for each in given] == [repr(value)] * 2
    assert [type(each) for each in given] == [type(value)] * 2
    assert ran == [1]


def test_a_model_knows_what_was_set(file_url, open_journal):
    """Which fields of a model were set is kept: dumping only those gives the same after a replay."""

    @journaled(replay=safe)
    def get() -> Invoice:
        return invoice()

    journal = open_journal(file_url)
    for _ in range(2):
        with journal.run(RUN):
            assert get().model_dump(exclude_unset=True) == invoice().model_dump(exclude_unset=True)


def test_arguments_are_values_too(file_url, open_journal):
    """What a step is called with may be of the classes that its parameters declare; recover gets it as such."""
    asked = []
    journal = open_journal(file_url)

    def recover(call):
        asked.append(call.arguments)
        return NotDone()

    @journaled(replay=never(recover=recover))
    def charge(bill: Invoice, state: State, *, dies: list[bool]) -> Money:
        if bill.number == 7 and not asked:
            raise Killed
        return Money(Decimal(bill.number))

    with pytest.raises(Killed), journal.run(RUN):
        charge(invoice(), State.PAID, dies=[])
    for _ in range(2):
        with journal.run(RUN):
            assert charge(invoice(), State.PAID, dies=[]) == Money(Decimal(7))
            assert charge(invoice().model_copy(update={"number": 8}), State.PAID, dies=[]) == Money(
                Decimal(8)
            )

    assert asked == [{"bill": invoice(), "state": State.PAID, "dies": []}]


def test_recover_and_people_give_values(file_url, open_journal):
    """A hook may answer with a value of the declared class; what a person types as JSON becomes one."""
    journal = open_journal(file_url)
    for run_id, answer in (("hook", Done(invoice())), ("person", None)):

        @journaled(
            replay=never(recover=(lambda call, answer=answer: answer) if answer else None), name="charge"
        )
        def charge() -> Invoice:
            raise Killed

        with pytest.raises(Killed), journal.run(run_id):
            charge()
        if answer is None:
            journal.resolve(
                run_id, "charge", Done(invoice().model_dump(mode="json", by_alias=True)), by="ops"
            )
        for _ in range(2):
            with journal.run(run_id):
                assert charge() == invoice()


def call_of(kind):
    """A step that gives a value of a class which is no longer what it was; it must not run again."""

    def get():
        raise AssertionError("it ran again")

    get.__annotations__ = {"return": kind}
    return journaled(get, replay=safe)


def renamed():
    class Bill(BaseModel):
        number: int

    return Bill


def made(base, name="Invoice", **namespace):
    """Another class of the name, as a later version of the program has it."""
    kind = type(name, (base,), {"__module__": __name__, "__qualname__": name, **namespace})
    return dataclasses.dataclass(kind) if base is object else kind


GONE = {
    "gone": (invoice(), None, "is not registered in this process"),
    "renamed": (invoice(), renamed(), "is not registered in this process"),
    "without a field": (
        Money(Decimal(1)),
        made(object, "Money", __annotations__={"amount": Decimal}),
        "has no field currency any more",
    ),
    "with a field more that must be given": (
        Money(Decimal(1)),
        made(object, "Money", __annotations__={"amount": Decimal, "currency": str, "rate": int}),
        "rate",
    ),
    "with another type": (
        Money(Decimal(1)),
        made(BaseModel, "Money", __annotations__={"amount": list[int], "currency": str}),
        "Money",
    ),
    "an enum without the member": (State.PAID, enum.Enum("State", {"OPEN": "open"}), "PAID"),
    "an enum with another meaning": (
        State.PAID,
        enum.Enum("State", {"PAID": "paid twice"}),
        "no longer keeps what was recorded",
    ),
}


@pytest.mark.parametrize("name", GONE)
def test_a_class_that_is_gone_is_told(url, open_journal, name):
    """A class that was deleted, renamed or changed is a loud error that names run, step and class: never None, never a dict."""
    value, now, says = GONE[name]

    def get():
        return value

    get.__annotations__ = {"return": type(value)}
    journal = open_journal(url)
    with journal.run(RUN):
        journaled(get, replay=safe)()

    with pytest.raises(UnreadableTypeError, match=says) as raised, journal.run(RUN):
        call_of(now)()

    assert raised.value.type_name in {"Invoice", "Money", "State", "Customer", "Line"}
    assert f"run {RUN!r}, step 'get/" in raised.value.where
    assert "register" in str(raised.value)


def test_what_a_class_got_since_has_its_default(file_url, open_journal):
    """A field that came with a default does not make old records unreadable."""
    journal = open_journal(file_url)

    @journaled(replay=safe)
    def get() -> Money:
        return Money(Decimal(1))

    with journal.run(RUN):
        get()
    wider = made(object, "Money", __annotations__={"amount": Decimal, "currency": str, "rate": int}, rate=3)

    with journal.run(RUN):
        assert call_of(wider)() == wider(Decimal(1), "EUR", 3)


class Hidden(BaseModel):
    number: int
    _cache: int = PrivateAttr(default=0)


class Doubling(BaseModel):
    number: int

    @model_validator(mode="after")
    def double(self):
        self.number *= 2
        return self


@dataclasses.dataclass
class Loose:
    number: int


def hidden():
    value = Hidden(number=1)
    value._cache = 7
    return value


def loose():
    value = Loose(1)
    value.more = 2
    return value


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (hidden, "private attributes would be lost"),
        (lambda: Doubling(number=1), "no longer keeps what was recorded"),
        (loose, "the attribute more"),
        (lambda: Customer(customerName="ann").model_copy(update={"state": object()}), "object"),
        (lambda: [Killed()], "Killed"),
    ],
    ids=["private", "changing", "loose", "inside", "another class"],
)
def test_what_would_not_come_back_is_refused(file_url, open_journal, make, says):
    """A value that its class would not give back the same is refused when it is written, and its body never runs again."""
    ran = []

    def get():
        ran.append(1)
        return make()

    get.__annotations__ = {"return": type(make())}
    journal = open_journal(file_url)
    for _ in range(2):
        with pytest.raises(UnserializableValueError) as raised, journal.run(RUN):
            journaled(get, replay=safe)()
    assert says in str(raised.value)
    assert ran == [1]


def test_a_subclass_is_not_taken_for_its_base(file_url, open_journal):
    """Only the very classes that are declared come back; a subclass would come back as its base, and is refused."""

    class Special(Customer):
        discount: int = 3

    @journaled(replay=safe)
    def get() -> Customer:
        return Special(customerName="ann")

    with pytest.raises(UnserializableValueError, match="Special"), open_journal(file_url).run(RUN):
        get()


def test_a_name_in_the_journal_makes_nothing(file_url, open_journal, tmp_path, monkeypatch):
    """A row that names a class that exists, but that the step does not declare, is refused: nothing is imported or made."""
    (tmp_path / "trap.py").write_text("open('sprung', 'w')\nclass Trap:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    journal = open_journal(file_url)

    @journaled(replay=safe)
    def get() -> Money:
        return Money(Decimal(1))

    for tag in ("trap.Trap", "Trap", "os.system", "builtins.eval", "Invoice", "State", "decimal.Decimal"):
        with journal.run(tag):
            get()
        body = codec.encode({"value": 1}).replace(
            b'{"value":1}', f'{{"$gnl":"{tag}","value":{{"number":1}}}}'.encode()
        )
        forge(file_url, tag, body)
        with pytest.raises(UnreadableTypeError, match="not registered"), journal.run(tag):
            get()

    assert not (tmp_path / "sprung").exists()
    assert "trap" not in sys.modules


def forge(url, run_id, body):
    """Give the run's step another value, with all digests that go with it."""
    from gnl_middleware.storage import protection, rows

    digest = codec.content_hash(body)
    with stored.connected(url) as connection:
        execute = connection.execute
        put = "INSERT INTO gnl_blobs (run_id, hash, compressed, body) VALUES (:run, :hash, 0, :body)"
        execute(stored.sa.text(put), {"run": run_id, "hash": digest, "body": body})
        cells = dict(
            execute(stored.sa.text("SELECT * FROM gnl_steps WHERE run_id = :run"), {"run": run_id})
            .mappings()
            .one()
        )
        cells["value_hash"] = digest
        told = rows._outcome_cells(cells, run_id, cells["key"], protection.NONE)
        seal = protection.NONE.seal("outcome", told)
        change = "UPDATE gnl_steps SET value_hash = :hash, outcome_seal = :seal WHERE run_id = :run"
        execute(stored.sa.text(change), {"hash": digest, "seal": seal, "run": run_id})


@register
@dataclasses.dataclass
class Ticket:
    number: int
    state: Any = None


register(Mood, tag="trust.Mood")


def test_a_registered_class_needs_no_declaration(file_url, open_journal):
    """Registered classes are journalled wherever they stand, also where nothing declares them; twice is once."""
    assert register(Ticket) is Ticket
    assert register(Mood, tag="trust.Mood") is Mood

    journal = open_journal(file_url)
    for _ in range(2):
        with journal.run(RUN) as run:
            assert run.value("ticket", lambda: Ticket(7, Mood.GOOD)) == Ticket(7, Mood.GOOD)
    assert codec.outline(codec.encode(Ticket(7))) == Ticket(7)


def test_a_registration_with_two_meanings_is_refused():
    """A class under two tags, a tag of two classes, and a class of no known kind are refused."""
    with pytest.raises(ValueError, match="Register each type once"):
        register(Ticket, tag="trust.Other")
    with pytest.raises(ValueError, match="Register each type once"):
        register(made(object, "Ticket", __annotations__={"number": int}))
    with pytest.raises(TypeError, match="to_plain="):
        register(threading_lock())


def threading_lock():
    return type("Lock", (), {})


def test_two_declared_classes_of_one_name_are_refused(file_url, open_journal):
    """Two classes of one name in one step could not be told apart in its record, so neither is taken for the other."""
    other = made(object, "Money", __annotations__={"cents": int})

    def get():
        return other(5)

    get.__annotations__ = {"return": tuple[Money, other]}
    with pytest.raises(UnserializableValueError, match="Money"), open_journal(file_url).run(RUN):
        journaled(get, replay=safe)()


def test_values_of_own_classes_are_redacted(file_url, open_journal):
    """Texts inside of a model are redacted, its names and enums are not; live and replay are equal."""

    @journaled(replay=safe)
    def get() -> Invoice:
        return invoice().model_copy(update={"note": "paid by ann"})

    journal = open_journal(file_url, redact=lambda text: text.replace("paid", "[out]"))
    for _ in range(2):
        with journal.run(RUN):
            given = get()
            assert (given.note, given.customer.state) == ("[out] by ann", State.PAID)
