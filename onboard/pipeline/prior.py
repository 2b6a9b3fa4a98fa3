"""The prior of a job's readout: the head of its base's prior, without tasks that were trained on rows of the job.

Out-of-fold rows judge how strongly the readout is pulled to the prior, so the prior must not have seen them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from onboard.contract.priors import Contribution, PriorUse
from onboard.data.hashes import in_sorted, unpack_hashes
from onboard.domain.label_set import ANSWERED_FROM
from onboard.domain.prior import Taught, form_of
from onboard.domain.task import EmbeddingVersion
from onboard.hypernetworks.prior.fitting import PinnedPrior, fitted
from onboard.hypernetworks.prior.head import prior_head
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import TrainOutput
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services
from onboard.statistics.prior import names_on_scale
from onboard.statistics.readout import FEWEST_JUDGING, Fitted
from onboard.storage.cache import Cache

MOST_NAMED: Final = 5  # number of top contributors that are listed
_HASHES: Final = 4096  # number of datasets whose row hashes are cached
_hashes: Final = Cache[str, np.ndarray](_HASHES)


def pinned_prior(services: Services, bench: Workbench, task: str) -> PinnedPrior | None:
    """Return the prior that a task is learned with; None for a regression, or if no task has taught the base yet.

    Raises:
        UnavailableError: the artifact store cannot be reached.
    """
    if bench.buckets is not None:
        return None
    form = form_of(pairs=bench.pairs)
    head, taught = prior_head(services, bench.base, form)
    if head is None:
        return None
    left_out = tuple(sorted({task}.intersection(lesson.task for lesson in taught) | _sharing(services, bench, taught)))
    prior = fitted(services, bench.base, form, taught, left_out)
    return None if prior is None else PinnedPrior(head, prior, left_out)


def _sharing(services: Services, bench: Workbench, taught: Sequence[Taught]) -> set[str]:
    """Return the tasks that were learned from any row of the job, including rows that judge."""
    dataset = bench.dataset
    rows = bench.hashes([*dataset.train, *dataset.validation, *dataset.test])
    with services.database.read() as session:
        artifacts = PriorRepository(session).row_hashes(taught)
    sharing = {
        lesson.task
        for lesson in taught
        if lesson.shipped and in_sorted(rows, bench.base.trained_rows.get(lesson.task, rows[:0])).any()
    }
    for task, artifact in artifacts.items():
        known = _hashes.get(artifact, partial(_row_hashes, services, artifact))
        if in_sorted(rows, known).any():
            sharing.add(task)
    return sharing


def _row_hashes(services: Services, artifact: str) -> np.ndarray:
    return unpack_hashes(services.read(artifact))


def contributions(pinned: PinnedPrior, names: np.ndarray, scale: float) -> PriorUse:
    """Return which earlier tasks contributed to a readout without rows, for the job's document.

    Args:
        pinned: the prior.
        names: features of its labels' words.
        scale: strength of the prior; 0 if it was not used.
    """
    version = pinned.version
    shares = pinned.prior.contributions(names_on_scale(names)) if scale else {}
    named = tuple(Contribution(task=task, share=round(share, 4)) for task, share in [*shares.items()][:MOST_NAMED])
    return PriorUse(
        form=version.form, version=version.version, digest=version.digest, left_out=tuple(pinned.left_out),
        scale=scale, lessons=len(pinned.prior.lessons), tasks=named,
    )  # fmt: skip


def contributed(
    pinned: PinnedPrior, names: np.ndarray, fitted_with: Fitted, plain: Fitted, targets: np.ndarray
) -> PriorUse:
    """Return what earlier tasks contributed to a readout, for the job's document.

    Args:
        pinned: the prior.
        names: features of its labels' words.
        fitted_with: the readout.
        plain: the same readout without a prior.
        targets: (n, K) of the rows that both were fitted on.
    """
    facts = contributions(pinned, names, fitted_with.scale)
    if len(fitted_with.judged) < FEWEST_JUDGING:
        return facts
    truth, independent = targets[fitted_with.judged], fitted_with.readout.independent
    measure = _micro_f1 if independent else _accuracy
    right, without = (round(100 * measure(readout.probabilities, truth), 2) for readout in (fitted_with, plain))
    metric = "micro_f1" if independent else "accuracy"
    return facts.model_copy(update={"rows": len(truth), "metric": metric, "with_prior": right, "without": without})


def _accuracy(probabilities: np.ndarray, truth: np.ndarray) -> float:
    return float((probabilities.argmax(1) == truth.argmax(1)).mean())


def _micro_f1(scores: np.ndarray, truth: np.ndarray) -> float:
    answered = scores >= ANSWERED_FROM
    return float(2 * (answered * truth).sum() / max(1.0, float(answered.sum() + truth.sum())))


def drawn_towards(draft: EmbeddingVersion, trained: TrainOutput) -> EmbeddingVersion:
    """Return the draft with the prior of its readout, if it has both."""
    prior = trained.prior
    if prior is None or not prior.scale or not (draft.readout or trained.is_readout):
        return draft
    return replace(draft, prior_version=prior.version, prior_digest=prior.digest)
