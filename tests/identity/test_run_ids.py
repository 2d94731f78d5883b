"""Which texts can name a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnl_middleware import Journal
from gnl_middleware.identity import MAX_RUN_ID_LENGTH, checked_run_id

UNUSABLE = {
    "empty": "",
    "blank": " \t\n",
    "only a wide space": "\u3000",
    "too long": "x" * (MAX_RUN_ID_LENGTH + 1),
    "a NUL": "order\x007",
    "a lone surrogate": "order\ud8007",
}
USABLE = ["order-7", "support:42", " padded ", "größe/東京", "😀", "-7", "a\nb", "x" * MAX_RUN_ID_LENGTH]


@pytest.mark.parametrize("run_id", UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_text_is_refused(journal, run_id):
    """A run id that is empty, blank, too long, or cannot be stored is a ValueError before anything is opened."""
    with pytest.raises(ValueError, match="run id"):
        journal.run(run_id)

    assert journal.runs() == []


@pytest.mark.parametrize("run_id", [None, 7, b"order-7", ["order-7"], True], ids=repr)
def test_other_type_is_refused(journal, run_id):
    """A run id of another type is a TypeError that names the type."""
    with pytest.raises(TypeError, match=f"string.*{type(run_id).__name__}"):
        journal.run(run_id)


@pytest.mark.parametrize("run_id", UNUSABLE.values(), ids=UNUSABLE)
def test_reading_an_unusable_run_id_is_refused_too(journal, run_id):
    """Listing the steps of a run checks its id the same way, so that a typing error does not read as an empty run."""
    with pytest.raises(ValueError, match="run id"):
        journal.steps(run_id)


@pytest.mark.parametrize("run_id", USABLE, ids=lambda run_id: ascii(run_id[:12]))
def test_usable_text_names_one_run(journal, run_id):
    """Any other text names a run, which is listed under exactly that text and taken up again by it."""
    for _ in range(2):
        with journal.run(run_id) as run:
            drawn = run.random()

    assert [record.run_id for record in journal.runs()] == [run_id]
    assert [step.value for step in journal.steps(run_id)] == [drawn]


def test_similar_ids_are_different_runs(journal):
    """Run ids are compared as they are: case, padding and accents written in another way make other runs."""
    similar = ["order", "Order", "order ", "caf\u00e9", "cafe\u0301"]

    for run_id in similar:
        with journal.run(run_id):
            pass

    assert {record.run_id for record in journal.runs()} == set(similar)
    assert all(record.attempts == 1 for record in journal.runs())


@given(st.text(st.characters(exclude_categories=[]), max_size=40))
def test_every_text_is_taken_unchanged_or_refused(text):
    """No text is repaired silently: it comes back as it was given, or it is a ValueError."""
    storable = "\x00" not in text and not any(0xD800 <= ord(character) < 0xE000 for character in text)

    if text.strip() and storable:
        assert checked_run_id(text) == text
    else:
        with pytest.raises(ValueError, match="run id"):
            checked_run_id(text)


def test_a_handle_knows_its_run_id_before_it_is_entered(tmp_path):
    """The run id is checked when the run is asked for, not only when it is entered."""
    journal = Journal(tmp_path / "never_opened.db")

    run = journal.run("order-7")

    assert run.run_id == "order-7"
    assert not (tmp_path / "never_opened.db").exists()
