"""What a job comes to: the embedding alone under the present head, or both after the step that was let through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.contract.guard import GuardVerdict, Tuning
from onboard.domain.readout import ProvisionalJson
from onboard.domain.report import MoreRowsJson
from onboard.domain.tried import MethodsJson
from onboard.hypernetworks.engines import frozen_hypernetwork
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.pipeline.attempt import Run
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import GuardOutput, NoStep, ProposedStep, TrainOutput, TuneOutput
from onboard.versions.protected import Identity, line_of

_CHOSEN: Final = "These rows chose how much of the tuning was kept, so these numbers are a little too good."
_CURVE_BEFORE: Final = "The hypernetwork was tuned after the learning curve was made, which says nothing of the two."
_CHOSE_METHOD: Final = "These rows chose the method, too, so these numbers are a little too good."
_CHOSE_VERSION: Final = "These rows chose between the job's two versions, too, so these numbers are a little too good."
_NO_ESTIMATE: Final = (
    "All rows trained the embedding and tuned the hypernetwork: none is left that could say how good the two are."
)


@dataclass(frozen=True)
class Outcome:
    """What a job has come to: this is judged and published.

    Args:
        bench: its material, under the hypernetwork that the version will be pinned to.
        trained: the train stage's output, with z as it is published.
        tuned: the hypernetwork that becomes the head; None where the head stays.
        tuning: whether it was tuned, and why; None where it was not asked.
        guard: the guard's verdict; None where nothing was tuned.
        considered: the embeddings in use that the guard knew of.
        line: the head that it was tuned from, and what that descends from.
        no_estimate: why no folds are left, where there were some before the tuning.
        methods: that were tried, where the method was chosen by them.
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
    methods: MethodsJson | None = None
    provisional: ProvisionalJson | None = None

    @property
    def also_chosen(self) -> str | None:
        """What the rows of the validation estimate chose beside start and end of the training; None for nothing."""
        refused = self.guard is not None and not self.guard.accepted
        chosen = [_CHOSEN] if self.tuning is not None and self.tuning.by_share and not refused else []
        if self.methods is not None and len(self.methods["tried"]) > 1:
            chosen.append(_CHOSE_METHOD)
        if self.provisional is not None and "rows" in self.provisional:
            chosen.append(_CHOSE_VERSION)
        return " ".join(chosen) or None


def outcome_of(
    attempt: Run, trained: TrainOutput, tuned: TuneOutput | None = None, guarded: GuardOutput | None = None
) -> Outcome:
    """What the outputs of train, tune and guard come to; of the last two there may be none."""
    if tuned is None:
        return Outcome(attempt.bench, trained)
    if isinstance(tuned, NoStep):
        refused = GuardVerdict(verdict="rejected", share=0.0, reason=tuned.tuning.reason, tasks=())
        return Outcome(attempt.bench, trained, tuning=tuned.tuning, guard=refused if tuned.diverged else None)
    assert guarded is not None  # as every step that is proposed
    if not guarded.tuning.kept:
        return Outcome(attempt.bench, trained, tuning=guarded.tuning, guard=guarded.guard)
    z, hypernetwork = taken(attempt, trained, tuned, guarded.share)
    return Outcome(
        replace(attempt.bench, engine=attempt.bench.engine.under(hypernetwork)),
        replace(
            trained, z=z, folds=guarded.folds, label_next=guarded.label_next,
            more_rows=untold(trained.more_rows, _CURVE_BEFORE),
        ),
        hypernetwork,
        guarded.tuning, guarded.guard, frozenset(guarded.considered), line_of(attempt.services, attempt.base),
        _NO_ESTIMATE if trained.folds is not None else None,
    )  # fmt: skip


def untold(more_rows: MoreRowsJson | None, reason: str) -> MoreRowsJson | None:
    """The answer to what more rows would bring, where what was measured does not hold for what is published."""
    if more_rows is None:
        return None
    return {**more_rows, "points": [], "gain": None, "low": None, "high": None, "reason": reason}


def taken(attempt: Run, trained: TrainOutput, tuned: ProposedStep, share: float) -> tuple[np.ndarray, Hypernetwork]:
    """Embedding and hypernetwork after this share of the step."""
    hypernetwork = between(attempt.bench.engine.hypernetwork, tuned_weights(attempt, tuned), share)
    return embedding_between(trained.z, tuned.z, share), hypernetwork


def tuned_weights(attempt: Run, tuned: ProposedStep) -> Hypernetwork:
    """The hypernetwork that the tune stage left. Raises DamagedError: its bytes are gone, or not what they were."""
    return frozen_hypernetwork(attempt.services.read(tuned.artifact), attempt.bench.engine.device)
