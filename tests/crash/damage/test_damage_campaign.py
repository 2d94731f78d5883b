"""Journals with wrong bytes and wrong rows: opened, listed and replayed."""

import pytest

from tests.crash.damage.campaign import damage, lines, prepare


def _check(folder, figures, first, last, *, closed):
    prepare(folder, closed=closed)

    findings = damage(folder, first, last)

    figures(
        f"damaged journals {first} to {last}, {'closed' if closed else 'with a log'}",
        journals=findings.journals,
        **{kind.replace(" ", "_"): len(shown) for kind, shown in findings.wrong.items()},
    )
    assert findings.wrong == {}, "\n".join(lines(findings))
    assert findings.journals == last - first


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "with-log"])
def test_damaged_journals(tmp_path, figures, closed):
    """Two hundred damaged journals: the right value or a typed error that names the place; nothing runs."""
    _check(tmp_path, figures, 0, 100, closed=closed)


@pytest.mark.long
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "with-log"])
def test_many_damaged_journals(tmp_path, figures, closed):
    """The same for twenty thousand."""
    _check(tmp_path, figures, 1000, 11000, closed=closed)
