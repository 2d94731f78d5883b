"""One of each error of the library, made as the library makes it, with what its message must hold."""

from dataclasses import dataclass

from gnl_middleware import errors

FACTS = {"run_id": "order 7", "step_key": "pay/1f/1"}
JOURNAL = "my runs.db"


@dataclass(frozen=True)
class Sample:
    """An error and its message's parts.

    Attributes:
        kind: Its class.
        facts: What it is made of, which are its attributes afterwards.
        what: What happened.
        why: Why that matters.
        then: What to do next.
        more: Arguments that are not facts.
    """

    kind: type
    facts: dict
    what: str
    why: str
    then: str
    more: dict

    def make(self):
        """The error."""
        return self.kind(**self.facts, **self.more)


def sample(kind, what, why, then, /, *, more=None, **facts):
    return Sample(kind, facts, what, why, then, more or {})


SAMPLES = [
    sample(
        errors.RunBusyError,
        "held by another worker (pid 7 on desk",
        "do its work twice",
        'on_busy="wait"',
        run_id="order 7",
        holder="pid 7 on desk",
        lease_ends_at=1.5,
    ),
    sample(
        errors.LeaseLostError,
        "lost its lease",
        "Another worker may be going on",
        "journal.run('order 7')",
        run_id="order 7",
        reason="fence",
    ),
    sample(
        errors.SideEffectRetryBlockedError,
        "may have happened",
        "could do it twice",
        "gnl resolve 'order 7' pay/1f/1 --journal 'my runs.db' --happened --by YOU",
        **FACTS,
        tool="pay",
        arguments={"order": "ü"},
        idempotency_key="k-1",
        started_at=1.5,
        reason="recover answered Unknown()",
        journal=JOURNAL,
    ),
    sample(
        errors.ForkedEffectError,
        'pay({"order": "ü"}) has not run',
        "could be done a second time",
        "gnl fork 'order 8' 'order 8-live' --journal 'my runs.db' --effects",
        run_id="order 8",
        forked_from="order 7",
        step_key="pay/1f/1",
        tool="pay",
        arguments={"order": "ü"},
        journal=JOURNAL,
    ),
    sample(
        errors.DivergenceError,
        "the arguments differ",
        "could repeat or skip",
        "gnl show 'order 7' --journal 'my runs.db'",
        **FACTS,
        part="arguments",
        recorded={"order": 7},
        asked={"order": 8},
        diff="- 7\n+ 8",
        more={"headline": "the arguments differ", "causes": ("a changed prompt",), "journal": JOURNAL},
    ),
    sample(
        errors.ReplayMissError,
        "no outcome for pay",
        "nothing runs live",
        "gnl show 'order 7' --journal 'my runs.db'",
        **FACTS,
        name="pay",
        more={"journal": JOURNAL},
    ),
    sample(
        errors.RunInputMismatchError,
        "started with another input",
        "names one job",
        "Give the first input, or a run id of its own",
        run_id="order 7",
        recorded="a" * 64,
        asked="b" * 64,
    ),
    sample(
        errors.EffectCycleError,
        "called inside the very call",
        "wait for itself for ever",
        "take once_per= from the outer one",
        **FACTS,
        name="pay",
    ),
    sample(
        errors.RetryLimitError,
        "tried 5 times",
        "must not loop for ever",
        "gnl resolve 'order 7' pay/1f/1 --journal 'my runs.db' --failed TEXT --by YOU",
        **FACTS,
        name="pay",
        attempts=5,
        more={"journal": JOURNAL},
    ),
    sample(
        errors.UnlabelledToolError,
        "No replay label for a, b",
        "must know what may run again",
        "safe=[a]",
        tools=("a", "b"),
        more={"example": "JournalMiddleware(safe=[a])"},
    ),
    sample(
        errors.UnjournaledCallError,
        "'pay' is not journalled",
        "run again without anybody knowing",
        "wrap it",
        kind="tool",
        name="pay",
        more={"remedy": "To journal it, wrap it."},
    ),
    sample(
        errors.UnserializableValueError,
        "$.items[3] is a Socket",
        "could not give back",
        "gnl_middleware.register(",
        path="$.items[3]",
        type_name="Socket",
        step_key="pay/1f/1",
    ),
    sample(
        errors.NoActiveRunError,
        "pay is journalled, but no run is open",
        "nothing would be recorded",
        'with Journal("runs.db").run(',
        name="pay",
    ),
    sample(
        errors.RunErasedError,
        "was erased",
        "can no longer be read back",
        "Use a new run id, or begin this one anew with journal.run('order 7', restart=True)",
        run_id="order 7",
    ),
    sample(
        errors.RunNotFoundError,
        "There is no run 'order 7'",
        "nothing to copy or to compare",
        "List the runs that there are with `gnl runs --journal 'my runs.db'`",
        run_id="order 7",
        more={"journal": JOURNAL},
    ),
    sample(
        errors.ForkRefusedError,
        "was not forked as 'order 8': no step",
        "would leave it",
        "gnl show 'order 7' --journal 'my runs.db'",
        run_id="order 7",
        new_run_id="order 8",
        reason="no step is called 9",
        more={"journal": JOURNAL},
    ),
    sample(
        errors.ResolutionRefusedError,
        "was not decided: it is done",
        "Nothing was changed",
        "gnl show 'order 7' --journal 'my runs.db'",
        run_id="order 7",
        step="pay",
        reason="it is done",
        more={"journal": JOURNAL},
    ),
    sample(
        errors.JournalUnavailableError,
        "cannot be used: disk full",
        "cannot be recorded is not run",
        "Free space, then run again.",
        url="sqlite:///runs.db",
        cause_text="disk full",
        more={"remedy": "Free space, then run again."},
    ),
    sample(
        errors.JournalCorruptError,
        "damaged at run 'order 7'",
        "could repeat an effect",
        "Restore the file from a backup",
        where="run 'order 7'",
        problem="hash",
    ),
    sample(
        errors.UnreadableTypeError,
        "holds a value of Invoice at run 'order 7', step 'pay/1f/1'",
        "would go on with something else",
        "gnl_middleware.register(Invoice)",
        where="run 'order 7', step 'pay/1f/1'",
        type_name="Invoice",
        problem="it is not registered in this process",
    ),
    sample(
        errors.JournalKeyError,
        "it is encrypted with key '2026-11'",
        "could repeat an effect",
        "Encryption(current=..., key=...)",
        where="run 'order 7', step 'pay/1f/1'",
        key_id="2026-11",
        problem="it is encrypted with key '2026-11', and the journal was opened without encryption",
    ),
    sample(
        errors.JournalVersionError,
        "has schema version 9",
        "could misunderstand",
        "pip install --upgrade gnl-middleware",
        url="sqlite:///runs.db",
        found=9,
        supported=1,
    ),
]
RECORDED = Sample(errors.RecordedError, {"type_name": "OutOfStock", "text": "order 7"}, "", "", "", {})
BASES = {errors.GnlError, errors.JournalError}
