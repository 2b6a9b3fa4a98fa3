"""The first version of a job: a readout alone, published as provisional while its embedding is being learned.

Rows that neither was trained on decide whether the job publishes a second version or confirms this one as final. A job
that rebuilds versions without a deleted task publishes only the final one, so that it replaces them once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from onboard.contract.report import LatestMove, ProvisionalFacts
from onboard.domain.job import Stage
from onboard.domain.methods import LINEAR
from onboard.domain.names import LATEST
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
from onboard.errors import InputError, PreconditionFailedError
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.drift import training_of
from onboard.pipeline.evaluate import Judged, judge, judge_briefly
from onboard.pipeline.kept_features import keep_features, store_features
from onboard.pipeline.label_next import labelling
from onboard.pipeline.novelty import novelty_of
from onboard.pipeline.outcome import JobOutcome
from onboard.pipeline.outputs import EvaluateOutput, FirstOutput, ProbeOutput, TrainOutput
from onboard.pipeline.own_start import own_start
from onboard.pipeline.own_weights import train_own
from onboard.pipeline.prior import drawn_towards
from onboard.pipeline.publish import (
    NumberTakenError,
    digest_of,
    draft_of,
    hold,
    judged_against_present,
    numbered,
    publish,
    result_document,
    stored_lesson,
    task_of,
    with_file,
)
from onboard.registry.aliases import AliasRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.versions import VersionRepository
from onboard.statistics.probabilities import blend, row_losses
from onboard.statistics.student import student_interval

_NO_EVIDENCE: Final = "There are no held-out rows to compare the two; on other tasks the embedding helps."
_LATEST_BEFORE: Final = "`latest` was decided when the provisional version was published."


@dataclass(frozen=True)
class First:
    """The readout of a job.

    Args:
        attempt: the same attempt, under the first head.
        probed: supplies the words.
        trained: the readout and its out-of-fold predictions.
        judged: its predictions.
        output: output of the stage.
        version: the version as published, by this attempt or an earlier one; None for a job that rebuilds versions.
    """

    attempt: Attempt
    probed: ProbeOutput
    trained: TrainOutput
    judged: Judged
    output: FirstOutput
    version: EmbeddingVersion | None


def first_version(attempt: Attempt) -> First | None:
    """Fit the readout, and publish it as provisional, once per job; None if it is not wanted or the rows allow none.

    Raises:
        InputError: the rows allow no readout, and nothing else is wanted.
        FencedError: another attempt owns the job.
    """
    spec = attempt.job.spec
    if not spec.provisional:
        return None
    base = replace(attempt.base, head=FIRST_HYPERNETWORK)
    under_first_head = attempt.as_of(base, replace(attempt.bench, head=FIRST_HYPERNETWORK, known_rows=None))
    probed = own_start(under_first_head, LINEAR)
    under_first_head.bench = under_first_head.bench.without_witnesses(probed.known)
    output = attempt.stage(Stage.READOUT, FirstOutput.from_json, partial(_fitted, under_first_head, probed))
    if output.trained is None or output.evaluated is None:
        return None
    judged = Judged(under_first_head.bench, spec, probed, output.trained, under_first_head.progress)
    version = None
    if not spec.replaces:
        version = _published(under_first_head, probed, output.trained, judged, output.evaluated)
    return First(under_first_head, probed, output.trained, judged, output, version)


def _fitted(attempt: Attempt, probed: ProbeOutput) -> FirstOutput:
    spec = attempt.job.spec
    try:
        trained = train_own(attempt, probed, LINEAR, {})
    except InputError as error:
        if spec.fast:
            raise
        return FirstOutput(None, None, {"reason": error.message})
    evaluated = judge_briefly(Judged(attempt.bench, spec, probed, trained, attempt.progress), attempt.services)
    return FirstOutput(trained, evaluated, evaluated.numbers)


def _published(
    attempt: Attempt, probed: ProbeOutput, trained: TrainOutput, judged: Judged, evaluated: EvaluateOutput
) -> EmbeddingVersion:
    """Return the job's provisional version; publish it unless an earlier attempt did."""
    with attempt.services.database.read() as session:
        earlier = VersionRepository(session).provisional_of(attempt.job.id)
    if earlier is not None:
        attempt.progress.note(f"{earlier.reference} was published as provisional by an earlier attempt")
        return earlier
    novelty = novelty_of(attempt.bench, attempt.checkpoint)
    training = training_of(attempt.bench, judged, novelty, attempt.checkpoint)
    outcome = JobOutcome(attempt.bench, trained)
    draft = replace(
        draft_of(attempt, probed, outcome, evaluated), provisional=True, out_of_fold=judged.out_of_fold(),
        lesson=stored_lesson(attempt),
    )  # fmt: skip
    draft = drawn_towards(draft, trained)
    while True:
        drafts = numbered(attempt, draft, None)
        with attempt.services.database.read() as session:
            present = AliasRepository(session).find(draft.task, LATEST) or 0
        moves = bool(judged_against_present(attempt, judged, evaluated).latest.moved)
        version = with_file(attempt, drafts, trained, novelty, training)
        features = store_features(attempt)
        try:
            return _commit(attempt, version, moves, present, features)
        except (NumberTakenError, PreconditionFailedError):
            continue  # another job of this task published a version, or `latest` moved: try again


def _commit(
    attempt: Attempt, draft: EmbeddingVersion, moves: bool, present: int, features: str | None
) -> EmbeddingVersion:
    task = task_of(attempt, draft)
    with attempt.services.database.write() as session:
        hold(session, attempt)
        published = VersionRepository(session).publish_provisional(
            draft, task, attempt=attempt.job.attempt, move_latest=moves, present=present,
            new_labels=attempt.job.spec.new_labels,
        )  # fmt: skip
        if published.version != draft.version:
            raise NumberTakenError
        keep_features(session, attempt, features)
    return published


def compared(first: First, judged: Judged, outcome: JobOutcome) -> ProvisionalFacts:
    """Decide whether the outcome of a job or its readout is the final version.

    The rows that chose the readout's share compare the two, as they trained neither; the smaller loss wins. A kept
    tuning, and a method that `--method auto` chose, were already measured on them. With `--tune-hypernetwork always`
    the second version is always published.

    Args:
        first: the readout.
        judged: predictions of the outcome.
        outcome: the outcome.
    """
    if outcome.trained.is_readout:
        return decided(first, "The rows favor the readout alone.", confirmed=True)
    if outcome.methods is not None:
        return decided(first, outcome.methods.reason, confirmed=False)
    if outcome.tuned is not None or judged.spec.tune_hypernetwork == "always":
        return decided(first, "It was learned together with the hypernetwork.", confirmed=False)
    measured = judged.together.answered
    share = 0.0 if judged.together.readout is None else judged.together.readout.share
    if measured is None or len(measured.targets) < 2:
        return decided(first, _NO_EVIDENCE, confirmed=False)
    both = blend(measured.trained, measured.readout, share) if share else measured.trained
    before, after = (row_losses(answers, measured.targets) for answers in (measured.readout, both))
    low, high = student_interval(after - before)
    confirmed, rows = not after.mean() < before.mean(), len(measured.targets)
    which = "not better" if confirmed else "better"
    reason = (
        f"On {rows} rows left out the version with an embedding is {which} than the readout alone: its loss is "
        f"{after.mean():.3f} nats, that of the readout {before.mean():.3f}."
    )
    losses = {"before": float(before.mean()), "after": float(after.mean()), "low": low, "high": high}
    return decided(first, reason, confirmed=confirmed).model_copy(update={**losses, "rows": rows})


def decided(first: First, reason: str, *, confirmed: bool) -> ProvisionalFacts:
    """Return the facts of the provisional version: whether it is final, and why."""
    number = None if first.version is None else first.version.version
    return ProvisionalFacts(version=number, start=None, confirmed=confirmed, reason=reason)


def confirm(first: First, probed: ProbeOutput, outcome: JobOutcome, facts: ProvisionalFacts) -> None:
    """Make the readout the final version, with a report, and end the job.

    It is published now if it was not published as provisional, or was deleted meanwhile.

    Args:
        first: the readout.
        probed: start of the embedding's training, which made no better version.
        outcome: outcome of that training; with `--fast` the readout itself.
        facts: why the version is confirmed.

    Raises:
        FencedError: another attempt owns the job.
    """
    attempt = first.attempt
    trained = replace(first.trained, label_next=labelling(attempt, attempt.bench, first.probed.words, first.trained))
    # Warnings about the rows from the embedding's training apply to the readout as well.
    if outcome.trained is not first.trained:
        trained = replace(trained, more_rows=outcome.trained.more_rows, warnings=outcome.trained.warnings)
        facts = facts.model_copy(update={"start": probed.init.chosen})
    confirmed = replace(
        outcome, bench=attempt.bench, trained=trained, tuned=None, considered=frozenset(), provisional=facts
    )
    work = partial(judge, first.judged, attempt.services, confirmed.also_chosen)
    evaluated = attempt.stage(Stage.EVALUATE, EvaluateOutput.from_json, work, first.output)
    attempt.progress.stage_started(Stage.PUBLISH)
    attempt.checkpoint()
    if first.version is None or not _confirmed(first, first.version, confirmed, evaluated):
        publish(attempt, first.probed, confirmed, first.judged, evaluated)


def _confirmed(first: First, version: EmbeddingVersion, outcome: JobOutcome, evaluated: EvaluateOutput) -> bool:
    """Confirm the version; return False if it no longer exists."""
    attempt, started = first.attempt, time.monotonic()
    novelty = novelty_of(attempt.bench, attempt.checkpoint)
    evaluated = _as_published(first, version, evaluated)
    attempt.seconds[Stage.PUBLISH.value] = round(time.monotonic() - started, 3)
    result = result_document(attempt, version, first.probed, outcome, first.judged, evaluated, novelty)
    numbers = {"version": version.version, "latest": bool(result["latest"]["moved"])}
    with attempt.services.database.write() as session:
        if VersionRepository(session).provisional_of(attempt.job.id) is None:
            return False
        ClaimRepository(session).append(
            attempt.job.id, attempt.job.attempt, "stage_finished", "publish finished", stage=Stage.PUBLISH,
            seconds=attempt.seconds[Stage.PUBLISH.value], numbers=numbers,
        )  # fmt: skip
        return VersionRepository(session).confirm(attempt.job.id, attempt.job.attempt, result) is not None


def _as_published(first: First, version: EmbeddingVersion, evaluated: EvaluateOutput) -> EvaluateOutput:
    """Return the evaluation of the version as published: whether `latest` moved, even by an earlier release."""
    with first.attempt.services.database.read() as session:
        moved = any(move.version == version.version for move in AliasRepository(session).history(version.task, LATEST))
    latest = first.output.evaluated.latest if first.output.evaluated else evaluated.latest
    if latest.moved != moved:
        latest = LatestMove(alias=LATEST, moved=moved, reason=_LATEST_BEFORE, comparison=None)
    if version.embedding_digest != digest_of(first.trained):
        evaluated = replace(evaluated, metrics=version.metrics, weak=version.weak)
    return replace(evaluated, latest=latest)
