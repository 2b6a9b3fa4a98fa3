"""An attempt at a job as a trace: a span of the attempt, and below it one of every stage that ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onboard import __version__
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.errors import OnboardError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer


@contextmanager
def traced(provider: TracerProvider | None, job: Job, progress: Progress) -> Iterator[Progress]:
    """The progress to hand to the pipeline; what the block raises ends the spans with its code.

    Args:
        provider: None leaves everything as it is.
        job: as it was claimed.
        progress: where the calls go on to.
    """
    if provider is None:
        yield progress
        return
    tracer = provider.get_tracer("onboard", __version__)
    facts: dict[str, str | int] = {
        "onboard.job": job.id, "onboard.task": job.spec.task, "onboard.attempt": job.attempt,
        "onboard.queue": job.queue, "onboard.worker": job.worker or "",
    }  # fmt: skip
    with tracer.start_as_current_span(
        "job", attributes=facts, record_exception=False, set_status_on_exception=False
    ) as span:
        stages = TracedProgress(tracer, progress)
        try:
            yield stages
        except BaseException as error:
            stages.end(error)
            _fail(span, error)
            raise
        stages.end()


class TracedProgress:
    """A Progress that records stages as spans; a stage without an end lasts until the next, or the attempt's end.

    Args:
        tracer: makes the spans, below the present one.
        progress: where the calls go on to.
    """

    def __init__(self, tracer: Tracer, progress: Progress) -> None:
        self._tracer = tracer
        self._progress = progress
        self._span: Span | None = None

    def stage_started(self, stage: Stage) -> None:
        """The job enters a stage."""
        self.end()
        self._progress.stage_started(stage)
        self._span = self._tracer.start_span(stage.value)

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """The stage ended; its plain numbers and words stand in the span."""
        if self._span is not None:
            plain = {name: value for name, value in numbers.items() if isinstance(value, str | bool | int | float)}
            self._span.set_attributes({f"onboard.{name}": value for name, value in plain.items()})
        self.end()
        self._progress.stage_finished(stage, seconds, numbers)

    def note(self, message: str, **numbers: Any) -> None:
        """One line of progress inside the present stage; not part of the trace."""
        self._progress.note(message, **numbers)

    def raise_if_cancelled_or_fenced(self) -> None:
        """Raise CancelledError or FencedError where the attempt is to stop."""
        self._progress.raise_if_cancelled_or_fenced()

    def end(self, error: BaseException | None = None) -> None:
        """End the span of the present stage, if there is one."""
        if self._span is not None:
            if error is not None:
                _fail(self._span, error)
            self._span.end()
            self._span = None


def _fail(span: Span, error: BaseException) -> None:
    """Its code, or its class: a message may quote a row."""
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR, error.code if isinstance(error, OnboardError) else type(error).__name__)
