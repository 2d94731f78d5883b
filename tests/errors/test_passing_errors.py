"""The errors as a framework lets them pass: our classes and its own at once, with all facts, in every adapter."""

import inspect
import pickle

import pytest
from agents.exceptions import AgentsException
from langgraph.errors import GraphBubbleUp

import gnl_langchain.errors
import gnl_openai_agents.errors
from gnl_middleware import errors
from tests.errors.samples import BASES, RECORDED, SAMPLES

ADAPTERS = {
    "langchain": (gnl_langchain.errors, GraphBubbleUp),
    "openai_agents": (gnl_openai_agents.errors, AgentsException),
}
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.kind.__name__)


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    """The module of an adapter's errors."""
    return ADAPTERS[request.param][0]


def classes_of(adapter):
    found = inspect.getmembers(adapter, inspect.isclass)
    return {name: kind for name, kind in found if kind.__module__ == adapter.__name__ and name[0] != "_"}


def test_every_error_that_stops_a_run_can_pass(adapter):
    """There is a passing class for every error but the bases, and but the one that must reach the agent."""
    stopping = {kind.__name__ for kind in (sample.kind for sample in SAMPLES)}

    assert set(classes_of(adapter)) == stopping
    assert RECORDED.kind.__name__ not in stopping
    assert not {kind.__name__ for kind in BASES} & stopping


@every_sample
@pytest.mark.parametrize("framework", ADAPTERS)
def test_one_clause_catches_both(sample, framework):
    """A passing error is caught by the core's class and passes the framework's handlers as its own."""
    adapter, own = ADAPTERS[framework]

    passed = adapter.passing(sample.make())

    assert type(passed) is classes_of(adapter)[sample.kind.__name__]
    assert isinstance(passed, sample.kind)
    assert isinstance(passed, own)


@every_sample
def test_facts_are_kept(sample, adapter):
    """A passing error has the message and the facts of the one that it was made from."""
    error = sample.make()

    passed = adapter.passing(error)

    assert (str(passed), passed.args, vars(passed)) == (str(error), error.args, vars(error))


@every_sample
def test_pickle_keeps_everything(sample, adapter):
    """A passing error crosses processes as what it is."""
    passed = adapter.passing(sample.make())

    copied = pickle.loads(pickle.dumps(passed))  # noqa: S301 - our own bytes, made in the line itself

    assert type(copied) is type(passed)
    assert (str(copied), vars(copied)) == (str(passed), vars(passed))


@every_sample
def test_passing_twice_changes_nothing(sample, adapter):
    """An error that passes already is handed on as it is."""
    passed = adapter.passing(sample.make())

    assert adapter.passing(passed) is passed


def test_cause_and_traceback_are_kept(adapter):
    """Where an error came from stays with it."""
    cause = OSError("disk full")

    def fail():
        raise errors.JournalUnavailableError(url="sqlite:///runs.db", cause_text="disk full") from cause

    with pytest.raises(errors.JournalUnavailableError) as caught:
        fail()

    passed = adapter.passing(caught.value)

    assert passed.__cause__ is cause
    assert passed.__traceback__ is caught.value.__traceback__


def test_recorded_error_does_not_pass(adapter):
    """A recorded error must reach the agent as the original did: it stays as it is."""
    error = RECORDED.make()

    assert adapter.passing(error) is error
