"""Every error carries its facts, survives a pickle, and says what happened, why it matters and what to do next."""

import copy
import inspect
import pickle
import shlex

import pytest

from gnl_middleware import errors
from tests.errors.samples import BASES, RECORDED, SAMPLES

CLASSES = {
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__.startswith(errors.__name__)
}
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.kind.__name__)
every_error = pytest.mark.parametrize("sample", [*SAMPLES, RECORDED], ids=lambda sample: sample.kind.__name__)
COMMANDS = [sample for sample in SAMPLES if sample.then.startswith("gnl ")]


def facts_of(error):
    return {name: getattr(error, name) for name in vars(error) if not name.startswith("__")}


def test_no_error_is_forgotten():
    """The tests below hold for every error class of the library."""
    assert {sample.kind for sample in SAMPLES} | {RECORDED.kind} | BASES == CLASSES


def test_names_and_family():
    """Every error ends in Error and is a GnlError, so that one clause catches them all; each says what it means."""
    assert all(kind.__name__.endswith("Error") for kind in CLASSES)
    assert all(issubclass(kind, errors.GnlError) for kind in CLASSES)
    assert all(inspect.getdoc(kind) for kind in CLASSES)
    assert {kind for kind in CLASSES if issubclass(kind, errors.JournalError)} == {
        errors.JournalError,
        errors.JournalUnavailableError,
        errors.JournalCorruptError,
        errors.UnreadableTypeError,
        errors.JournalKeyError,
        errors.JournalVersionError,
    }


def test_public_names_are_these():
    """Every error class can be imported from the package itself."""
    import gnl_middleware

    assert all(getattr(gnl_middleware, kind.__name__, None) is kind for kind in CLASSES)
    assert set(errors.__all__) == {kind.__name__ for kind in CLASSES}


@every_error
def test_facts_are_attributes(sample):
    """What an error is made of can be read from it."""
    error = sample.make()

    assert {name: getattr(error, name) for name in sample.facts} == sample.facts


@every_error
def test_facts_are_documented(sample):
    """Every fact of an error stands in its documentation."""
    documented = inspect.getdoc(sample.kind)

    assert all(f"\n    {name}:" in documented for name in sample.facts)


@every_error
def test_facts_are_given_by_name(sample):
    """No error can be made from arguments by position, where facts could be mixed up."""
    with pytest.raises(TypeError):
        sample.kind("order 7")


@every_sample
def test_message_says_what_why_and_what_next(sample):
    """A message says what happened, why it matters and what to do next, in this order."""
    message = str(sample.make())

    places = [message.find(part) for part in (sample.what, sample.why, sample.then)]

    assert -1 not in places, message
    assert places == sorted(places)


@pytest.mark.parametrize("sample", COMMANDS, ids=lambda sample: sample.kind.__name__)
@pytest.mark.parametrize(
    "run_id", ["order-7", "order 7; rm -rf ~", "it's", "$(date)", "-7", "größe"], ids=repr
)
def test_command_can_be_pasted(sample, run_id):
    """The command in a message is one command for the shell, whatever the run is called."""
    error = sample.kind(**sample.facts | {"run_id": run_id}, **sample.more)
    line = next(line for line in str(error).splitlines() if "gnl " in line)
    text = line[line.index("gnl ") :].partition("`")[0].partition("#")[0]

    words = shlex.split(text)

    assert words[0] == "gnl"
    assert run_id in words
    assert not run_id.startswith("-") or words.index("--") < words.index(run_id)


@every_error
def test_pickle_keeps_everything(sample):
    """An error that crosses a process keeps its class, message and facts."""
    error = sample.make()

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copied = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - our own bytes, made in the line itself

        assert type(copied) is type(error)
        assert (str(copied), copied.args, facts_of(copied)) == (str(error), error.args, facts_of(error))


@every_error
def test_copy_keeps_everything(sample):
    """An error can be copied, also deeply."""
    error = sample.make()

    for copied in (copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is type(error)
        assert (str(copied), facts_of(copied)) == (str(error), facts_of(error))


@every_error
def test_pickle_keeps_notes(sample):
    """A note that somebody added to an error crosses processes with it."""
    error = sample.make()
    error.add_note("seen by ops")

    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes, made in the line itself

    assert copied.__notes__ == ["seen by ops"]


def test_recorded_error_speaks_with_the_original_voice():
    """RecordedError is for the agent: its text is the recorded text and nothing else."""
    error = RECORDED.make()

    assert str(error) == "order 7"


@pytest.mark.parametrize(
    "arguments",
    [{"text": "x" * 10_000}, object(), float("nan"), {1: {2}}],
    ids=["long", "object", "no number", "set"],
)
def test_message_stays_readable(arguments):
    """A message with long or odd arguments is cut or described, never an error of its own."""
    facts = next(sample.facts for sample in SAMPLES if sample.kind is errors.SideEffectRetryBlockedError)

    error = errors.SideEffectRetryBlockedError(**facts | {"arguments": arguments})

    assert len(str(error)) < 2_500
    assert error.arguments is arguments


def test_unknown_time_is_said():
    """An error about a call whose begin is unknown says so."""
    facts = next(sample.facts for sample in SAMPLES if sample.kind is errors.SideEffectRetryBlockedError)

    error = errors.SideEffectRetryBlockedError(**facts | {"started_at": None})

    assert "began at unknown" in str(error)
