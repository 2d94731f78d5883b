"""A journal on a file, driven by chance through every fault that one machine can have, beside a small reference model."""

import contextlib
from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from gnl_middleware import Done, Failed, GnlError, NotDone, ResolutionRefusedError
from tests.crash.machine.agent import Abandoned, model_call, told
from tests.crash.machine.reference import LIMIT, Call, Row
from tests.crash.machine.stage import RUN, Attempt, How, Stage, counted

BEHAVIOURS = (
    *("return", "return", "return", "raise", "refuse", "die before effect", "die after effect"),
    *("cancelled before body", "cancelled in body", "cancelled at outcome"),
    *("outage at outcome", "outage after outcome", "unreadable"),
)
OF_MODELS = [word for word in BEHAVIOURS if word not in ("refuse", "cancelled before body", "unreadable")]
OF_THREADS = ("return", "raise", "refuse", "die before effect", "die after effect")
EVENTS = ("killed", "killed before a write", "clock set back", "clock set on", "suspended", "taken over")
BLIPS = ((), (), (), (), ("before",), ("after",), ("after", "before", "after"))
"""Commits that fail and are tried again: nobody must notice."""

ATTEMPTS = 40
"""A run that so many attempts cannot finish cannot be finished."""

places = st.integers(0, 2)
blips = st.sampled_from(BLIPS)
tools = st.tuples(
    st.sampled_from(("safe", "keyed", "never", "never")),
    st.sampled_from(("", "truth", "truth", "unknown", "raises")),
)
scripts = st.lists(st.lists(tools, min_size=1, max_size=3), min_size=1, max_size=3)


class JournalMachine(Stage):
    """Chooses what happens next."""

    @initialize(turns=scripts, tells=st.booleans())
    def write_script(self, turns, tells):
        """Say what the model will ask for."""
        counted["runs"] += 1
        self.prepare(turns, tells=tells)

    def has_attempt(self):
        """Whether an attempt is open."""
        return self.attempt is not None

    def may_ask(self):
        """Whether the agent's next step is to ask the model."""
        if not self.has_attempt() or self.turn() > len(self.script):
            return False
        return all(call.name in self.attempt.answers for call in self.asked())

    def may_call(self):
        """Whether the agent's next step is to call a tool."""
        return self.has_attempt() and bool(self.open_calls())

    @precondition(lambda self: not self.has_attempt())
    @rule(blip=blips)
    def begin(self, blip):
        """Open the run."""
        self.begin_attempt(blip)

    @precondition(may_ask)
    @rule(behaviour=st.sampled_from(OF_MODELS), later=st.booleans(), blip=blips)
    def ask(self, behaviour, later, blip):
        """Ask the model, or read its reply back."""
        turn, attempt = self.turn(), self.attempt
        calls = self.script[turn] if turn < len(self.script) else []
        # As agents do: the answers stand in the order of the calls, whichever came first.
        answers = [("tool", attempt.answers[each.name], each.name) for each in self.asked()]
        history = [*attempt.history, *answers]
        answered = [about for role, _, about in history if role == "tool"]
        call = Call(f"model {turn}", "model")
        result = self.perform(call, model_call(history, calls), How(behaviour, later, blip), answered)
        if result[0] == "value":
            attempt.history = [*history, ("assistant", result[1], " ".join(each.name for each in calls))]
            attempt.reply, attempt.answers, attempt.errors = result[1], {}, {}
        elif result == ("cancelled",) and self.reference.rows[call.name].status == "done":
            # The task was cancelled with the reply at its door: asking the same once more would be another question.
            self.leave("interrupted", ())

    @precondition(may_call)
    @rule(place=places, behaviour=st.sampled_from(BEHAVIOURS), later=st.booleans(), blip=blips)
    def use(self, place, behaviour, later, blip):
        """Call a tool that the reply asks for, once more after an error."""
        call = self._chosen(place)
        if behaviour == "cancelled before body" and call.label == "safe":
            behaviour = "cancelled in body"  # nobody waits for its intent
        result = self.perform(call, self.as_asked(call, self.attempt), How(behaviour, later, blip))
        self._take(call, result)

    def _take(self, call, result):
        if result[0] == "value":
            self.answer(call, result[1])
        elif result[0] == "error":
            self.attempt.errors[call.name] = result[1]

    def _chosen(self, place):
        calls = self.open_calls()
        return calls[place % len(calls)]

    @precondition(lambda self: self.has_attempt() and self.attempt.errors)
    @rule(place=places)
    def handle(self, place):
        """Tell the model of an error instead of dying of it."""
        names = sorted(self.attempt.errors)
        name = names[place % len(names)]
        self.answer(next(call for call in self.tools() if call.name == name), self.attempt.errors[name])

    def may_abandon(self):
        """Whether some tool would run at once if it were called."""
        reference = self.reference
        if not self.may_call() or reference.latch or reference.lease_gone or reference.suspects():
            return False
        return bool(self._that_would_run())

    def _that_would_run(self):
        calls = [call for call in self.open_calls() if self.may_try(call)]
        return [call for call in calls if self.reference.decision(call) == "run"]

    @precondition(may_abandon)
    @rule(place=places)
    def abandon(self, place):
        """Call a tool on a thread that outlives its caller."""
        counted["abandoned threads"] += 1
        calls = self._that_would_run()
        call = calls[place % len(calls)]
        token = self.reference.claim(call).token
        self.reference.running[call.name] = token
        asked, session = self.as_asked(call, self.attempt), self.attempt.run.session
        self.abandoned[call.name] = Abandoned(call, session, asked, self.world, token)
        self.attempt.errors.pop(call.name, None)

    @precondition(lambda self: self.abandoned)
    @rule(place=places, ending=st.sampled_from(OF_THREADS))
    def end_abandoned(self, place, ending):
        """The body on the thread ends after all, perhaps when its attempt is long over."""
        names = sorted(self.abandoned)
        one = self.abandoned.pop(names[place % len(names)])
        row, token = self.reference.rows[one.call.name], self.reference.running.pop(one.call.name)
        current = self.has_attempt() and one.session is self.attempt.run.session
        result = one.end(ending)
        expected = self._ended_late(row if row.token == token else Row(row.call, row.number), ending, current)
        if current:
            assert result == expected
            self._take(one.call, result)

    def _ended_late(self, row, ending, current):
        """What the end of an abandoned body does to the reference; a lost claim makes its outcome mere news."""
        latch, failed_now = self.reference.latch, set(self.reference.failed_now)
        expected = self.reference.run_body(row, ending)
        if not current:
            self.reference.latch, self.reference.failed_now = latch, failed_now
        return expected

    @precondition(has_attempt)
    @rule(how=st.sampled_from(("clean", "error", "interrupted")), blip=blips)
    def leave(self, how, blip):
        """Leave the run: as if the agent had ended, or with an error, or interrupted from outside."""
        error = {"clean": None, "error": ValueError("no"), "interrupted": KeyboardInterrupt()}[how]
        self.status = self.reference.leave(how)
        attempt, self.attempt = self.attempt, None
        self.disk.plan, raised = list(blip), None
        try:
            attempt.leave(error)
        except GnlError as left:
            (raised,) = told(left)
        self.disk.plan = []
        assert raised == (None if how == "interrupted" else self.reference.latch)
        self.check_world()
        self.check_listing()

    @rule(event=st.sampled_from(EVENTS), place=places)
    def suffer(self, event, place):
        """Something happens to the process or its machine."""
        if event.startswith("clock"):
            self.clock.wall += -3600.0 if event == "clock set back" else 10.0
        elif event.startswith("killed"):
            self.kill(place, unwritten=event != "killed")
        elif self.has_attempt() and event == "taken over":
            self.take_over(place)
        elif self.has_attempt() and not self.reference.lease_gone:
            self.suspend()

    def undecided(self):
        """The tool steps, decided or not, that a person may look at while nobody holds the run."""
        rows = self.reference.rows.values() if not self.has_attempt() else ()
        return [row for row in rows if row.call.label != "model"]

    @precondition(undecided)
    @rule(place=st.integers(0, 8), decision=st.sampled_from(("truth", "truth", "failed")), blip=blips)
    def decide(self, place, decision, blip):
        """A person looks at the world and decides a step."""
        rows = self.undecided()
        self._decide(rows[place % len(rows)], decision, blip)

    def _decide(self, row, decision, blip=()):
        performed = self.world.performed.get(row.call.name)
        word = decision if decision == "failed" else "happened" if performed else "not_done"
        decisions = {"happened": Done(performed and performed[0]), "not_done": NotDone()}
        key, self.disk.plan = self.key_of(row) if row.status != "withdrawn" else "withdrawn", list(blip)
        taken = self.reference.decide(row.call.name, word)
        with contextlib.nullcontext() if taken else pytest.raises(ResolutionRefusedError):
            self.journal.resolve(RUN, key, decisions.get(word, Failed("a person said no")), by="ops")
            counted["decisions"] += 1
        self.disk.plan = []

    def teardown(self):
        """Finish the run with all that a patient operator can do, then read it back with everything switched off."""
        try:
            if self.script and not self.hangs:
                self._finish()
        finally:
            counted["failed commits"] += self.disk.failed
            self.close()

    def _finish(self):
        while self.abandoned:
            self.end_abandoned(0, "return")
        if self.has_attempt():
            self.leave("interrupted", ())
        for _ in range(ATTEMPTS):
            self.begin_attempt()
            if self._played_to_its_end():
                counted["finished runs"] += 1
                self._read_back()
                return
            why = self.reference.latch
            self.leave("clean", ())
            stuck = [row for row in self.reference.rows.values() if self._is_stuck(row)]
            if any(row.call.label == "model" for row in stuck) or why == "unreadable":
                counted["runs given up for a good reason"] += 1
                return
            for row in stuck:
                self._decide(row, "truth" if self.world.performed.get(row.call.name) else "failed")
            for row in self.reference.rows.values():
                if row.blocked:
                    self._decide(row, "truth")
        raise AssertionError("the run cannot be finished")

    def _is_stuck(self, row):
        open_still = row.status in ("started", "failed") and row.resolution in (None, "not_performed")
        return open_still and row.tries >= LIMIT and not row.handled

    def _played_to_its_end(self):
        while self.reference.latch is None:
            if self.may_ask():
                self.ask("return", False, ())
            elif self.attempt.errors:
                self.handle(0)
            elif self.open_calls():
                self.use(0, "return", True, ())
            else:
                self.leave("clean", ())
                return self.reference.latch is None
        return False

    def _read_back(self):
        ran = Counter(self.world.ran)
        self.attempt = Attempt(self.journal, tells=self.reference.tells, offline=True)
        self.reference.look()
        assert self._played_to_its_end()
        assert self.world.ran == ran


def _explore(figures, name, **options):
    counted.clear()
    chosen = settings(
        deadline=None,
        print_blob=False,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        **options,
    )
    run_state_machine_as_test(JournalMachine, settings=chosen)
    figures(name, **{key.replace(" ", "_"): counted[key] for key in sorted(counted)})
    assert counted["finished runs"] > counted["runs given up for a good reason"]


def test_journal_agrees_with_the_reference(figures):
    """Whatever fails, each caller gets what DESIGN 3.1 says, no body runs but those that may, and the run can be finished."""
    _explore(figures, "state machine", max_examples=30, stateful_step_count=30, derandomize=True)


@pytest.mark.long
def test_journal_agrees_with_the_reference_for_long(figures):
    """The same, for many more runs."""
    _explore(figures, "state machine, long", max_examples=500, stateful_step_count=40, derandomize=True)
