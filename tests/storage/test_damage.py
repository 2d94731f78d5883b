"""Damaged rows: always a JournalCorruptError that names the row; never a silent None, never a body that runs again."""

import random
import shutil

import pytest

from gnl_middleware import Done, GnlError, Journal, JournalCorruptError, journaled, never
from gnl_middleware.codec import content_hash
from tests.storage import rows
from tests.storage.damaging import RUN, Order, cells, flipped, play, put

CHARGE = "(SELECT rowid FROM gnl_steps WHERE name = 'charge')"
ARGUMENTS = "(SELECT arguments_hash FROM gnl_steps WHERE name = 'charge')"
VALUE = "(SELECT value_hash FROM gnl_steps WHERE name = 'charge')"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The file of a journal that holds one completed run with a step of each kind."""
    path = tmp_path_factory.mktemp("whole") / "runs.db"
    answers, bodies = play(path)
    assert sorted(bodies) == ["charge", "look_up", "model", "moment"]
    return path, answers


@pytest.fixture
def damaged(whole, path):
    """A copy of it, to be damaged by a statement."""
    shutil.copy(whole[0], path)

    def damage(statement, *parameters):
        rows.change(path, statement, *parameters)
        return path

    return damage


def test_undamaged_journal_is_read_back(whole, damaged, path):
    """The journal of these tests is whole: everything is read back, nothing runs."""
    assert play(path) == (whole[1], [])


def check_step(path, *, name="charge"):
    """The run stops at the damaged step, each time anew, with an error that names it; a look at the run does too."""
    key = rows.value(path, "SELECT key FROM gnl_steps WHERE name = ?", name)
    for _attempt in range(2):
        error, bodies = play(path)
        assert type(error) is JournalCorruptError, repr(error)[:200]
        assert bodies == []
        for part in (RUN, key):
            assert part in error.where
    with Journal(path) as journal, pytest.raises(JournalCorruptError) as caught:
        journal.steps(RUN)
    assert key in caught.value.where


@pytest.mark.parametrize(
    ("column", "content"),
    [
        *((column, content) for column in ("setups", "answered", "calls") for content in ("{", "", "7", "null", "[1]", '"text"', "{}")),
        *(("status", content) for content in ("dona", "", 7, b"done")),
        *(("kind", content) for content in ("tooll", "", 7)),
        *(("policy", content) for content in ("nevar", 7, b"never")),
        *(
            (column, content)
            for column in ("number", "fence", "tries", "attempt", "begun", "ended", "tokens", "raw", "drifted", "position")
            for content in ("seven", b"7", 1.5)
        ),
        *((column, content) for column in ("started_at", "finished_at") for content in ("noon", b"7")),
        *((column, b"\xff") for column in ("name", "scope", "token", "fingerprint", "value_hash", "reply", "call_id", "resolution")),
        *(("failure", content) for content in (b"{", b"7", b"[1, 2, 3]", b'["a"]', "text", b'["a", "b", "c"]')),
        ("arguments_hash", "0" * 64),
        ("value_hash", "0" * 64),
        ("value_hash", None),
    ],
)  # fmt: skip
def test_damaged_cell_of_a_step(damaged, column, content):
    """A cell that cannot be what was written is reported with its run and step."""
    path = damaged(f"UPDATE gnl_steps SET {column} = ? WHERE rowid = {CHARGE}", content)

    check_step(path) if column != "name" else check_step(path, name=b"\xff")


@pytest.mark.parametrize("payload", [ARGUMENTS, VALUE], ids=["arguments", "value"])
@pytest.mark.parametrize(
    "change",
    [
        "body = x'00'",
        "body = x''",
        "body = '{}'",
        "body = 7",
        "body = CAST('{}' AS BLOB)",
        "compressed = 1 - compressed",
        "compressed = 'no'",
    ],
)
def test_damaged_payload(damaged, payload, change):
    """A payload that is not what its hash says is reported with the step that it belongs to."""
    path = damaged(f"UPDATE gnl_blobs SET {change} WHERE hash = {payload}")

    check_step(path)


@pytest.mark.parametrize("payload", [ARGUMENTS, VALUE], ids=["arguments", "value"])
def test_missing_payload(damaged, payload):
    """A payload that is gone is reported with its step, and not taken for a value of None."""
    path = damaged(f"DELETE FROM gnl_blobs WHERE hash = {payload}")

    check_step(path)


def test_exchanged_payloads(damaged, path):
    """Arguments that stand where the value should be are noticed by the hash, though both are readable."""
    arguments = rows.value(path, f"SELECT body FROM gnl_blobs WHERE hash = {ARGUMENTS}")

    damaged(f"UPDATE gnl_blobs SET body = ?, compressed = 0 WHERE hash = {VALUE}", arguments)

    check_step(path)


@pytest.mark.parametrize("tag", ["nothing", "os.system", "lc", 7, None])
def test_unknown_tag(damaged, path, tag):
    """A value of a type that this process does not know is an error that names the step, and imports nothing."""
    content = b'{"$gnl":%s,"value":[]}' % (b"null" if tag is None else b'"%s"' % str(tag).encode())
    damaged(
        f"UPDATE gnl_blobs SET hash = ?, body = ?, compressed = 0 WHERE hash = {VALUE}",
        content_hash(content),
        content,
    )
    damaged(f"UPDATE gnl_steps SET value_hash = ? WHERE rowid = {CHARGE}", content_hash(content))

    error, bodies = play(path)

    assert type(error) is JournalCorruptError
    assert "charge" in error.where
    assert bodies == []


@pytest.mark.parametrize(
    ("column", "content"),
    [
        *((column, content) for column in ("fence", "attempts") for content in ("x", b"1", 1.5)),
        *((column, "x") for column in ("lease_ends_at", "created_at", "updated_at", "completed_at")),
        *(("metadata", content) for content in (b"{", "", b"[1]", b"null", 7)),
        *(("status", content) for content in ("finished", "", 7)),
        ("holder", b"\xff"),
        ("input_digest", b"\xff"),
    ],
)
def test_damaged_run(damaged, column, content):
    """A damaged run is reported by its id, when it is opened and when it is listed; nothing runs."""
    path = damaged(f"UPDATE gnl_runs SET {column} = ?", content)

    for _attempt in range(2):
        error, bodies = play(path)
        assert type(error) is JournalCorruptError, repr(error)[:200]
        assert RUN in error.where
        assert bodies == []
    with Journal(path) as journal, pytest.raises(JournalCorruptError) as caught:
        journal.runs()
    assert RUN in caught.value.where


def test_damaged_run_leaves_the_others_alone(damaged, path):
    """One damaged run does not stop another one of the same file."""
    damaged("UPDATE gnl_steps SET status = 'dona' WHERE name = 'charge'")
    order = Order()

    with Journal(path) as journal, journal.run("order-8"):
        order.charge("eight")

    assert order.ran == ["charge"]


def test_repaired_run_can_be_opened_at_once(damaged, path, whole):
    """Being refused for damage does not keep the run: once it is repaired, the same process opens it."""
    damaged("UPDATE gnl_steps SET status = 'dona' WHERE name = 'charge'")
    with Journal(path) as journal:
        with pytest.raises(JournalCorruptError):
            Order().run(journal)
        damaged("UPDATE gnl_steps SET status = 'done' WHERE name = 'charge'")

        assert Order().run(journal) == whole[1]


def test_refused_run_is_not_held(damaged, path):
    """The same for another process: a run that was refused for damage is held by nobody."""
    damaged("UPDATE gnl_steps SET status = 'dona' WHERE name = 'charge'")
    with Journal(path) as journal:
        with pytest.raises(JournalCorruptError):
            Order().run(journal)

        (record,) = journal.runs()
        assert (record.holder, record.status) == (None, "failed")


def test_error_keeps_nothing_open(damaged, path):
    """Whoever keeps the error, as a log or a debugger does, keeps no connection with it: a closed journal is closed."""
    damaged("UPDATE gnl_steps SET status = 'dona' WHERE name = 'charge'")
    damaged("UPDATE gnl_runs SET status = 'finished'")
    kept = []
    with Journal(path) as journal:
        for use in (lambda: journal.steps(RUN), journal.runs, lambda: journal.run(RUN).__enter__()):
            with pytest.raises(JournalCorruptError) as caught:
                use()
            kept.append(caught.value)

    assert len(kept) == 3
    assert [file.name for file in path.parent.iterdir()] == [path.name]


SEALED = [
    ("gnl_blobs", ["body", "hash"]),
    ("gnl_steps", ["kind", "policy", "status", "failure", "arguments_hash", "value_hash"]),
]
"""What a step is answered from: one turned bit in it is noticed."""

IDENTIFYING = [
    ("gnl_steps", ["key", "scope", "name", "fingerprint", "shape", "base", "reply_digest"]),
    ("gnl_steps", ["setups", "answered", "calls"]),
]
"""What a step is known by: a turned bit may make it another step, which must not repeat an effect. (A turned run id
makes the row another run's; no reader can notice that.)"""


def turn_a_bit(whole, path, seed, columns):
    """Play the run of a copy in which one bit of one cell was turned; gives also where that was."""
    generator = random.Random(seed)
    shutil.copy(whole[0], path)
    table, names = generator.choice(columns)
    rowid, column, content = generator.choice(cells(path, table, names))
    put(path, table, rowid, column, flipped(content, generator.randrange(1 << 20), generator.randrange(8)))
    answers, bodies = play(path)
    return answers, bodies, f"{table}.{column} of row {rowid}: {str(answers)[:200]}"


def check_sealed(whole, path, seed):
    """A turned bit in what is sealed: exactly the record, or an error that names the run; nothing runs."""
    answers, bodies, where = turn_a_bit(whole, path, seed, SEALED)
    assert bodies == [], where
    if isinstance(answers, GnlError):
        assert type(answers) is JournalCorruptError, where
        assert RUN in answers.where
    else:
        assert answers == whole[1], where


def check_identifying(whole, path, seed):
    """A turned bit in what a step is known by: the side effect is not repeated, and any error is one of ours."""
    answers, bodies, where = turn_a_bit(whole, path, seed, IDENTIFYING)
    assert "charge" not in bodies, where
    if not isinstance(answers, GnlError):
        assert answers[0] == whole[1][0], where


@pytest.mark.parametrize("seed", range(40))
def test_turned_bit_in_what_is_sealed(whole, path, seed):
    """One turned bit in anything that a step is answered from is noticed, or changes nothing."""
    check_sealed(whole, path, seed)


@pytest.mark.parametrize("seed", range(20))
def test_turned_bit_in_what_identifies(whole, path, seed):
    """One turned bit in anything that a step is known by never repeats a side effect."""
    check_identifying(whole, path, seed)


@pytest.mark.long
def test_many_turned_bits(whole, path):
    """The same for a few thousand bits."""
    for seed in range(100, 2000):
        check_sealed(whole, path, seed)
        check_identifying(whole, path, seed)


def test_damage_of_arguments_does_not_reach_recover(path):
    """Arguments that were damaged never reach `recover`, which would ask about another order."""
    asked = []

    def recover(call):
        asked.append(call.arguments)
        return Done("found")

    def body(order):
        raise KeyboardInterrupt

    with Journal(path) as journal, pytest.raises(KeyboardInterrupt), journal.run(RUN):
        journaled(body, replay=never, name="charge")("order-1")
    rows.change(
        path, "UPDATE gnl_blobs SET body = CAST(replace(CAST(body AS TEXT), 'order-1', 'order-2') AS BLOB)"
    )

    with Journal(path) as journal, pytest.raises(JournalCorruptError), journal.run(RUN):
        journaled(body, replay=never(recover=recover), name="charge")("order-1")

    assert asked == []
