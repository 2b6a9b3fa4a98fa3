"""The guard stage of a job: accept as much of the proposed tuning step as costs no earlier task anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onboard.contract.guard import GuardVerdict
from onboard.domain.task import EmbeddingVersion
from onboard.guard import GuardSettings, Step, clear, guard
from onboard.guard.canaries import canary_ids
from onboard.guard.risk import at_risk
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import Protection
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.evidence import fitted_rows, held_rows, judged_loss
from onboard.pipeline.label_next import labelling
from onboard.pipeline.material import Workbench
from onboard.pipeline.outcome import JobOutcome, taken, tuned_weights
from onboard.pipeline.outputs import GuardOutput, ProbeOutput, ProposedStep, TrainOutput
from onboard.pipeline.tune import folds_after
from onboard.registry.bases import BaseRepository
from onboard.registry.in_use import InUseRepository
from onboard.versions.protected import identity, late, protected, protected_task, with_evidence
from onboard.versions.trained_rows import TrainedRows


def guard_stage(
    attempt: Attempt, probed: ProbeOutput, trained: TrainOutput, tuned: ProposedStep, most: float = 1.0
) -> GuardOutput:
    """Find the share of the step that harms no earlier task, and check whether the new task benefits from it.

    Args:
        attempt: the current attempt, under the head that the step starts from.
        probed, trained, tuned: outputs of those stages.
        most: the largest share to try.
    """
    versions = protected(attempt.services, attempt.bench.base, attempt.base, attempt.job.spec.task)
    settings = GuardSettings()
    settings = replace(settings, shares=tuple(share for share in settings.shares if share <= most))
    judgement = _judged(attempt, tuned_weights(attempt, tuned), versions, tuned.z, settings)
    output = GuardOutput(
        guard=judgement,
        share=judgement.share,
        considered=tuple(identity(version) for version in versions),
        tuning=tuned.tuning.model_copy(update={"reason": judgement.reason}),
        folds=None,
        label_next=None,
        numbers={"verdict": judgement.verdict, "share": judgement.share, "tasks": len(judgement.tasks)},
    )
    if not judgement.accepted:
        return output
    z, hypernetwork = taken(attempt, trained, tuned, judgement.share)
    bench = replace(attempt.bench, engine=attempt.bench.engine.under(hypernetwork))
    after = replace(trained, z=z, folds=folds_after(trained, tuned, judgement.share))
    gained = _gained(attempt, bench, probed.words, (trained, after), tuned, judgement.share)
    return replace(
        output,
        tuning=tuned.tuning.model_copy(update=gained),
        folds=after.folds,
        label_next=labelling(attempt, bench, probed.words, after) if gained["kept"] else None,
    )


def _gained(
    attempt: Attempt,
    bench: Workbench,
    words: Sequence[str],
    embeddings: tuple[TrainOutput, TrainOutput],
    tuned: ProposedStep,
    share: float,
) -> dict[str, Any]:
    """Compare the new task's published loss before and after the step; return both and whether to keep the step.

    Uses rows that neither was trained on, if there are any.

    Args:
        attempt: the current attempt.
        bench: its material, under the accepted hypernetwork.
        words: words that represent the labels.
        embeddings: training outputs before and after.
        tuned: output of the tune stage, which may have measured both losses.
        share: accepted share of the proposed step.
    """
    rows = held_rows(bench) or fitted_rows(bench)
    evidence = tuned.tuning.evidence
    count = len(rows) if tuned.tuning.rows is None else tuned.tuning.rows
    measured = (tuned.losses.get(str(part)) for part in (0, share))
    was, now = (
        judged_loss(under, embedding, words, embedding.z, attempt.checkpoint) if loss is None else loss
        for loss, under, embedding in zip(measured, (attempt.bench, bench), embeddings, strict=True)
    )
    named, evidence = evidence or "training rows, which chose it,", evidence or "training rows"
    said = f"The loss on {count} {named} went from {was:.3f} to {now:.3f} nats"
    keep = now < was or attempt.job.spec.tune_hypernetwork == "always"
    reason = (
        f"{said}." if keep else f"{said}: the result is as good without the step, so the hypernetwork does not change."
    )
    return {"kept": keep, "before": was, "after": now, "evidence": evidence, "rows": count, "reason": reason}


def given_up(tuned: ProposedStep, reason: str) -> GuardOutput:
    """Return a refusal of the step that no task is the reason for."""
    return GuardOutput(
        guard=GuardVerdict(verdict="rejected", share=0.0, reason=reason, tasks=()),
        share=0.0,
        considered=(),
        tuning=tuned.tuning.model_copy(update={"kept": False, "reason": reason}),
        folds=None,
        label_next=None,
        numbers={"verdict": "rejected", "share": 0.0, "tasks": 0},
    )


def guard_newcomers(
    attempt: Attempt, outcome: JobOutcome, guarded: GuardOutput, versions: Sequence[EmbeddingVersion]
) -> GuardOutput:
    """Check versions that were published while the guard ran; return the same step, accepted or refused.

    Args:
        attempt: the current attempt.
        outcome: the outcome to be published.
        guarded: output of the guard stage.
        versions: the versions that it has not checked.
    """
    assert outcome.tuned is not None
    names = ", ".join(version.reference for version in versions)
    attempt.progress.note(f"guarding versions published meanwhile: {names}")
    whole_step = replace(GuardSettings(), shares=(1.0,))
    judgement = _judged(attempt, outcome.tuned, versions, outcome.trained.z, whole_step)
    verdict = guarded.guard
    merged = verdict.model_copy(
        update={
            "tasks": (*verdict.tasks, *judgement.tasks),
            "unchecked": verdict.unchecked + judgement.unchecked,
            "chosen": "; ".join(rule for rule in (verdict.chosen, judgement.chosen) if rule) or None,
        }
    )
    considered = (*guarded.considered, *(identity(version) for version in versions))
    if judgement.accepted:
        return replace(guarded, guard=merged, considered=considered)
    refused = merged.model_copy(update={"verdict": judgement.verdict, "share": 0.0, "reason": judgement.reason})
    tuning = guarded.tuning.model_copy(update={"kept": False, "reason": judgement.reason})
    return replace(guarded, guard=refused, share=0.0, considered=considered, tuning=tuning)


def _judged(
    attempt: Attempt,
    candidate: Hypernetwork,
    versions: Sequence[EmbeddingVersion],
    near: np.ndarray,
    settings: GuardSettings,
) -> GuardVerdict:
    """Run the guard on a candidate. If there are very many tasks, only rows of those at risk are read.

    A task that was published too late for the guard of an earlier step, and that may already have lost, does not block
    this step: it stays pinned to the hypernetwork that it was learned under.
    """
    services, bench = attempt.services, attempt.bench
    tasks = [protected_task(services, bench.base, version) for version in versions]
    shipped = [not version.seeds for version in versions]
    chosen = at_risk(tasks, shipped, candidate, near, settings)
    trained, own = TrainedRows(services, bench.base), bench.hashes(bench.dataset.train)
    earlier = [
        with_evidence(
            services, bench.base, tasks[place], versions[place],
            np.union1d(trained.known_to_some({attempt.base.head, versions[place].origin}), own),
        )
        for place in chosen
    ]  # fmt: skip
    protection = Protection(earlier, canary_ids(bench.engine.encoder, "guard"))
    behind = _left_behind(attempt, versions, protection)
    judgement = guard(
        bench.engine, Step(bench.engine.hypernetwork, candidate, near),
        replace(protection, tasks=[task for task in earlier if task.name not in behind]), settings,
        seed=attempt.job.spec.seed, left_out=len(tasks) - len(earlier) + len(behind),
        execution=bench.execution(attempt.checkpoint), answered=bench.answered,
    )  # fmt: skip
    if not behind:
        return judgement
    others = [judgement.chosen] if len(tasks) > len(earlier) and judgement.chosen else []
    rule = f"all but {', '.join(behind)}, which were published too late for an earlier step that may have harmed them"
    return judgement.model_copy(update={"chosen": "; ".join([*others, rule])})


def _left_behind(attempt: Attempt, versions: Sequence[EmbeddingVersion], protection: Protection) -> list[str]:
    """Return tasks that missed the last guard and are not shown to keep their quality under the current head."""
    bench, services = attempt.bench, attempt.services
    with services.database.read() as session:
        line = BaseRepository(session).line(bench.base.digest, attempt.base.head)
        used = InUseRepository(session)
        since, tuned_by = used.since(bench.base.digest), used.tuned_by(bench.base.digest)
    names = late([version for version in versions if version.reference in since], since, line, tuned_by)
    verdicts = clear(
        bench.engine, bench.engine.hypernetwork,
        replace(protection, tasks=[task for task in protection.tasks if task.name in names]),
        seed=attempt.job.spec.seed, execution=bench.execution(attempt.checkpoint),
    )  # fmt: skip
    return [verdict.task for verdict in verdicts if not verdict.passed and verdict.trouble is None]
