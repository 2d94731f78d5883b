"""A finished run gives its reply from the journal alone; what would run live is refused."""

import contextlib

import pytest

from gnl_langchain import journaled_model, run_durable
from gnl_middleware import Journal, ReplayMissError, never
from gnl_middleware.testing import model_off
from tests.langchain.driving import WAYS, drive
from tests.langchain.scripted import QUESTION, ScriptedModel, said, turns
from tests.toolkit.orders import order
from tests.toolkit.support_agents import support


@pytest.fixture
def journal(tmp_path):
    """A journal on a real file."""
    with Journal(tmp_path / "runs.db") as journal:
        yield journal


@pytest.mark.parametrize("way", WAYS)
def test_a_finished_run_is_replayed_without_its_model(log, journal, way):
    """In each way of running it: the same reply, no model asked, no tool run."""
    build = support(log, "nested")
    live = drive(journal, build(), way)

    with model_off() as refused:
        replayed = drive(journal, build(), way)

    assert (replayed.reply, replayed.ran, refused) == (live.reply, 0, [])
    assert log("run") == {"book": 1, "mail": 1}


def test_a_model_that_is_asked_all_the_same_raises(log, journal):
    """A run without a record is refused before the model is asked, in words that name the call and the reason."""
    agent = support(log, "sequential")()

    with model_off() as refused, pytest.raises(ReplayMissError) as raised:
        run_durable(agent, QUESTION, run_id="run", journal=journal)

    assert raised.value.run_id == "run"
    assert refused == [raised.value.name]
    assert any("model_off() is on" in note for note in raised.value.__notes__)
    assert log("run") == {}
    assert [step for step in journal.steps("run") if step.status == "done"] == []


def test_a_refusal_cannot_be_swallowed(journal, log):
    """Code that catches everything and goes on does not hide that something would have run live."""
    build, _ = order(log, never)
    look_up, _ = build()

    def careless():
        with journal.run("run"), contextlib.suppress(Exception):
            look_up(1)

    with model_off(), pytest.raises(ReplayMissError):
        careless()


def test_the_model_is_on_again_afterwards(log, journal):
    """Outside the block models are asked as ever, also after an error inside."""
    model = ScriptedModel(script=turns(said("Hello.")))
    with model_off():
        pass
    with pytest.raises(RuntimeError), model_off():
        raise RuntimeError

    with journal.run("run"):
        reply = journaled_model(model).invoke("hello")

    assert (str(reply.text), len(model.asked)) == ("Hello.", 1)
