"""What a job comes to: the embedding alone under the present head, or both after the step that was let through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.domain.tuning import GuardJson, TuningJson
from onboard.hypernetworks.engines import frozen_hypernetwork
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.pipeline.attempt import Output, Run
from onboard.pipeline.material import Workbench
from onboard.versions.protected import Identity, line_of

_CHOSEN: Final = "These rows chose how much of the tuning was kept, so these numbers are a little too good."
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
    """

    bench: Workbench
    trained: Output
    tuned: Hypernetwork | None = None
    tuning: TuningJson | None = None
    guard: GuardJson | None = None
    considered: frozenset[Identity] = frozenset()
    line: frozenset[int] = frozenset()

    @property
    def also_chosen(self) -> str | None:
        """What the rows of the validation estimate chose beside start and end of the training; None for nothing."""
        refused = self.guard is not None and self.guard["verdict"] == "rejected"
        return _CHOSEN if "by_share" in (self.tuning or {}) and not refused else None


def outcome_of(attempt: Run, trained: Output, tuned: Output | None = None, guarded: Output | None = None) -> Outcome:
    """What the outputs of train, tune and guard come to; of the last two there may be none."""
    if tuned is None:
        return Outcome(attempt.bench, trained)
    if guarded is None:
        refused: GuardJson = {"verdict": "rejected", "share": 0.0, "reason": tuned["tuning"]["reason"], "tasks": []}
        return Outcome(attempt.bench, trained, tuning=tuned["tuning"], guard=refused if tuned["diverged"] else None)
    if not guarded["tuning"]["kept"]:
        return Outcome(attempt.bench, trained, tuning=guarded["tuning"], guard=guarded["guard"])
    z, hypernetwork = taken(attempt, trained, tuned, guarded["share"])
    final = {**trained, "z": z.tolist(), "label_next": guarded["label_next"]}
    if trained["folds"] is not None:
        final |= {"folds": guarded["folds"], "no_estimate": _NO_ESTIMATE}
    return Outcome(
        replace(attempt.bench, engine=attempt.bench.engine.under(hypernetwork)), final, hypernetwork,
        guarded["tuning"], guarded["guard"],
        considered=frozenset((task, digest, origin) for task, digest, origin in guarded["considered"]),
        line=line_of(attempt.services, attempt.base),
    )  # fmt: skip


def taken(attempt: Run, trained: Output, tuned: Output, share: float) -> tuple[np.ndarray, Hypernetwork]:
    """Embedding and hypernetwork after this share of the step."""
    z = embedding_between(embedding(trained), embedding(tuned), share)
    return z, between(attempt.bench.engine.hypernetwork, tuned_weights(attempt, tuned), share)


def tuned_weights(attempt: Run, tuned: Output) -> Hypernetwork:
    """The hypernetwork that the tune stage left. Raises DamagedError: its bytes are gone, or not what they were."""
    return frozen_hypernetwork(attempt.services.read(tuned["artifact"]), attempt.bench.engine.device)


def embedding(output: Output) -> np.ndarray:
    """z (t,) of a stage's output."""
    return np.array(output["z"], dtype=np.float32)
