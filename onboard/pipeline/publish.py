"""Publish the outcome of a job as an immutable version, in one transaction with the end of the job.

A tuned hypernetwork becomes the head in the same transaction, if the head is still the one that the tuning started from
and every embedding in use was guarded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy.orm import Session

from onboard.contract.report import DatasetFacts, ExpectedGain, JobResult, LabelCount, LatestMove
from onboard.data.verbaliser import words_finding
from onboard.domain.dataset import label_key
from onboard.domain.job import Stage
from onboard.domain.label_scores import collapsed, label_scores
from onboard.domain.label_set import all_labels
from onboard.domain.names import LATEST, Reference
from onboard.domain.release import code_version
from onboard.domain.task import EmbeddingVersion, HypernetworkVersion, Task
from onboard.errors import ConflictError, NotFoundError, PreconditionFailedError
from onboard.hypernetworks.engines import store_hypernetwork
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.drift import training_of
from onboard.pipeline.evaluate import Judged
from onboard.pipeline.kept_features import keep_features, store_features
from onboard.pipeline.moved_head import HeadMovedError
from onboard.pipeline.novelty import novelty_of
from onboard.pipeline.outcome import JobOutcome
from onboard.pipeline.outputs import EvaluateOutput, ProbeOutput, TrainOutput
from onboard.pipeline.prior import drawn_towards
from onboard.pipeline.readout import lesson_of_job
from onboard.pipeline.stored_weights import stored
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.hypernetworks import hold_hypernetwork
from onboard.registry.in_use import InUseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository
from onboard.statistics.drift import Training
from onboard.statistics.novelty import Novelty
from onboard.storage.drift import training_facts
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.storage.lesson import LESSON, pack_lesson
from onboard.storage.novelty import novelty_facts, novelty_tensors
from onboard.storage.readout import pack_readout
from onboard.storage.weights import pack_weights, weights_digest
from onboard.versions.protected import newcomers

MOST_STEPS: Final = 100  # from a version's rows back to the rows that they were derived from


class _UnguardedError(Exception):
    """Versions came into use that the guard did not check; the transaction is rolled back."""

    def __init__(self, versions: Sequence[EmbeddingVersion]) -> None:
        super().__init__(", ".join(version.reference for version in versions))
        self.versions = versions


class NumberTakenError(Exception):
    """The version number in the stored file was taken by another job; the transaction is rolled back."""


@dataclass(frozen=True)
class Drafts:
    """Numbered drafts: the version, and its tuned hypernetwork, if any."""

    version: EmbeddingVersion
    hypernetwork: HypernetworkVersion | None


def publish(
    attempt: Attempt, probed: ProbeOutput, outcome: JobOutcome, judged: Judged, evaluated: EvaluateOutput
) -> Sequence[EmbeddingVersion]:
    """Store the tensors; then, fenced by the attempt, insert the version, move `latest` and the head, and end the job.

    Without a tuned hypernetwork, the version is pinned to the one that it was learned under, even if that is no longer
    the head.

    Args:
        attempt: the current attempt.
        probed: output of the probe stage.
        outcome: outcome of the job.
        judged: its predictions.
        evaluated: its evaluation.

    Returns:
        The versions in use that the guard of a tuned hypernetwork did not check. If there are any, nothing was
        published.

    Raises:
        FencedError: another attempt owns the job.
        HeadMovedError: the tuning started from a hypernetwork that is no longer the head, or the hypernetwork of the
            version was deleted.
    """
    started = time.monotonic()
    novelty = novelty_of(attempt.bench, attempt.checkpoint)
    training = training_of(attempt.bench, judged, novelty, attempt.checkpoint)
    draft = replace(draft_of(attempt, probed, outcome, evaluated), **_answers(attempt, judged, outcome))
    draft = drawn_towards(draft, outcome.trained)
    tuned = _stored_hypernetwork(attempt, outcome)
    while True:
        drafts = numbered(attempt, draft, tuned)
        with attempt.services.database.read() as session:
            present = AliasRepository(session).find(draft.task, LATEST) or 0
        evaluated = judged_against_present(attempt, judged, evaluated)  # only after reading `present`
        version = with_file(attempt, drafts, outcome.trained, novelty, training)
        features = store_features(attempt)
        attempt.seconds[Stage.PUBLISH.value] = round(time.monotonic() - started, 3)
        result = result_document(attempt, drafts.version, probed, outcome, judged, evaluated, novelty)
        try:
            _commit(attempt, replace(drafts, version=version), outcome, present, result, features)
        except _UnguardedError as met:
            return met.versions
        except (NumberTakenError, PreconditionFailedError):
            continue  # another job of this task published a version, or `latest` moved: try again
        return ()


def _stored_hypernetwork(attempt: Attempt, outcome: JobOutcome) -> HypernetworkVersion | None:
    """Store the tuned hypernetwork and return its version; None if nothing was tuned."""
    if outcome.tuned is None:
        return None
    verdict, tuning = (None if part is None else part.to_json() for part in (outcome.guard, outcome.tuning))
    facts = {"guard": verdict, "tuning": tuning}
    return store_hypernetwork(attempt.services, attempt.bench.base, outcome.tuned, attempt.job.id, **facts)


def _answers(attempt: Attempt, judged: Judged, outcome: JobOutcome) -> dict[str, Any]:
    """Return the digests of readout, out-of-fold predictions and lesson."""
    return {
        "readout": _stored_readout(attempt, judged, outcome), "out_of_fold": judged.out_of_fold(),
        "lesson": stored_lesson(attempt),
    }  # fmt: skip


def _stored_readout(attempt: Attempt, judged: Judged, outcome: JobOutcome) -> str | None:
    """Store the readout that complements the training; return its digest, or None without one or if it is
    everything.
    """
    readout = None if outcome.trained.is_readout else judged.together.readout
    return None if readout is None else attempt.services.store(pack_readout(readout, attempt.base.digest), "readout")


def stored_lesson(attempt: Attempt) -> str | None:
    """Store the task's lesson for the prior; return its digest, or None if it has none."""
    lesson = lesson_of_job(attempt.bench, attempt.checkpoint)
    return None if lesson is None else attempt.services.store(pack_lesson(lesson, attempt.base.digest), LESSON)


def numbered(attempt: Attempt, draft: EmbeddingVersion, tuned: HypernetworkVersion | None) -> Drafts:
    """Return the drafts with the next free numbers, which the transaction checks again."""
    with attempt.services.database.read() as session:
        version = replace(draft, version=VersionRepository(session).next_number(draft.task))
        if tuned is None:
            return Drafts(version, None)
        line = BaseRepository(session).hypernetworks(attempt.base.digest)
    tuned = replace(tuned, version=max(hypernetwork.version for hypernetwork in line) + 1)
    return Drafts(replace(version, hypernetwork_version=tuned.version), tuned)


def with_file(
    attempt: Attempt, drafts: Drafts, trained: TrainOutput, novelty: Novelty | None, training: Training | None
) -> EmbeddingVersion:
    """Return the drafted version with its file, which contains its number and its hypernetwork's digest."""
    hypernetwork = drafts.hypernetwork
    if hypernetwork is None:
        with attempt.services.database.read() as session:
            hypernetwork = BaseRepository(session).hypernetwork(attempt.base.digest, attempt.base.head)
    facts = {
        **embedding_facts(drafts.version, hypernetwork.digest), **novelty_facts(novelty), **training_facts(training),
    }  # fmt: skip
    known = novelty_tensors(novelty)
    if trained.has_embedding:
        content = pack_embedding(trained.z, facts, known)
        return replace(drafts.version, artifact=attempt.services.store(content, "embedding"))
    tensors, described = stored(trained)
    packed = pack_weights({**tensors, **known}, {**facts, **described})
    return replace(drafts.version, artifact=attempt.services.store(packed, "weights"))


def digest_of(trained: TrainOutput) -> str:
    """Return the digest of the version's tensors alone."""
    return embedding_digest(trained.z) if trained.has_embedding else weights_digest(stored(trained)[0])


def judged_against_present(attempt: Attempt, judged: Judged, evaluated: EvaluateOutput) -> EvaluateOutput:
    """Compare with the version that `latest` names now, which may have changed since the evaluation."""
    with attempt.services.database.read() as session:
        try:
            version = VersionRepository(session).resolve(Reference(attempt.job.spec.task))
        except NotFoundError:
            version = None
        overtaken = version is not None and _made_of(session, version, attempt.job.id)
    present = None if version is None else version.reference
    if overtaken:
        reason = f"{present} was made of these rows and later changes."
        latest = LatestMove(alias=LATEST, moved=False, reason=reason, comparison=None)
        return replace(evaluated, latest=latest)
    if evaluated.latest.present == present:
        return evaluated
    return replace(evaluated, latest=judged.against_present(attempt.services, evaluated.weak))


def _made_of(session: Session, version: EmbeddingVersion, job: str) -> bool:
    """Return whether a version's rows derive from those of this job, in any number of steps."""
    jobs, change = JobRepository(session), version.change
    for _ in range(MOST_STEPS):
        if change is None or change["job"] is None:
            return False
        if change["job"] == job:
            return version.job != job
        try:
            change = jobs.get(change["job"]).spec.change
        except NotFoundError:
            return False
    return False


def task_of(attempt: Attempt, draft: EmbeddingVersion) -> Task:
    """Return the task as it will be after publication."""
    dataset = attempt.bench.dataset
    return Task(draft.task, dataset.kind, dataset.labels, draft.words, dataset.low, dataset.high)


def _commit(
    attempt: Attempt, drafts: Drafts, outcome: JobOutcome, present: int, result: dict[str, Any], features: str | None
) -> None:
    """Write everything in one transaction.

    Raises:
        NumberTakenError: the version's number was taken by another job.
        PreconditionFailedError: `latest` is to move but no longer names `present`.
        _UnguardedError, HeadMovedError: see `publish`.
    """
    spec, moved = attempt.job.spec, bool(result["latest"]["moved"])
    draft = drafts.version
    task = task_of(attempt, draft)
    with attempt.services.database.write() as session:
        ClaimRepository(session).append(
            attempt.job.id, attempt.job.attempt, "stage_finished", "publish finished", stage=Stage.PUBLISH,
            seconds=attempt.seconds[Stage.PUBLISH.value],
            numbers={"version": draft.version, "latest": None if spec.replaces else moved},  # the replacement decides
        )  # fmt: skip
        if drafts.hypernetwork is not None:
            _advance(session, attempt, drafts.hypernetwork, outcome)
        else:
            hold(session, attempt)
        published = VersionRepository(session).publish(
            draft,
            task,
            attempt=attempt.job.attempt,
            result=result,
            move_latest=moved,
            present=present,
            new_labels=spec.new_labels,
        )
        if published.version != draft.version:
            raise NumberTakenError
        keep_features(session, attempt, features)


def _advance(session: Session, attempt: Attempt, draft: HypernetworkVersion, outcome: JobOutcome) -> None:
    """Make the tuned hypernetwork the head. The base is locked, so no other version can come into use meanwhile."""
    bases = BaseRepository(session)
    try:
        added = bases.advance(draft, expected_head=attempt.base.head)
    except ConflictError as error:
        raise HeadMovedError(attempt.base.head, bases.get(attempt.base.digest).head) from error
    if added.version != draft.version:
        raise NumberTakenError
    versions = InUseRepository(session).versions(attempt.base.digest)
    met = newcomers(versions, outcome.considered, attempt.job.spec.task, outcome.line)
    if met:
        raise _UnguardedError(met)


def hold(session: Session, attempt: Attempt) -> None:
    """Lock the head until the version is published, so that no guard misses it."""
    head = InUseRepository(session).hold_head(attempt.base.digest)
    try:
        hold_hypernetwork(session, attempt.base.digest, attempt.base.head)
    except ConflictError as error:
        raise HeadMovedError(attempt.base.head, head) from error


def draft_of(attempt: Attempt, probed: ProbeOutput, outcome: JobOutcome, evaluated: EvaluateOutput) -> EmbeddingVersion:
    """Return the version without file and number."""
    spec, dataset = attempt.job.spec, attempt.bench.dataset
    return EmbeddingVersion(
        task=spec.task,
        kind="onboarded",
        artifact="",
        embedding_digest=digest_of(outcome.trained),
        backbone_digest=attempt.base.backbone_digest,
        base_digest=attempt.base.digest,
        hypernetwork_version=attempt.base.head,
        dataset_digest=spec.dataset,
        parent=probed.init.generated_by or probed.init.chosen or "",
        fingerprint=probed.fingerprint or None,
        mixed_from=probed.init.weights or {},
        task_kind=dataset.kind,
        labels=dataset.labels,
        words=probed.words,
        code_version=code_version(),
        method=outcome.trained.method,
        seeds=(spec.seed,),
        held_out=attempt.bench.held_out,
        low=dataset.low,
        high=dataset.high,
        pairs=attempt.bench.pairs,
        temperature=1.0 if evaluated.calibration is None else evaluated.calibration.temperature,
        metrics=evaluated.metrics,
        weak=evaluated.weak,
        change=spec.change,
        job=attempt.job.id,
    )


def result_document(
    attempt: Attempt,
    draft: EmbeddingVersion,
    probed: ProbeOutput,
    outcome: JobOutcome,
    judged: Judged,
    evaluated: EvaluateOutput,
    novelty: Novelty | None,
) -> dict[str, Any]:
    """Return the job's result (`JobResult`); its version number is added in the transaction that publishes it."""
    spec, trained = attempt.job.spec, outcome.trained
    return JobResult(
        job=attempt.job.id,
        state="succeeded",
        task=spec.task,
        version=None,
        change=spec.change,
        embedding_digest=draft.embedding_digest,
        hypernetwork_version=draft.hypernetwork_version,
        init=probed.init,
        metrics=evaluated.metrics,
        guard=outcome.guard,
        seconds=attempt.seconds,
        metric=evaluated.metric,
        validation_kind=evaluated.validation_kind,
        validation_reason=evaluated.validation_reason,
        baselines=evaluated.baselines,
        weak=evaluated.weak,
        weak_reason=evaluated.weak_reason,
        latest=evaluated.latest,
        confusion=evaluated.confusion,
        dataset=_dataset(attempt, draft, trained),
        training=trained.training,
        tuning=outcome.tuning,
        more_rows=_more_rows(trained, evaluated),
        label_next=trained.label_next,
        halved=tuple(
            halving.model_copy(update={"stage": stage})
            for stage, halvings in attempt.halved.items()
            for halving in halvings
        ),
        pins={
            "backbone": draft.backbone_digest,
            "base": draft.base_digest,
            "hypernetwork_version": draft.hypernetwork_version,
            "dataset": draft.dataset_digest,
            "parent": draft.parent,
            "seeds": list(draft.seeds),
            "code": draft.code_version,
        },
        calibration=evaluated.calibration,
        **novelty_facts(novelty),
        methods=outcome.methods,
        provisional=outcome.provisional,
        prior=outcome.trained.prior,
        memory_bytes=None if attempt.peak is None else attempt.peak.most_bytes,
        readout=judged.together.facts,
    ).to_json()


def _more_rows(trained: TrainOutput, evaluated: EvaluateOutput) -> ExpectedGain | None:
    """Return the expected gain from more rows; unknown if the version answers every text alike."""
    metrics = evaluated.metrics.get("test") or evaluated.metrics.get("validation")
    if trained.more_rows is None or trained.more_rows.gain is None or not collapsed(label_scores(metrics)):
        return trained.more_rows
    return trained.more_rows.without_gain(
        "The version gives every text the same answer, so the curve cannot be extrapolated."
    )


def _dataset(attempt: Attempt, draft: EmbeddingVersion, trained: TrainOutput) -> DatasetFacts:
    dataset, report = attempt.bench.dataset, attempt.job.spec.options.get("dataset_report", {})
    counts: dict[str, int] = {}
    for label in all_labels(dataset.kind, dataset.train):
        counts[label_key(label)] = counts.get(label_key(label), 0) + 1
    warnings = [finding for finding in report.get("warnings", []) if finding["code"] != "label_words"]
    silent = any(finding["code"] == "labels_say_little" for finding in warnings)  # says more about the same labels
    words = words_finding(dataset.labels, attempt.bench.words) if dataset.labels and not silent else None
    return DatasetFacts(
        name=draft.task,
        kind=dataset.kind,
        pairs=attempt.bench.pairs,
        rows={"train": len(dataset.train), "validation": len(dataset.validation), "test": len(dataset.test)},
        labels=tuple(
            LabelCount(label=label, word=word, count=counts.get(label_key(label), 0))
            for label, word in zip(dataset.labels, draft.words, strict=False)
        ),
        digest=draft.dataset_digest,
        warnings=(*warnings, *([words.to_document()] if words else []), *trained.warnings),
    )
