"""One attempt at a job. Each stage stores its output, so the next attempt continues where this one stopped.

An output is stored under a key of everything that it depends on: job, request, base, head, code, and the outputs of the
stages before it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from onboard.contract.report import HalvedBatch
from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.domain.release import code_version
from onboard.domain.task import BaseRecord
from onboard.errors import DamagedError, NotFoundError
from onboard.model.peak import PeakMemory
from onboard.pipeline.course import Course
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import StageOutput
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository

T = TypeVar("T", bound=StageOutput)


@dataclass
class Attempt:
    """One attempt at a job: its inputs, and the outputs of the stages so far.

    Args:
        base: the base as registered when the attempt began; the task is learned under its head.
        seconds: duration per stage, in this attempt or in the one that stored the output.
        halved: batch sizes that were halved because GPU memory ran out, by stage.
        peak: peak GPU memory since the check stage.
    """

    job: Job
    services: Services
    progress: Progress
    base: BaseRecord
    bench: Workbench
    seconds: dict[str, float] = field(default_factory=dict)
    halved: dict[str, list[HalvedBatch]] = field(default_factory=dict)
    peak: PeakMemory | None = None
    _halved_now: list[HalvedBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peak = self.peak or PeakMemory(self.bench.engine.device)
        self._hear_of_halving()

    def _hear_of_halving(self) -> None:
        for at_once in (self.bench.trained_at_once, self.bench.scored_at_once):
            at_once.on_halved = self._tell_of_halving

    def as_of(self, base: BaseRecord, bench: Workbench) -> Attempt:
        """Return the same attempt with another record of the base; the stages still run in this attempt."""
        other = replace(self, base=base, bench=bench)
        self._hear_of_halving()
        return other

    def checkpoint(self) -> None:
        """Raise CancelledError or FencedError if the attempt has to stop. Cheap."""
        self.progress.raise_if_cancelled_or_fenced()

    def course(self, total: float) -> Course:
        """Return the progress of a stage of `total` units; it is written to the log."""
        return Course(self.progress.note, self.checkpoint, total)

    def stage(
        self,
        stage: Stage,
        read: Callable[[Mapping[str, Any]], T],
        work: Callable[[], T],
        *built_on: StageOutput | None,
    ) -> T:
        """Return the stored output of a stage, or run the stage and store its output.

        Args:
            stage: the stage.
            read: the output's `from_json`; if it rejects the stored output, the stage runs again.
            work: runs the stage. If its output names an artifact, a later attempt reuses it only while that artifact
                exists.
            built_on: outputs of earlier stages that this stage uses; None for a stage that did not run. A stored output
                is ignored if one of them has changed.
        """
        self.checkpoint()
        key = self._key(stage, built_on)
        output = self._stored(stage, read, key)
        if output is not None:
            self.progress.note(f"{stage.value}: resumed from the output of an earlier attempt")
            return output
        self.progress.stage_started(stage)
        self._hear_of_halving()
        started, self._halved_now = time.monotonic(), []
        output = work()
        seconds, self.halved[stage.value] = round(time.monotonic() - started, 3), self._halved_now
        self.seconds[stage.value] = seconds
        self.checkpoint()
        document = {**output.to_json(), "halved": [halved.to_json() for halved in self._halved_now], "seconds": seconds}
        artifact = self.services.store(json.dumps(document).encode(), "stage_output")
        with self.services.database.write() as session:
            ClaimRepository(session).hold(self.job.id, self.job.attempt)  # without it the artifact may be deleted
            StageOutputRepository(session).put(key, self.job.id, stage, artifact)
        self.progress.stage_finished(stage, seconds, output.numbers)
        return output

    def _stored(self, stage: Stage, read: Callable[[Mapping[str, Any]], T], key: str) -> T | None:
        with self.services.database.read() as session:
            artifact = StageOutputRepository(session).get(key)
        if artifact is None:
            return None
        try:
            document = dict(json.loads(self.services.artifacts.get(artifact)))
            seconds, halved = document.pop("seconds"), document.pop("halved")
            output = read(document)
            halved = [HalvedBatch.model_validate(batch) for batch in halved]
            if document.get("artifact"):
                self.services.artifacts.get(document["artifact"])
        except (NotFoundError, DamagedError, KeyError, TypeError, ValueError):
            return None  # deleted, damaged or in an older form: run the stage again
        self.seconds[stage.value], self.halved[stage.value] = seconds, halved
        return output

    def _key(self, stage: Stage, built_on: Sequence[StageOutput | None]) -> str:
        depends = [
            self.job.id, stage.value, self.job.spec.to_json(), self.base.digest, self.base.head, code_version(),
            *map(_digest, built_on),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()

    def _tell_of_halving(self, rows: int, fewer: int) -> None:
        self._halved_now.append(HalvedBatch(rows=rows, rows_at_once=fewer))
        self.progress.note(
            f"the GPU's memory is too small for {rows} rows at once: continuing with {fewer}", rows_at_once=fewer
        )


def _digest(output: StageOutput | None) -> str | None:
    """Digest an output by its content: reading it back or recomputing the same output does not change it."""
    return None if output is None else hashlib.sha256(json.dumps(output.to_json()).encode()).hexdigest()
