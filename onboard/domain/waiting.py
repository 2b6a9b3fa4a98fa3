"""Why a queued job waits, as numbers and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onboard.domain.counting import counted
from onboard.domain.moment import seconds_text
from onboard.domain.worker import Trouble


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """A job that waits for its next attempt.

    Args:
        at: epoch seconds from which it may be claimed.
        in_seconds: time until then.
        attempt: the number of the next attempt, out of `of`.
        counted: whether that attempt counts; it does not if a resource was merely in use.
    """

    at: float
    in_seconds: float
    attempt: int
    of: int
    error: str
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a queued job waits.

    Args:
        ahead: jobs of its queue that are claimed before it.
        paused: whether the queue is paused.
        live_workers: live workers that take jobs of the queue, without draining and outdated ones.
        outdated_workers: live workers of the queue with a release that cannot run the job.
        retry: set while it waits for its next attempt.
        starts_in_seconds: a forecast; None if unknown.
        lost_worker: the unresponsive worker that had it; None if it was never claimed or was handed back.
        faulty_worker: a worker of the queue that cannot take jobs, with the reason, if there is no other.
    """

    queue: str
    ahead: int
    paused: bool
    live_workers: int
    retry: NextAttempt | None = None
    starts_in_seconds: float | None = None
    outdated_workers: int = 0
    lost_worker: str | None = None
    faulty_worker: tuple[str, Trouble] | None = None

    @property
    def message(self) -> str:
        """All reasons in one line: "3 ahead, no worker on gpu-large"."""
        return ", ".join(self._reasons())

    @property
    def remedy(self) -> str:
        """The command that ends the wait; empty if waiting does."""
        if self.paused:
            return f"onboard queue resume {self.queue}"
        if self.outdated_workers and not self.live_workers:
            return "Install this version of onboard where the workers are."
        if self.faulty_worker and not self.live_workers:
            return self.faulty_worker[1].remedy
        return "" if self.live_workers else f"onboard worker --queue {self.queue}"

    def _reasons(self) -> Iterator[str]:
        if self.lost_worker:
            yield f"worker {self.lost_worker}, which had it, stopped responding"
        yield f"{self.ahead:,} ahead" if self.ahead else "next in line"
        if self.paused:
            yield f"the queue {self.queue} is paused"
        if not self.live_workers:
            newer = " has the release that submitted it, or a later one" if self.outdated_workers else ""
            yield f"no worker on {self.queue}{newer}"
            if self.faulty_worker:
                name, trouble = self.faulty_worker
                yield f"{name} takes no jobs: {trouble.message.rstrip('.')}"
        if (retry := self.retry) is not None:
            when = seconds_text(retry.in_seconds)
            tries = f"tries again in {when} (attempt {retry.attempt} of {retry.of}) after: {retry.error}"
            yield tries if retry.counted else f"checks again in {when}: {retry.error}"
        elif self.live_workers and not self.paused:
            yield self._start()

    def _start(self) -> str:
        workers = counted(self.live_workers, "worker")
        if self.starts_in_seconds is None:
            return f"{workers} on {self.queue}, start not known"
        if self.starts_in_seconds == 0:
            return f"a worker on {self.queue} is free"
        return f"{workers} on {self.queue}, starts in about {seconds_text(self.starts_in_seconds)}"
