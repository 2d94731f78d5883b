"""The chain over a run's rows: what was changed, taken away or put back is found, and what went on is told apart."""

import secrets
from itertools import pairwise

import pytest

from gnl_middleware import JournalCorruptError, JournalKeyError, NotDone, SideEffectRetryBlockedError
from gnl_middleware.storage import protection as protecting
from gnl_middleware.storage.rows import CHAINED, MARKS
from gnl_middleware.storage.schema import attempts, resolutions, runs, steps
from tests.trust import stored
from tests.trust.order import RUN, Killed, Order, blocked, decided

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
KEYS = pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])


@KEYS
def test_a_run_that_was_left_is_covered_whole(url, open_journal, key):
    """When an attempt leaves its run, one head covers every step, attempt and decision; nothing is left over."""
    journal = open_journal(url, integrity_key=key)
    decided(journal)

    found = journal.verify_integrity(RUN)

    assert (found.problems, found.later, found.intact, found.keyed) == ((), (), True, key is not None)
    count = sum(
        stored.found(url, f"SELECT count(*) FROM {table} WHERE run_id = :run", run=RUN)[0][0]
        for table in ("gnl_steps", "gnl_attempts", "gnl_resolutions")
    )
    assert found.covered == count == stored.found(url, "SELECT chain_rows FROM gnl_runs")[0][0] == 8
    assert found.head == stored.found(url, "SELECT chain_head FROM gnl_runs")[0][0]
    assert len(found.head.rpartition(":")[2]) == 64


def test_the_head_is_the_same_on_every_database(tmp_path, request, open_journal):
    """The head depends on what the rows say, not on where they are: a copy in another database has the same."""
    from tests.postgres.server import create_database

    here = str(tmp_path / "runs.db")
    decided(open_journal(here))
    there = create_database(request.getfixturevalue("server_url"))
    open_journal(there).runs()
    for table in ("gnl_runs", "gnl_attempts", "gnl_steps", "gnl_blobs", "gnl_resolutions"):
        with stored.connected(here) as one, stored.connected(there) as other:
            rows = [dict(row) for row in one.execute(stored.sa.text(f"SELECT * FROM {table}")).mappings()]
            names = ", ".join(rows[0])
            places = ", ".join(f":{name}" for name in rows[0])
            other.execute(stored.sa.text(f"INSERT INTO {table} ({names}) VALUES ({places})"), rows)

    found = open_journal(there).verify_integrity(RUN)

    assert found == open_journal(here).verify_integrity(RUN)
    assert found.intact
    assert found.later == ()


ATTEMPTED = {"attempt", "holder", "started_at", "ended_at", "status", "error"}
CELLS = [
    # What comes late may come at any time, and decides nothing.
    *[("gnl_steps", column) for column in (*CHAINED, *MARKS) if column not in ("run_id", "late")],
    *[("gnl_attempts", column.name) for column in attempts.c if column.name in ATTEMPTED],
    ("gnl_attempts WHERE links IS NOT NULL", "links"),
    *[("gnl_resolutions", column.name) for column in resolutions.c if column.name != "run_id"],
    *[
        ("gnl_runs", name)
        for name in ("created_at", "metadata", "status", "attempts", "completed_at", "side_effects")
    ],
    *[("gnl_runs", name) for name in ("input_digest", "chain_head", "forked_from", "effects")],
    *[("gnl_blobs", name) for name in ("body", "hash", "compressed")],
]


def other(content):
    """Something else of the same kind."""
    if isinstance(content, bytes):
        return bytes([content[0] ^ 1]) + content[1:]
    if isinstance(content, str):
        return f"{content}0"
    return 1 if content is None else content + 100


@KEYS
def test_any_cell_that_is_changed_is_found(file_url, open_journal, key):
    """Whichever cell of a run at rest is changed past the library, checking it says so."""
    journal = open_journal(file_url, integrity_key=key)
    decided(journal)
    texts = {
        column.name
        for table in (runs, steps, attempts, resolutions)
        for column in table.c
        if str(column.type) == "TEXT"
    }
    missed = []
    for table, column in CELLS:
        some = stored.found(file_url, f"SELECT rowid, {column} FROM {table}")
        row, content = next((each for each in some if each[1] is not None), some[0])
        new = "x" if content is None and column in texts else other(content)
        name = table.partition(" ")[0]
        stored.changed(file_url, f"UPDATE {name} SET {column} = :new WHERE rowid = :row", new=new, row=row)
        if journal.verify_integrity(RUN).intact:
            missed.append((table, column))
        stored.changed(
            file_url, f"UPDATE {name} SET {column} = :old WHERE rowid = :row", old=content, row=row
        )

    assert missed == []
    assert journal.verify_integrity(RUN).intact


@KEYS
@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("gnl_steps", "kind = 'model'"),
        ("gnl_steps", "name = 'look_up'"),
        ("gnl_steps", "name = 'charge'"),
        ("gnl_attempts", "attempt = 2"),
        ("gnl_attempts", "attempt = 3"),
        ("gnl_resolutions", "decision = 'happened'"),
    ],
)
def test_a_row_that_is_taken_away_is_found(url, open_journal, key, table, where):
    """A step, an attempt or a person's decision that is deleted past the library is missed."""
    journal = open_journal(url, integrity_key=key)
    decided(journal)

    stored.changed(url, f"DELETE FROM {table} WHERE {where}")

    assert not journal.verify_integrity(RUN).intact


@pytest.mark.parametrize("table", ["gnl_steps", "gnl_attempts", "gnl_resolutions", "gnl_runs"])
def test_new_cells_of_a_table_are_named_here(table):
    """A column that is added later is put into the chain on purpose, or left out on purpose."""
    left_out = {
        # Whose payloads a step shares decides nothing: it names them by what they are.
        "gnl_steps": {"late", "holder", "claimed_until", "payloads"},
        "gnl_attempts": {
            *{"lease_ends_at", "steps_ran", "steps_read_back", "tokens_not_spent", "seconds_not_spent"},
        },
        "gnl_runs": {"run_id", "updated_at", "fence", "holder", "lease_ends_at", "chain_rows", "locked"},
    }
    covered = {column for name, column in CELLS if name.partition(" ")[0] == table} | {"run_id"}
    columns = {item.name: set(item.c.keys()) for item in (runs, steps, attempts, resolutions)}[table]

    assert columns - covered - left_out.get(table, set()) == set()


def test_who_computes_the_digests_anew_is_found_by_a_head_that_is_kept_elsewhere(
    url, open_journal, monkeypatch
):
    """Without a key anybody can forge a whole run; who kept its head sees it, and who did not cannot."""
    journal = open_journal(url)
    Order().run(journal)
    kept = journal.verify_integrity(RUN).head
    assert journal.verify_integrity(RUN, expect=kept).intact

    forge(url, journal)

    assert journal.verify_integrity(RUN).intact
    found = journal.verify_integrity(RUN, expect=kept)
    assert not found.intact
    assert kept in found.problems[0]


def forge(url, journal):
    """Change a cell and compute seal and chain anew with what everybody knows: without a key that is all it takes."""
    from gnl_middleware.storage import chain, rows
    from gnl_middleware.storage.operations.chains import read_chain

    key = stored.found(url, "SELECT key FROM gnl_steps WHERE kind = 'model'")[0][0]
    with stored.connected(url) as connection:
        cells = dict(
            connection.execute(stored.sa.text("SELECT * FROM gnl_steps WHERE key = :key"), {"key": key})
            .mappings()
            .one()
        )
        cells["tokens"] = 9
        told = rows._outcome_cells(cells, RUN, key, protecting.NONE)
        seal = protecting.NONE.seal("outcome", told)
        update = stored.sa.text("UPDATE gnl_steps SET tokens = 9, outcome_seal = :seal WHERE key = :key")
        connection.execute(update, {"seal": seal, "key": key})
        made = chain.made(read_chain(connection, RUN), protecting.NONE)
        connection.execute(stored.sa.text("UPDATE gnl_runs SET chain_head = :head"), {"head": made.head})
        last = "UPDATE gnl_attempts SET links = :links WHERE links IS NOT NULL"
        connection.execute(stored.sa.text(last), {"links": made.links})


def test_who_has_no_key_cannot_change_a_row_unseen(url, open_journal):
    """With an integrity key the same forgery is refused on the next read, before anything runs."""
    journal = open_journal(url, integrity_key=KEY)
    Order().run(journal)

    forge(url, journal)

    assert not journal.verify_integrity(RUN).intact
    order = Order()
    with pytest.raises(JournalKeyError, match="not sealed with an integrity key"):
        order.run(journal)
    assert order.ran == []


def test_a_row_from_before_is_not_taken_for_the_present_one(file_url, open_journal):
    """A sealed row that is put back as it once was has a seal of ours, and still does not fit the chain."""
    journal = open_journal(file_url, integrity_key=KEY)
    blocked(journal)
    ((before,),) = [[dict(row)] for row in _steps(file_url, "charge")]
    journal.resolve(RUN, "charge", NotDone(), by="ops")
    Order().run(journal)

    assignments = ", ".join(f"{name} = :{name}" for name in before)
    stored.changed(file_url, f"UPDATE gnl_steps SET {assignments} WHERE name = 'charge'", **before)

    order = Order()
    with pytest.raises(JournalCorruptError, match=r"charge\) was changed"):
        order.run(journal)
    assert order.ran == []


def _steps(url, name):
    with stored.connected(url) as connection:
        query = stored.sa.text("SELECT * FROM gnl_steps WHERE name = :name")
        return connection.execute(query, {"name": name}).mappings().all()


@KEYS
def test_a_crash_is_no_tampering(url, open_journal, key):
    """What a later attempt did before it died is told as later, not as changed; the next one that leaves covers it."""
    journal = open_journal(url, integrity_key=key)
    with pytest.raises(Killed), journal.run(RUN) as run:
        run.value("first", lambda: 1)
        raise Killed
    head = journal.verify_integrity(RUN).head
    with journal.run(RUN) as run:
        run.value("first", lambda: 1)
        run.value("second", lambda: 2)
        while_open = journal.verify_integrity(RUN)

    assert (while_open.head, while_open.problems) == (head, ())
    assert {name.split(" ")[0] for name in while_open.later} == {"step", "attempt"}
    assert len(while_open.later) == 2
    after = journal.verify_integrity(RUN)
    assert (after.problems, after.later) == ((), ())
    assert after.head != head


@KEYS
def test_a_step_that_went_on_is_no_tampering(url, open_journal, key):
    """A step that is tried again in a later attempt has changed, and that is told, too."""
    journal = open_journal(url, integrity_key=key)
    with pytest.raises(Killed):
        Order(dies=True).run(journal)
    with pytest.raises(SideEffectRetryBlockedError):
        Order().run(journal)
    journal.resolve(RUN, "charge", NotDone(), by="ops")
    assert journal.verify_integrity(RUN).later == ()

    with journal.run(RUN):
        Order().charge("seven sk-live-4471")
        found = journal.verify_integrity(RUN)

    assert found.problems == ()
    assert [name for name in found.later if "charge" in name] != []


def test_a_head_that_does_not_fit_is_not_replaced(file_url, open_journal):
    """Another attempt does not cover up what was changed before it: the old head stays as the proof."""
    journal = open_journal(file_url)
    Order().run(journal)
    head = journal.verify_integrity(RUN).head
    stored.changed(file_url, "UPDATE gnl_attempts SET holder = 'somebody else'")

    Order().run(journal)

    found = journal.verify_integrity(RUN)
    assert found.head == head
    assert found.problems == ("attempt 1 was changed",)


@pytest.mark.parametrize(
    ("written", "opened", "says"),
    [
        (KEY, None, "opened without one"),
        (None, KEY, "not sealed with an integrity key"),
        (KEY, OTHER_KEY, "and the journal was opened with"),
    ],
    ids=["without", "before", "another"],
)
def test_another_key_is_told_from_damage(url, open_journal, written, opened, says):
    """A missing or wrong integrity key is an error of its own: nothing runs, nothing is changed, and it says what to do."""
    with open_journal(url, integrity_key=written) as journal:
        Order().run(journal)
    head = stored.found(url, "SELECT chain_head FROM gnl_runs")
    order = Order()

    with open_journal(url, integrity_key=opened) as journal:
        with pytest.raises(JournalKeyError, match=says) as raised:
            order.run(journal)
        with pytest.raises(JournalKeyError, match=says):
            journal.steps(RUN)

    assert order.ran == []
    assert "integrity_key=" in str(raised.value)
    assert stored.found(url, "SELECT chain_head FROM gnl_runs") == head
    with open_journal(url, integrity_key=written) as journal:
        Order().run(journal)
        assert journal.verify_integrity(RUN).intact


@pytest.mark.parametrize(
    ("key", "error", "says"), [(b"short", ValueError, "at least 32"), ("x" * 32, TypeError, "bytes")]
)
def test_a_key_that_protects_nothing_is_refused(file_url, open_journal, key, error, says):
    """A short integrity key, or a text, is refused when the journal is made."""
    with pytest.raises(error, match=says):
        open_journal(file_url, integrity_key=key)


def test_one_protection_for_one_journal(file_url, open_journal):
    """Within a process one journal cannot be open in two ways: its one writer would write rows that one of them cannot read."""
    open_journal(file_url, integrity_key=KEY).runs()

    with pytest.raises(ValueError, match="same objects"):
        open_journal(file_url).runs()
    assert open_journal(file_url, integrity_key=bytes(KEY)).runs() == []


def test_an_unknown_run_has_no_integrity(file_url, open_journal):
    """Asking about a run that does not exist is an error, not a clean bill."""
    with pytest.raises(KeyError, match="unknown"):
        open_journal(file_url).verify_integrity("unknown")


def test_keys_are_not_shown(file_url, open_journal):
    """Neither the journal's objects nor its errors show a key."""
    key = secrets.token_bytes(32)
    journal = open_journal(file_url, integrity_key=key)

    told = repr(journal._protection)

    assert repr(key) not in told
    assert key.hex() not in told
    assert all(
        one != other
        for one, other in pairwise(protecting.Protection(each).seal("x", []) for each in (None, key, KEY))
    )
