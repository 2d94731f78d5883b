"""Spans for runs, attempts and steps, through the API package of OpenTelemetry only (extra ``otel``).

Names and attributes follow the semantic conventions for generative AI. An attempt is a span, a step that ran is a span
inside it, and what the step itself calls stands inside that. A step that was read back is an event of its attempt, marked
``gnl.replayed``: it ran, was traced and was paid for before, so it gets no second span and no tokens. When a run is
completed, one span covers it from its first attempt on. All of them carry the run's id, and share one trace unless the
caller's own span is current.
"""

import contextlib
import hashlib
import threading
from typing import TYPE_CHECKING

try:
    from opentelemetry import context as otel_context
    from opentelemetry import trace
    from opentelemetry.trace import (
        Link,
        NonRecordingSpan,
        Span,
        SpanContext,
        SpanKind,
        Status,
        StatusCode,
        TraceFlags,
    )
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "Tracing needs OpenTelemetry's API: pip install 'gnl-middleware[otel]'"
    ) from missing

from gnl_middleware.model import StoredStep, type_name

if TYPE_CHECKING:
    from gnl_middleware.session.run import Run
    from gnl_middleware.session.session import Session

_OPERATIONS = {"model": "chat", "tool": "execute_tool"}
_NANO = 1_000_000_000


class Tracing:
    """The spans of one open run.

    Args:
        run: The run, just opened.
        provider: Where spans go; the global provider by default.
    """

    def __init__(self, run: "Run", provider: trace.TracerProvider | None = None) -> None:
        self._session: Session = run.session
        self._tracer = trace.get_tracer("gnl_middleware", tracer_provider=provider)
        self._steps: dict[str, Span] = {}
        self._lock = threading.Lock()
        whole = _context_of(self._session.run_id)
        around = trace.get_current_span().get_span_context()
        self._parent = None if around.is_valid else trace.set_span_in_context(NonRecordingSpan(whole))
        links = [Link(whole)] if around.is_valid else []
        self._attempt = self._tracer.start_span(
            f"attempt {self._session.attempt}",
            context=self._parent,
            kind=SpanKind.INTERNAL,
            links=links,
            attributes=self._marks() | {"gen_ai.operation.name": "invoke_agent"},
        )

    def _marks(self) -> dict[str, str | int]:
        return {"gnl.run_id": self._session.run_id, "gnl.attempt": self._session.attempt}

    def attempt_ended(self, status: str, error: BaseException | None) -> None:
        """End the span of the attempt, and that of the run where it is completed."""
        spared = self._session.spared
        self._attempt.set_attributes(
            {
                "gnl.status": status,
                "gnl.steps_ran": spared.ran,
                "gnl.steps_read_back": spared.read_back,
                "gnl.tokens_not_spent": spared.tokens,
                "gnl.seconds_not_spent": spared.seconds,
            }
        )
        if error is not None:
            _fail(self._attempt, error)
        self._attempt.end()
        if status == "completed" and self._session.status_before != "completed":
            self._whole_run()

    def _whole_run(self) -> None:
        stored = self._session.database.run(self._session.run_id, self._session.clock.time())
        if stored is not None:
            begun = int(stored.created_at * _NANO)
            name = f"run {self._session.run_id}"
            marks = {"gnl.run_id": stored.run_id, "gnl.attempts": stored.attempts}
            self._tracer.start_span(name, context=self._parent, start_time=begun, attributes=marks).end()

    def step_began(self, step: StoredStep) -> None:
        """Begin the span of a step."""
        operation = _OPERATIONS.get(step.kind)
        marks: dict[str, str | int] = self._marks() | {
            "gnl.step_key": step.key,
            "gnl.step_kind": step.kind,
            "gnl.tries": step.tries,
        }
        if operation is not None:
            marks["gen_ai.operation.name"] = operation
        if step.kind == "model":
            marks["gen_ai.request.model"] = step.name
        elif step.kind == "tool":
            marks |= {"gen_ai.tool.name": step.name, "gnl.policy": step.policy}
            if step.call_id:
                marks["gen_ai.tool.call.id"] = step.call_id
        span = self._tracer.start_span(
            f"{operation or step.kind} {step.name}",
            context=self._around(),
            kind=SpanKind.CLIENT if step.kind == "model" else SpanKind.INTERNAL,
            attributes=marks,
        )
        with self._lock:
            self._steps[step.key] = span

    def _around(self) -> otel_context.Context | None:
        """The current span, if there is one: that of the attempt is not carried into threads of one's own."""
        if trace.get_current_span().get_span_context().is_valid:
            return None
        return trace.set_span_in_context(self._attempt)

    def step_failed(self, key: str, error: BaseException) -> None:
        """Mark the span of a step with its error."""
        with self._lock:
            span = self._steps.get(key)
        if span is not None:
            _fail(span, error)

    def step_ended(self, key: str, step: StoredStep | None) -> None:
        """End the span of a step."""
        with self._lock:
            span = self._steps.pop(key, None)
        if span is None:
            return
        if step is not None:
            span.set_attribute("gnl.status", step.status)
            if step.tokens:
                span.set_attribute("gnl.tokens", step.tokens)
        span.end()

    def step_read_back(self, step: StoredStep) -> None:
        """Note in the attempt that a step was not run again."""
        self._attempt.add_event(
            "gnl.replayed",
            {
                "gnl.replayed": True,
                "gnl.step_key": step.key,
                "gnl.step_kind": step.kind,
                "gnl.name": step.name,
            },
        )

    def inside(self, key: str | None) -> contextlib.AbstractContextManager[object]:
        """Make a step's span, or the attempt's, the current one."""
        with self._lock:
            span = self._attempt if key is None else self._steps.get(key)
        if span is None:
            return contextlib.nullcontext()
        return trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def _context_of(run_id: str) -> SpanContext:
    """The trace that all attempts of a run share, in whatever process they are made."""
    digest = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).digest()
    return SpanContext(
        trace_id=int.from_bytes(digest[:16], "big") or 1,
        span_id=int.from_bytes(digest[16:24], "big") or 1,
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _fail(span: Span, error: BaseException) -> None:
    # The class only: the text may hold what the agent was told, which belongs into the journal and nowhere else.
    span.set_attribute("error.type", type_name(type(error)))
    span.set_status(Status(StatusCode.ERROR))
