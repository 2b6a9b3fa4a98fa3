"""Select the tasks to check if there are too many: those that a change is most likely to harm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from onboard.guard.settings import GuardSettings
from onboard.model.drift import relative_drift
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.protected import ProtectedTask

_AT_ONCE: Final = 8  # tasks with adapters in memory; those of T5-base take 15 MB per task for both hypernetworks


def at_risk(
    tasks: Sequence[ProtectedTask],
    shipped: Sequence[bool],
    candidate: Hypernetwork,
    near: np.ndarray,
    settings: GuardSettings,
) -> list[int]:
    """Return the tasks to check; few of those that ship with the base, to save memory and time for those learned here.

    Args:
        tasks: all tasks.
        shipped: which of them ship with the base.
        candidate, near: see `most_at_risk`.
        settings: the numbers of tasks.

    Returns:
        Indices into `tasks`, ascending.
    """
    chosen: list[int] = []
    for group, most in ((False, settings.most_tasks), (True, settings.most_sources)):
        places = [place for place, came_with in enumerate(shipped) if came_with is group]
        room = min(most, settings.most_tasks - len(chosen))
        risky = most_at_risk([tasks[place] for place in places], candidate, near, room)
        chosen += [places[place] for place in risky]
    return sorted(chosen)


def most_at_risk(tasks: Sequence[ProtectedTask], candidate: Hypernetwork, near: np.ndarray, most: int) -> list[int]:
    """Return at most `most` tasks: half of them are nearest to the new task's embedding, the others drift most.

    The backbone is not used, so thousands of tasks take seconds.

    Args:
        tasks: all tasks.
        candidate: the tuned hypernetwork.
        near: (t,) the new task's embedding.
        most: maximum number.

    Returns:
        Indices into `tasks`, ascending; all of them if there are at most `most`.
    """
    if len(tasks) <= most:
        return list(range(len(tasks)))
    distances = np.linalg.norm(np.stack([task.z for task in tasks]) - near, axis=1)
    nearest = np.argsort(distances, kind="stable")[: (most + 1) // 2]
    by_drift = np.argsort(-drifts(tasks, candidate), kind="stable")
    drifted = by_drift[~np.isin(by_drift, nearest)][: most // 2]
    return sorted(np.concatenate([nearest, drifted]).tolist())


def drifts(tasks: Sequence[ProtectedTask], candidate: Hypernetwork) -> np.ndarray:
    """Return how far each task's generated weights move, relative per tensor (T,)."""
    changes = np.empty(len(tasks))
    order = sorted(range(len(tasks)), key=lambda task: id(tasks[task].reference))  # grouped by hypernetwork
    start = 0
    while start < len(order):
        reference = tasks[order[start]].reference
        end = start
        while end < min(start + _AT_ONCE, len(order)) and tasks[order[end]].reference is reference:
            end += 1
        z = np.stack([tasks[task].z for task in order[start:end]])
        changes[order[start:end]] = _drift(reference, candidate, z)
        start = end
    return changes


@torch.inference_mode()
def _drift(reference: Hypernetwork, candidate: Hypernetwork, z: np.ndarray) -> np.ndarray:
    before, after = (_tensors(made_by(hypernetwork, z)) for hypernetwork in (reference, candidate))
    drift: np.ndarray = relative_drift(before, after).numpy()
    return drift


def made_by(hypernetwork: Hypernetwork, z: np.ndarray) -> GeneratedAdapters:
    """Generate the adapters of T tasks, z (T, t), on the hypernetwork's device."""
    device = next(hypernetwork.parameters()).device
    made: GeneratedAdapters = hypernetwork(torch.from_numpy(np.ascontiguousarray(z, dtype=np.float32)).to(device))
    return made


def _tensors(made: GeneratedAdapters) -> list[torch.Tensor]:
    return [weight.float().cpu() for stack in made for weight in stack]
