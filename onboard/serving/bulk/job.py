"""Run a job that answers files: one worker runs the job, and all idle workers answer its shards.

The running worker plans and counts; the registry records which shards are open and who holds them. A shard is published
while its row is locked, so a process that has lost a shard cannot overwrite another's answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.requests import parse_requests
from onboard.domain.bulk import ShardClaim, ShardsStanding
from onboard.domain.job import LEASE_SECONDS, Job, JobState, Stage
from onboard.domain.prediction import Prediction
from onboard.domain.progress import Progress
from onboard.errors import ConflictError, FencedError, JobFailedError, OnboardError
from onboard.model.memory import memory_trouble_told
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services
from onboard.registry.shards import ShardRepository
from onboard.serving.bulk.answering import (
    ShardRows,
    answer_shard,
    answered_lines,
    begun_plan,
    write_plan,
)
from onboard.serving.bulk.inputs import Inputs, inputs_of, listing_digest
from onboard.serving.bulk.outputs import Outputs, outputs_at
from onboard.serving.bulk.plan import Plan, make_plan, read_plan, require_all_answerable, require_form
from onboard.serving.bulk.request import BulkRequest
from onboard.versions.describe import resolve

if TYPE_CHECKING:
    from onboard.serving.predictor import Predictor

_LOOK_SECONDS: Final = 0.5  # interval between checks for shards of other workers
_NOTE_SECONDS: Final = 10.0  # interval between lines of progress
_predictors: list[tuple[Services, Predictor]] = []  # the last predictor of this process, loaded once


class ShardWork:
    """Work of one process on the shards of a job.

    Args:
        inputs: inputs of the plan; `close` closes them.
        outputs: where the answers go.
    """

    def __init__(self, services: Services, job_id: str, plan: Plan, inputs: Inputs, outputs: Outputs) -> None:
        self.job_id, self._services = job_id, services
        self._plan, self._inputs, self._outputs = plan, inputs, outputs
        self._rows = ShardRows(plan, inputs)

    def answer(self, claim: ShardClaim, checkpoint: Callable[[], None]) -> None:
        """Answer a shard and publish it.

        Args:
            checkpoint: called before every batch; may raise to stop.

        Raises:
            FencedError: another process now has the shard.
            CancelledError: the job was cancelled.
            ConflictError, DatasetError: the shard's file has changed.
            OnboardError: a version cannot answer, or the store is unreachable.
        """
        shard = self._plan.shards[claim.number]
        predict = partial(_predict, self._services, checkpoint)
        lines = answered_lines(self._plan, self._rows.of(shard), predict, lambda _: checkpoint())
        with self._outputs.in_our_words():
            answer_shard(
                shard, self._plan, self._inputs, self._outputs, lines,
                attempt=claim.attempt, publish=partial(self._publish, claim, shard.name),
            )  # fmt: skip
        for _, predictor in _predictors:
            predictor.flush()

    def close(self) -> None:
        """Delete copies of inputs."""
        self._inputs.close()

    def _publish(self, claim: ShardClaim, name: str, part: Path) -> None:
        with self._services.database.write() as session:
            shards = ShardRepository(session)
            shards.hold(claim)
            self._outputs.publish(part, name)
            shards.finish(claim)


def open_work(services: Services, job_id: str) -> ShardWork:
    """Open the work of a job that another worker runs.

    Raises:
        ConflictError: there is no plan: the job has not begun, or its answers were deleted.
    """
    with services.database.read() as session:
        request = BulkRequest.of(JobRepository(session).get(job_id).spec)
    outputs = outputs_at(request.output)
    plan = read_plan(outputs)
    if plan is None:
        raise ConflictError("plan-missing", output=request.output)
    return ShardWork(services, job_id, plan, inputs_of(request.source), outputs)


@memory_trouble_told("this job")
def run_bulk(job: Job, services: Services, progress: Progress, lease_seconds: float = LEASE_SECONDS) -> None:
    """Run a claimed job to its last row.

    Args:
        lease_seconds: lease of its shards; the heartbeat extends those that this worker holds.

    Raises:
        OnboardError: the job failed; FencedError and CancelledError are passed on.
    """
    request, began = BulkRequest.of(job.spec), time.monotonic()
    outputs = outputs_at(request.output)
    progress.stage_started(Stage.CHECK)
    with contextlib.closing(inputs_of(request.source)) as inputs:
        plan = _planned(job, services, request, inputs, outputs, progress)
        planned = time.monotonic()
        summary = plan.summary()
        progress.stage_finished(Stage.CHECK, round(planned - began, 3), summary)
        progress.stage_started(Stage.PREDICT)
        work = ShardWork(services, job.id, plan, inputs, outputs)
        if not _answer_all(job, services, work, progress, lease_seconds):
            return  # the worker is draining: the job returns to its queue
    seconds = {"check": round(planned - began, 3), "predict": round(time.monotonic() - planned, 3)}
    outputs.clear()
    progress.stage_finished(Stage.PREDICT, seconds["predict"], {"rows": plan.rows, "bad_rows": plan.bad_rows})
    result = {"output": request.output, **summary, "seconds": seconds}
    with services.database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, JobState.SUCCEEDED, result=result)


def _planned(
    job: Job, services: Services, request: BulkRequest, inputs: Inputs, outputs: Outputs, progress: Progress
) -> Plan:
    """Return the plan of an earlier attempt, or make it and register its shards."""
    with outputs.in_our_words():
        _take_output(job, services, request)
        files = inputs.files()
        if listing_digest(files) != request.listing:
            raise ConflictError(
                "source-changed",
                source=request.source,
                files=request.files,
                size_bytes=request.size_bytes,
                files_now=len(files),
                size_bytes_now=sum(file.size_bytes for file in files),
            )
        begun = begun_plan(inputs, outputs, request.question, files)
        plan = begun
        if plan is None:
            plan = make_plan(request.question, inputs, files, progress.raise_if_cancelled_or_fenced)
            versions = resolve(services.database, *request.question.pinned)
            require_form(plan.pairs, {version.reference: version.pairs for version in versions})
        if request.refuses_bad_rows:
            require_all_answerable(plan)
        if begun is None:
            write_plan(plan, outputs)
        _write_shards(job, services, plan, outputs)
    return plan


def _take_output(job: Job, services: Services, request: BulkRequest) -> None:
    """Reserve the output until the job ends; its heartbeat extends the reservation. Raises ConflictError."""
    name = f"output {hashlib.sha256(request.output.encode()).hexdigest()}"
    with services.database.write() as session:
        leases = LeaseRepository(session)
        if not leases.take(name, job.id, LEASE_SECONDS):
            holder = leases.holder(name)
            raise ConflictError("output-taken", job=holder, output=request.output)  # fmt: skip


def _write_shards(job: Job, services: Services, plan: Plan, outputs: Outputs) -> None:
    with services.database.read() as session:
        known = ShardRepository(session).written(job.id)
    names = outputs.names()  # in this order: every counted shard is published
    present = {shard.number for shard in plan.shards if shard.name in names}
    with services.database.write() as session:
        ClaimRepository(session).hold(job.id, job.attempt)
        shards = ShardRepository(session)
        shards.add(job.id, [shard.rows for shard in plan.shards], present)
        shards.forget(job.id, known - present)


def _answer_all(job: Job, services: Services, work: ShardWork, progress: Progress, lease_seconds: float) -> bool:
    """Claim and answer shards until none is left; return False if the worker drains before that.

    Raises:
        OnboardError: a shard failed, here or elsewhere.
    """
    worker, telling = job.worker or "", _Telling(job, services, progress)
    while True:
        telling.checkpoint()
        with services.database.write() as session:
            claim = ShardRepository(session).claim(job.id, worker, job.worker_pid, lease_seconds)
        if claim is not None:
            with contextlib.suppress(FencedError):  # the shard was taken over; the next checkpoint checks the job
                _answered(services, work, claim, telling.checkpoint)
            continue
        standing = telling.look()
        if standing.shards_done == standing.shards:
            progress.note(standing.sentence)
            return True
        _require_possible(standing, job)
        with services.database.write() as session:
            if ShardRepository(session).leaves(worker):
                ClaimRepository(session).release(job.id, job.attempt)
                return False
        time.sleep(_LOOK_SECONDS)


def _answered(services: Services, work: ShardWork, claim: ShardClaim, checkpoint: Callable[[], None]) -> None:
    """Answer a shard; release it after an error so that it can be retried."""
    try:
        work.answer(claim, checkpoint)
    except BaseException:
        with contextlib.suppress(OnboardError), services.database.write() as session:
            ShardRepository(session).give_back(claim)
        raise


def _require_possible(standing: ShardsStanding, job: Job) -> None:
    if standing.error is not None:
        error = standing.error
        facts: dict[str, Any] = {key: error[key] for key in ("worker", "shard") if key in error}
        raise JobFailedError.reported(error.get("type", ""), error["message"], error.get("remedy", ""), facts)
    if standing.lost is not None:
        raise JobFailedError("shard-lost", shard=standing.lost, id=job.id)


class _Telling:
    """Logs the progress of the job now and then."""

    def __init__(self, job: Job, services: Services, progress: Progress) -> None:
        self._job, self._database, self._progress = job, services.database, progress
        self._told_at = time.monotonic()

    def checkpoint(self) -> None:
        """Raise if the attempt has to stop; log progress if the last line is old."""
        self._progress.raise_if_cancelled_or_fenced()
        if time.monotonic() - self._told_at >= _NOTE_SECONDS:
            self._told_at = time.monotonic()
            standing = self.look()
            left = standing.left.seconds
            self._progress.note(standing.sentence, left_seconds=None if left is None else round(left))

    def look(self) -> ShardsStanding:
        """Return the current progress."""
        with self._database.read() as session:
            standing = ShardRepository(session).standing(self._job.id, self._job.claimed_at, read_clock(session))
        assert standing is not None  # its shards were registered before
        return standing


def _predict(
    services: Services, checkpoint: Callable[[], None], inputs: Sequence[Mapping[str, Any]]
) -> Sequence[Prediction]:
    return _predictor(services).answer(parse_requests(inputs), checkpoint)


def _predictor(services: Services) -> Predictor:
    """Return the predictor, which is loaded once for all jobs of a worker process."""
    from onboard.serving.predictor import Predictor

    if not _predictors or _predictors[0][0] is not services:
        _predictors[:] = [(services, Predictor(services, record=True))]
    return _predictors[0][1]
