"""Interrupted side effects: `recover` is asked whether they happened, and its answer decides."""

import asyncio
import time

import pytest

from gnl_middleware import (
    Done,
    InterruptedCall,
    Journal,
    NotDone,
    SideEffectRetryBlockedError,
    Unknown,
    current_step,
    journaled,
    never,
    safe,
)
from gnl_middleware.adapter import remember
from tests.functions.scripted import (
    FOREVER,
    RUN,
    Function,
    answering,
    attempt,
    cut_off_together,
    interrupted,
    only_step,
    run_async,
    run_status,
)

both_colours = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class TestRecover:
    @both_colours
    @pytest.mark.parametrize("awaited", [False, True], ids=["hook", "awaited hook"])
    def test_happened(self, journal, asynchronous, awaited):
        """`Done` gives the caller its value, now and on every replay; the body does not run."""
        pay = interrupted(
            journal, never(recover=answering(Done("T-7"), awaited=awaited)), asynchronous=asynchronous
        )

        results = [attempt(journal, pay, asynchronous=asynchronous) for _ in range(2)]

        step = only_step(journal)
        assert (results, len(pay.ran)) == ([["T-7"]] * 2, 1)
        assert (step.status, step.value, step.resolution, step.blocked) == ("done", "T-7", "recovered", None)

    @both_colours
    @pytest.mark.parametrize("awaited", [False, True], ids=["hook", "awaited hook"])
    def test_has_not_happened(self, journal, asynchronous, awaited):
        """`NotDone` lets the body run."""
        pay = interrupted(
            journal, never(recover=answering(NotDone(), awaited=awaited)), asynchronous=asynchronous
        )

        results = [attempt(journal, pay, asynchronous=asynchronous) for _ in range(2)]

        assert (results, len(pay.ran)) == ([["paid"]] * 2, 2)

    @both_colours
    @pytest.mark.parametrize("awaited", [False, True], ids=["hook", "awaited hook"])
    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Unknown(), "recover answered Unknown()"),
            (TimeoutError("desk down"), "recover raised TimeoutError: desk down"),
            (StopIteration("x"), "StopIteration"),
            ("T-7", "'T-7', which is none of"),
            (None, "None, which is none of"),
            (Done, "which is none of"),
            (Done(object()), "cannot be journalled"),
        ],
        ids=["unknown", "raises", "stops", "text", "nothing", "class", "unencodable"],
    )
    def test_no_answer_blocks(self, journal, answer, reason, asynchronous, awaited):
        """A hook that does not know, fails or answers rubbish blocks the run and says why; the body does not run."""
        pay = interrupted(
            journal, never(recover=answering(answer, awaited=awaited)), asynchronous=asynchronous
        )

        with pytest.raises(SideEffectRetryBlockedError) as blocked:
            attempt(journal, pay, asynchronous=asynchronous)

        assert reason.partition(",")[0] in blocked.value.reason or reason in str(blocked.value)
        assert (len(pay.ran), run_status(journal)) == (1, "blocked")
        assert only_step(journal).blocked == blocked.value.reason

    def test_hook_learns_what_is_known(self, journal):
        """`recover` is told which call it is about: run, step, tool, arguments, key, time, tries and the error if any."""
        asked = []
        keys = []

        @journaled(replay=never(recover=answering(Done("found"), awaited=False, asked=asked)))
        def pay(order, amount=3):
            keys.append(current_step().idempotency_key)
            raise TimeoutError("no answer")

        before = time.time()
        with pytest.raises(TimeoutError), journal.run(RUN):
            pay("o-7")
        after = time.time()
        with journal.run(RUN):
            pay("o-7")

        (call,) = asked
        assert before <= call.started_at <= after
        assert call == InterruptedCall(
            run_id=RUN,
            step_key=only_step(journal).key,
            tool="pay",
            arguments={"order": "o-7", "amount": 3},
            idempotency_key=keys[0],
            started_at=call.started_at,
            attempts=1,
            error="TimeoutError: no answer",
        )

    def test_blocked_step_is_evaluated_anew(self, journal):
        """A hook added after the run was blocked settles it on the next attempt."""
        pay = interrupted(journal, never)
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay)
        better = Function(never(recover=answering(Done("found"), awaited=False)), "paid")

        results = attempt(journal, better)

        assert (results, better.ran, run_status(journal)) == (["found"], [], "completed")

    def test_answer_does_not_outlive_the_try_that_it_was_about(self, journal):
        """`NotDone` was about one try: when the next one fails or is cut off, `recover` is asked again."""
        asked = []
        pay = interrupted(
            journal,
            never(recover=answering(NotDone(), awaited=False, asked=asked), max_attempts=9),
            TimeoutError("no answer"),
            TimeoutError("no answer"),
            "paid",
        )

        with journal.run(RUN):
            for _ in range(2):
                with pytest.raises(TimeoutError):
                    pay.call()
            result = pay.call()

        assert (result, len(pay.ran), [call.attempts for call in asked]) == ("paid", 4, [1, 2, 3])

    def test_cleared_call_that_fails_is_blocked_when_nothing_can_tell(self, journal):
        """After `NotDone` the body ran again and timed out: a hook that no longer knows blocks the third execution."""
        answers = iter([NotDone(), Unknown()])
        pay = interrupted(journal, never(recover=lambda _: next(answers)), TimeoutError("no answer"))

        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay, pay, catch=(TimeoutError,))

        assert len(pay.ran) == 2

    def test_recover_after_waits_for_requests_in_flight(self, journal):
        """`recover_after` seconds pass between the start of the interrupted try and the question whether it happened."""
        asked = []

        def recover(call):
            asked.append(time.time() - call.started_at)
            return NotDone()

        pay = interrupted(journal, never(recover=recover, recover_after=0.3))

        attempt(journal, pay)

        assert asked[0] >= 0.3

    @both_colours
    def test_recover_inside_a_running_loop(self, journal, asynchronous):
        """An asynchronous hook of a synchronous function works where the caller's event loop is running."""
        pay = interrupted(journal, never(recover=answering(Done("found"), awaited=True)))

        async def main():
            with journal.run(RUN):
                return pay.call()

        assert run_async(main()) == "found"

    def test_one_answer_for_all_who_ask(self, journal):
        """A call that was settled meanwhile is not settled again by those who had it on their list: one try, one answer."""
        answers = []

        async def recover_pay(_):
            answers.append(f"answer {len(answers) + 1}")
            return Done(answers[-1])

        async def recover_mail(_):
            await pay_is_settled.wait()
            return Done("mailed")

        pay_is_settled = asyncio.Event()
        mail = Function(never(recover=recover_mail), FOREVER, name="settled_first", asynchronous=True)
        pay = Function(never(recover=recover_pay), FOREVER, name="settled_once", asynchronous=True)
        remember(mail, {"settled_first": never(recover=recover_mail)})
        remember(pay, {"settled_once": never(recover=recover_pay)})
        cut_off_together(journal, mail, pay)
        refund = Function(never, "refunded", name="refund", asynchronous=True)

        async def settle_from_two_sides():
            async with journal.run(RUN) as run:
                with run.scope("elsewhere"):
                    settling_both = asyncio.ensure_future(refund.call())
                await asyncio.sleep(0)  # as far as it can come: it waits for the first answer
                result = await pay.call()
                pay_is_settled.set()
                await settling_both
                return result

        result = run_async(settle_from_two_sides())

        assert result == only_step(journal, "settled_once").value == "answer 1"
        assert answers == ["answer 1"]

    def test_calls_that_were_interrupted_together(self, journal):
        """A call that may run again is not held up by one that is reached later: its hook is known, and asked first."""
        answers = {"first_of_two": NotDone(), "second_of_two": Done("found")}
        both = [
            Function(
                never(recover=answering(answer, awaited=True)), FOREVER, "paid", name=name, asynchronous=True
            )
            for name, answer in answers.items()
        ]
        cut_off_together(journal, *both)

        results = attempt(journal, *both, asynchronous=True)

        assert results == ["paid", "found"]

    def test_hook_looks_at_the_world_each_time(self, journal):
        """A hook is no part of the run: what it looks up through journalled functions is never read back from the record."""
        looked = []

        @journaled(replay=safe, on_no_run="passthrough")
        def look():
            looked.append(1)
            return len(looked)

        pay = interrupted(journal, never(recover=lambda call: Done("found") if look() == 2 else Unknown()))
        with pytest.raises(SideEffectRetryBlockedError):
            attempt(journal, pay)

        assert attempt(journal, pay) == ["found"]
        assert {step.name for step in journal.steps(RUN)} == {"pay"}

    def test_clock_that_is_behind(self, journal, tmp_path):
        """A machine whose clock is behind waits `recover_after` at most, not until the other clock's time has come."""

        class Behind:
            """A clock that is a day late."""

            def time(self):
                return time.time() - 86_400

            def monotonic(self):
                return time.monotonic()

        pay = interrupted(
            journal,
            never(recover=answering(Done("found"), awaited=True), recover_after=0.1),
            asynchronous=True,
        )

        with Journal(tmp_path / "runs.db", clock=Behind()) as late:
            results = attempt(late, pay, asynchronous=True)

        assert results == ["found"]
