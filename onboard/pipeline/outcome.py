"""The outcome of a job: the embedding alone under the current head, or both after the accepted tuning step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.contract.guard import GuardVerdict, Tuning
from onboard.contract.report import MethodChoice, ProvisionalFacts
from onboard.hypernetworks.engines import frozen_hypernetwork
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import GuardOutput, NoStep, ProposedStep, TrainOutput, TuneOutput
from onboard.versions.protected import Identity, line_of

_CHOSEN: Final = "These rows chose how much of the tuning was kept, so these numbers are slightly optimistic."
_CURVE_BEFORE: Final = "The learning curve was made before the hypernetwork was tuned, and does not include it."
_CHOSE_METHOD: Final = "These rows chose the method, too, so these numbers are slightly optimistic."
_CHOSE_VERSION: Final = (
    "These rows chose between the job's two versions, too, so these numbers are slightly optimistic."
)
_MOVED: Final = (
    "They were measured with hypernetwork version {version} as it was before the head moved; on the new head the guard "
    "found no loss."
)
_NO_ESTIMATE: Final = (
    "All rows were used to train the embedding and to tune the hypernetwork, so none are left to measure them."
)


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of a job, which is evaluated and published.

    Args:
        bench: its material, under the hypernetwork that the version will be pinned to.
        trained: the train stage's output, with z as published.
        tuned: the hypernetwork that becomes the head; None if the head stays.
        tuning: whether the job tuned, and why; None if tuning was not requested.
        guard: the guard's verdict; None if nothing was tuned.
        considered: the embeddings in use that the guard checked.
        line: the head that the tuning started from, and its ancestors.
        no_estimate: why no folds are left, if there were some before the tuning.
        methods: methods that were tried, if they chose the method.
        provisional: the job's provisional version, and why it is not the final one.
    """

    bench: Workbench
    trained: TrainOutput
    tuned: Hypernetwork | None = None
    tuning: Tuning | None = None
    guard: GuardVerdict | None = None
    considered: frozenset[Identity] = frozenset()
    line: frozenset[int] = frozenset()
    no_estimate: str | None = None
    methods: MethodChoice | None = None
    provisional: ProvisionalFacts | None = None

    @property
    def also_chosen(self) -> str | None:
        """Describe what the validation rows chose, apart from start and end of the training, and whether they were
        measured before the head moved; None if neither.
        """
        refused = self.guard is not None and not self.guard.accepted
        chosen = [_CHOSEN] if self.tuning is not None and self.tuning.by_share and not refused else []
        if self.methods is not None and len(self.methods.tried) > 1:
            chosen.append(_CHOSE_METHOD)
        if self.provisional is not None and self.provisional.rows is not None:
            chosen.append(_CHOSE_VERSION)
        if self.tuned is not None and self._moved_from is not None and self.trained.folds is not None:
            chosen.append(_MOVED.format(version=self._moved_from))
        return " ".join(chosen) or None

    @property
    def _moved_from(self) -> int | None:
        return None if self.tuning is None else self.tuning.moved_from


def outcome_of(
    attempt: Attempt, trained: TrainOutput, tuned: TuneOutput | None = None, guarded: GuardOutput | None = None
) -> JobOutcome:
    """Combine the outputs of train, tune and guard into an outcome; the last two are optional."""
    if tuned is None:
        return JobOutcome(attempt.bench, trained)
    if isinstance(tuned, NoStep):
        refused = GuardVerdict(verdict="rejected", share=0.0, reason=tuned.tuning.reason, tasks=())
        return JobOutcome(attempt.bench, trained, tuning=tuned.tuning, guard=refused if tuned.diverged else None)
    assert guarded is not None  # every proposed step is guarded
    if not guarded.tuning.kept:
        return JobOutcome(attempt.bench, trained, tuning=guarded.tuning, guard=guarded.guard)
    z, hypernetwork = taken(attempt, trained, tuned, guarded.share)
    return JobOutcome(
        replace(attempt.bench, engine=attempt.bench.engine.under(hypernetwork)),
        replace(
            trained, z=z, folds=guarded.folds, label_next=guarded.label_next,
            more_rows=trained.more_rows and trained.more_rows.without_gain(_CURVE_BEFORE),
        ),
        hypernetwork,
        guarded.tuning, guarded.guard, frozenset(guarded.considered), line_of(attempt.services, attempt.base),
        _NO_ESTIMATE if trained.folds is not None else None,
    )  # fmt: skip


def taken(attempt: Attempt, trained: TrainOutput, tuned: ProposedStep, share: float) -> tuple[np.ndarray, Hypernetwork]:
    """Return embedding and hypernetwork after this share of the step."""
    hypernetwork = between(attempt.bench.engine.hypernetwork, tuned_weights(attempt, tuned), share)
    return embedding_between(trained.z, tuned.z, share), hypernetwork


def tuned_weights(attempt: Attempt, tuned: ProposedStep) -> Hypernetwork:
    """Load the hypernetwork that the tune stage stored. Raises DamagedError: its file is missing or damaged."""
    return frozen_hypernetwork(attempt.services.read(tuned.artifact), attempt.bench.engine.device)
