"""The table of DESIGN 3.1, cell by cell, and what no cell may break."""

import itertools

import pytest

from gnl_middleware.decision import Do, Facts, decide, is_interrupted

COLUMNS = {
    "model": ("model", "safe"),
    "value": ("value", "safe"),
    "safe": ("tool", "safe"),
    "keyed": ("tool", "keyed"),
    "never": ("tool", "never"),
    "kept": ("model", "never"),
}

# What is in the journal, then what happens to: a model, a value, a tool or function of each label, and a model in a
# conversation that a server keeps.
TABLE = """
nothing                              run     run     run     run     run     run
withdrawn                            run     run     run     run     run     run
paused                               run     run     run     run     run     run
done                                 return  return  return  return  return  return
started                              run     run     run     run     settle  settle
started cleared                      run     run     run     run     run     run
started running                      wait    wait    wait    wait    wait    wait
started running cleared              wait    wait    wait    wait    wait    wait
failed                               run     run     run     run     settle  settle
failed not_performed                 run     run     run     run     run     run
failed cleared                       run     run     run     run     run     run
failed handled                       raise   raise   raise   raise   raise   raise
failed handled not_performed         raise   raise   raise   raise   raise   raise
failed decided_failed                raise   raise   raise   raise   raise   raise
failed running                       wait    wait    wait    wait    wait    wait
"""

FLAGS = ("running", "handled", "not_performed", "cleared", "decided_failed")
STATUSES = (None, "started", "done", "failed", "withdrawn", "paused")


def table_cells():
    """Each cell as (status, flags, column, expected)."""
    for line in TABLE.strip().splitlines():
        words = line.split()
        outcomes = words[-len(COLUMNS) :]
        status, *flags = words[: -len(COLUMNS)]
        for column, outcome in zip(COLUMNS, outcomes, strict=True):
            name = f"{'-'.join((status, *flags))}-{column}"
            yield pytest.param(None if status == "nothing" else status, flags, column, outcome, id=name)


CELLS = list(table_cells())


def all_situations():
    """Every combination of what can be known, the impossible ones included."""
    for status, column, *values in itertools.product(
        STATUSES, COLUMNS.values(), *[(False, True)] * len(FLAGS)
    ):
        kind, label = column
        yield kind, label, Facts(status=status, **dict(zip(FLAGS, values, strict=True)))


@pytest.mark.parametrize(("status", "flags", "column", "outcome"), CELLS)
def test_cell(status, flags, column, outcome):
    """What happens to a call is what its cell of the table says."""
    kind, label = COLUMNS[column]
    facts = Facts(status=status, **dict.fromkeys(flags, True))

    done = decide(kind, label, facts)

    assert done is Do(outcome)


@pytest.mark.parametrize(("status", "flags", "column", "outcome"), CELLS)
def test_interrupted_cells_are_those_to_settle(status, flags, column, outcome):
    """A call counts as interrupted, and stops whatever else would start, exactly where its cell says settle."""
    kind, label = COLUMNS[column]
    facts = Facts(status=status, **dict.fromkeys(flags, True))

    interrupted = is_interrupted(kind, label, facts)

    assert interrupted is (outcome == "settle")


def test_table_has_no_line_twice():
    """Every line of the table is about another situation."""
    lines = [tuple(line.split()[: -len(COLUMNS)]) for line in TABLE.strip().splitlines()]

    assert len(lines) == len(set(lines))


def test_begun_never_call_runs_only_when_somebody_vouched_for_it():
    """Whatever else is known, a `never` call that began runs again only if it is proven not to have happened."""
    begun = [
        (facts, decide(kind, label, facts))
        for kind, label, facts in all_situations()
        if label == "never" and facts.status in ("started", "failed")
    ]

    run_again = {facts for facts, do in begun if do is Do.RUN}

    assert run_again
    assert all(facts.cleared or (facts.status == "failed" and facts.not_performed) for facts in run_again)


def test_running_try_is_always_waited_for():
    """While a try still runs, no other try of the same call starts and nothing is settled."""
    outcomes = {decide(kind, label, facts) for kind, label, facts in all_situations() if facts.running}

    assert outcomes == {Do.WAIT}


def test_recorded_value_always_wins():
    """A call that is done is read back, whatever its label and whatever else is known."""
    outcomes = {
        decide(kind, label, facts)
        for kind, label, facts in all_situations()
        if facts.status == "done" and not facts.running
    }

    assert outcomes == {Do.RETURN}


def test_only_never_calls_are_settled():
    """Values, `safe` and `keyed` tools and models without a label are never settled: they may simply run again."""
    settled = {
        (kind, label) for kind, label, facts in all_situations() if decide(kind, label, facts) is Do.SETTLE
    }

    assert settled == {("tool", "never"), ("model", "never")}


def test_interrupted_means_to_settle_in_every_situation():
    """The index of interrupted calls and the decision about each of them never disagree."""
    disagreeing = [
        (kind, label, facts)
        for kind, label, facts in all_situations()
        if is_interrupted(kind, label, facts) is not (decide(kind, label, facts) is Do.SETTLE)
    ]

    assert disagreeing == []


def test_label_means_nothing_for_values():
    """Making a value again is no side effect, whatever label it carries."""
    facts = Facts(status="started")

    outcomes = {decide("value", label, facts) for label in ("safe", "keyed", "never")}

    assert outcomes == {Do.RUN}
