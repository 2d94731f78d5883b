"""The codec's types beyond JSON: those that are registered, and time zones."""

import io
import struct
import zoneinfo
from dataclasses import asdict, dataclass
from datetime import datetime

import pytest

from gnl_middleware.codec import canonical, decode, digest, encode, register, scalars
from gnl_middleware.errors import JournalCorruptError, UnserializableValueError


@dataclass(frozen=True)
class Ticket:
    number: int
    note: object = None
    made_up: str = ""


class Urgent(Ticket):
    pass


def ticket_from_plain(plain: dict[str, object]) -> Ticket:
    return Ticket(**plain)


def what_matters(ticket: Ticket) -> object:
    return {"number": ticket.number, "note": ticket.note}


def register_tickets() -> None:
    register(
        Ticket,
        tag="tests.Ticket",
        to_plain=asdict,
        from_plain=ticket_from_plain,
        canonical=what_matters,
    )


register_tickets()


def test_a_registered_type_comes_back_as_itself():
    """A registered type is journalled wherever it stands, its parts included."""
    value = {"open": [Ticket(1, note=(1, b"x"))], Ticket(2): {Ticket(3)}}

    assert decode(encode(value)) == value
    assert type(decode(encode(Ticket(1)))) is Ticket


def test_what_is_made_up_does_not_count():
    """The canonical form of a registered type leaves out what is made up anew each time, and nothing else."""
    assert digest(Ticket(1, made_up="id-1")) == digest(Ticket(1, made_up="id-2"))
    assert digest(Ticket(1)) != digest(Ticket(2))
    assert digest(Ticket(1)) != digest(what_matters(Ticket(1)))
    assert encode(Ticket(1, made_up="id-1")) != encode(Ticket(1, made_up="id-2"))


def test_registering_twice_changes_nothing():
    """The same registration may be repeated, as when a module is reached on two ways."""
    register_tickets()

    assert decode(encode(Ticket(1))) == Ticket(1)


@pytest.mark.parametrize(
    ("kind", "tag"),
    [
        (Ticket, "tests.Other"),
        (Urgent, "tests.Ticket"),
        (Ticket, "tests.Ticket"),
        (Urgent, "tuple"),
        (Urgent, "int"),
        (datetime, "tests.datetime"),
        (dict, "tests.dict"),
        (type(None), "tests.None"),
        (Urgent, ""),
        (Urgent, "\ud800"),
        (Urgent, "a\nb"),
    ],
)
def test_a_second_meaning_is_refused(kind, tag):
    """Neither a type nor a tag can get a second meaning, and a refused registration leaves no trace."""
    with pytest.raises(ValueError, match=r"Register each type once|Choose a short name"):
        register(
            kind, tag=tag, to_plain=lambda value: [value.number], from_plain=lambda plain: Urgent(*plain)
        )

    assert decode(encode(Ticket(1))) == Ticket(1)
    with pytest.raises(UnserializableValueError):
        encode(Urgent(1))


def test_a_subclass_needs_a_registration_of_its_own():
    """A subclass of a registered type is refused rather than read back as its base."""
    with pytest.raises(UnserializableValueError) as caught:
        encode([Urgent(1)])

    assert (caught.value.path, caught.value.type_name) == ("$[0]", f"{__name__}.Urgent")


def test_the_path_goes_on_inside_a_registered_type():
    """A bad value inside a registered one is found by the name that its plain form gives it."""
    with pytest.raises(UnserializableValueError) as caught:
        encode({"a": Ticket(1, note=[1j])})

    assert caught.value.path == "$.a.note[0]"


class Fragile:
    pass


def raise_os_error(_: object) -> object:
    raise OSError("disk")


register(Fragile, tag="tests.Fragile", to_plain=raise_os_error, from_plain=raise_os_error)


def test_a_registered_function_that_raises_is_a_refusal():
    """When a registered function fails, the value is refused with its path, and the reason is kept."""
    with pytest.raises(UnserializableValueError, match="Fragile") as caught:
        encode([0, Fragile()])

    assert caught.value.path == "$[1]"
    assert isinstance(caught.value.__cause__, OSError)


def test_a_registered_function_that_cannot_read_is_damage():
    """When a registered function does not take what the journal holds, that is damage, whatever it raises."""
    with pytest.raises(JournalCorruptError, match=r"tests\.Fragile"):
        decode(b'[{"$gnl":"tests.Fragile","value":1}]')
    with pytest.raises(JournalCorruptError, match=r"tests\.Ticket"):
        decode(b'{"$gnl":"tests.Ticket","value":{"colour":"red"}}')


class Endless:
    pass


register(Endless, tag="tests.Endless", to_plain=lambda value: value, from_plain=lambda plain: plain)


@pytest.mark.parametrize("write", [encode, canonical])
def test_a_plain_form_without_end_is_refused(write):
    """A plain form that holds its own value again is refused instead of exhausting the stack."""
    with pytest.raises(UnserializableValueError, match="within itself"):
        write(Endless())


class Grows:
    def __init__(self, around: dict[str, object]) -> None:
        self.around = around


def grow(value: Grows) -> str:
    value.around["more"] = 1
    return "grown"


register(Grows, tag="tests.Grows", to_plain=grow, from_plain=str)


def test_a_dictionary_that_grows_meanwhile_is_written_as_it_was():
    """A dictionary that somebody adds to while it is written is written as it stood at the beginning."""
    around: dict[str, object] = {}
    around["grows"] = Grows(around)

    assert decode(encode(around)) == {"grows": "grown"}


def zone_file(rule: str) -> bytes:
    """A time zone of one rule in the format of RFC 8536, without the old block's data."""
    block = (
        b"TZif2"
        + bytes(15)
        + struct.pack(">6l", 0, 0, 0, 0, 1, 4)
        + struct.pack(">lBB", 3600, 0, 0)
        + b"CET\x00"
    )
    return block + block + f"\n{rule}\n".encode()


RULE = "CET-1CEST,M3.5.0,M10.5.0/3"
OTHER_RULE = "CET-3"


@pytest.fixture
def zones(tmp_path):
    """A time zone database of the test's own, in place of the machine's."""

    def use() -> None:
        zoneinfo.reset_tzpath(to=[tmp_path])
        zoneinfo.ZoneInfo.clear_cache()
        scalars._zone_keys.cache_clear()

    (tmp_path / "Test").mkdir()
    (tmp_path / "Test" / "Zone").write_bytes(zone_file(RULE))
    use()
    yield tmp_path, use
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()
    scalars._zone_keys.cache_clear()


@pytest.mark.parametrize(
    ("text", "fold", "offset"),
    [
        ("2024-01-15T12:00:00", 0, 1),
        ("2024-07-15T12:00:00.000001", 0, 2),
        ("2024-10-27T02:30:00", 0, 2),
        ("2024-10-27T02:30:00", 1, 1),
        ("2024-03-31T02:30:00", 0, 1),
        ("2024-03-31T02:30:00", 1, 2),
        ("0001-01-01T00:00:00", 0, 1),
        ("9999-12-31T23:59:59", 0, 1),
    ],
)
def test_a_time_zone_comes_back_by_its_key(zones, text, fold, offset):
    """A moment in a named zone keeps zone and wall time, also where the clocks change."""
    value = datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo("Test/Zone"), fold=fold)
    assert value.utcoffset().total_seconds() == offset * 3600

    back = decode(encode([value, value.timetz()]))

    assert list(map(repr, back)) == list(map(repr, [value, value.timetz()]))
    assert back[0].tzinfo is zoneinfo.ZoneInfo("Test/Zone")
    assert digest(value) != digest(value.replace(fold=1 - fold))


@pytest.mark.parametrize(("rule", "reason"), [(OTHER_RULE, "another offset"), (None, "knows no time zone")])
def test_a_time_zone_that_changed_is_damage(zones, rule, reason):
    """When this machine knows the zone no more, or by other rules, the moment is refused, not shifted."""
    folder, use = zones
    data = encode(datetime(2024, 7, 15, 12, tzinfo=zoneinfo.ZoneInfo("Test/Zone")))

    (folder / "Test" / "Zone").unlink()
    if rule:
        (folder / "Test" / "Zone").write_bytes(zone_file(rule))
    use()

    with pytest.raises(JournalCorruptError, match=reason):
        decode(data)


@pytest.mark.parametrize("key", [None, "Test/Zone", "Test/Unknown"])
@pytest.mark.usefixtures("zones")
def test_a_time_zone_of_a_file_is_refused(key):
    """A zone read from a file cannot be found again by its key, even if it bears one, so it is refused."""
    zone = zoneinfo.ZoneInfo.from_file(io.BytesIO(zone_file(OTHER_RULE)), key=key)

    with pytest.raises(UnserializableValueError) as caught:
        encode({"at": datetime(2024, 7, 15, 13, tzinfo=zone)})

    assert caught.value.path == "$.at.tzinfo"
