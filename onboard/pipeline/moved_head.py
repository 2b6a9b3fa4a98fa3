"""A head that moved while a job tuned it: the job's tuning step is moved onto the new head and judged there.

Tunings of a base run at the same time and wait for nothing. The compare-and-swap in `publish` guarantees one line of
hypernetworks, and that the guard judged exactly the weights that become the head. A moved step is

    new head + (tuned − head that it was tuned from)

weight by weight. Both heads are in the line of the result, so whatever influenced it is one of its ancestors or was
protected while it was judged.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace

import torch

from onboard.contract.guard import GuardedTask
from onboard.data.hashes import in_sorted
from onboard.guard import clear
from onboard.guard.canaries import canary_ids
from onboard.hypernetworks.engines import engine_at, store_hypernetwork
from onboard.model.batch import LabelledRows
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import ProtectedTask, Protection
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.evidence import held_rows
from onboard.pipeline.outcome import taken, tuned_weights
from onboard.pipeline.outputs import ProbeOutput, ProposedStep, TrainOutput
from onboard.registry.bases import BaseRepository
from onboard.versions.protected import MOST_TEXTS, line_of
from onboard.versions.trained_rows import head_rows


class HeadMovedError(Exception):
    """The base's head moved since the job began; the job has to restart under the new one."""

    def __init__(self, began_with: int, head: int) -> None:
        super().__init__(f"the hypernetwork moved from version {began_with} to {head}: starting over with that")
        self.began_with, self.head = began_with, head


def head_now(attempt: Attempt) -> int:
    """Return the base's current head; the attempt may have begun under an earlier one."""
    with attempt.services.database.read() as session:
        return BaseRepository(session).get(attempt.base.digest).head


@dataclass(frozen=True)
class StepOn:
    """A tuning step on a head: the attempt under that head, and the step from it."""

    attempt: Attempt
    step: ProposedStep


def on_new_head(began: StepOn) -> StepOn | None:
    """Return the step moved onto the current head; None if that is not possible.

    That is so if

    - the head that the step was tuned from is not an ancestor of the current one: a head that was reverted, or replaced
      because of a deleted task, must not live on in a step that was made on it,
    - or the current head was trained on rows that judge this job.

    Out-of-fold predictions stay those of the tunings from the earlier head; see `own_verdict`. Losses on held-out rows
    are measured again.
    """
    after = _under_new_head(began.attempt)
    if after is None:
        return None
    if after.base.head == began.attempt.base.head:
        return began  # it was reverted to the same head
    before, tuned = began.attempt, began.step
    moved = _moved(tuned_weights(before, tuned), before.bench.engine.hypernetwork, after.bench.engine.hypernetwork)
    draft = store_hypernetwork(after.services, after.bench.base, moved)
    assert draft.artifact is not None  # it was stored just now
    losses = {share: loss for share, loss in tuned.losses.items() if tuned.folds is not None or share == "0"}
    facts = tuned.tuning.model_copy(update={"moved_from": before.base.head})
    return StepOn(after, replace(tuned, artifact=draft.artifact, losses=losses, tuning=facts))


def _under_new_head(attempt: Attempt) -> Attempt | None:
    """Return the attempt under the current head; None if its step cannot be moved there, see `on_new_head`."""
    services, bench = attempt.services, attempt.bench
    with services.database.read() as session:
        record = BaseRepository(session).get(attempt.base.digest)
    if attempt.base.head not in line_of(services, record):
        return None
    known = head_rows(services, bench.base, record.head)
    judging = bench.hashes([*bench.dataset.validation, *bench.dataset.test])
    if in_sorted(judging, known).any():
        return None
    engine = engine_at(services, bench.base, record.head)
    return attempt.as_of(record, replace(bench, engine=engine, head=record.head, known_rows=known))


@torch.inference_mode(False)  # tensors made in inference mode could not be trained
@torch.no_grad()
def _moved(tuned: Hypernetwork, old: Hypernetwork, new: Hypernetwork) -> Hypernetwork:
    """Return new + (tuned − old), weight by weight; a frozen copy."""
    moved = deepcopy(new).requires_grad_(False)
    theirs, began = dict(tuned.named_parameters()), dict(old.named_parameters())
    for name, weight in moved.named_parameters():
        weight.add_(theirs[name].detach().to(weight) - began[name].detach().to(weight))
    return moved


def own_verdict(began: StepOn, moved: StepOn, probed: ProbeOutput, trained: TrainOutput, share: float) -> GuardedTask:
    """Judge the new task itself by the guard's rule: does it lose more than the margin because its step was moved?

    If it does not, its estimates from before the move hold.

    Args:
        began, moved: the step before and after the move.
        probed, trained: outputs of those stages.
        share: the accepted share of the step.
    """
    z, reference = taken(began.attempt, trained, began.step, share)
    _, candidate = taken(moved.attempt, trained, moved.step, share)
    bench, seed = moved.attempt.bench, moved.attempt.job.spec.seed
    held = held_rows(bench)
    new_task = ProtectedTask(
        name=moved.attempt.job.spec.task,
        z=z,
        trie=bench.engine.trie(probed.words),
        reference=reference,
        rows=LabelledRows(bench.encode(held), bench.targets(held)) if held else None,
        texts=bench.encode(bench.probed(seed)[:MOST_TEXTS]),
    )
    protection = Protection([new_task], canary_ids(bench.engine.encoder, "guard"))
    execution = bench.execution(moved.attempt.checkpoint)
    (verdict,) = clear(bench.engine, candidate, protection, seed=seed, execution=execution)
    return verdict
