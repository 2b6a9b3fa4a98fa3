"""Weights of very many tasks, computed when a batch needs them, so that only the batch's tasks cost memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import TaskWeights, Weights

Learned = np.ndarray | TaskModule | None  # an embedding (t,), task-specific weights, or None for a readout only


@dataclass(frozen=True, slots=True, eq=False)
class OnDemand:
    """The learned values of T tasks, and the hypernetworks that generate adapters. Generated weights are not cached.

    Args:
        learned: for each task its embedding (t,) float32, or task-specific weights that can share a batch
            (`TaskModule.MIXES`).
        pinned: (T,) version in `hypernetworks` of each embedding.
        hypernetworks: by version, on one device and with one dtype.
    """

    learned: Sequence[Learned] | np.ndarray
    pinned: np.ndarray
    hypernetworks: Mapping[int, Hypernetwork]

    def of(self, tasks: Sequence[int]) -> Weights:
        """Return the weights of these tasks in this order, with one product per kind for each hypernetwork."""
        pinned: dict[int, list[tuple[int, np.ndarray]]] = {}
        task_modules: list[tuple[int, TaskModule]] = []
        for place, task in enumerate(tasks):
            learned = self.learned[task]
            if isinstance(learned, TaskModule):
                task_modules.append((place, learned))
            else:
                assert learned is not None  # tasks with only a readout do not use the model
                pinned.setdefault(int(self.pinned[task]), []).append((place, learned))
        generated = [
            _generated(self.hypernetworks[version], [z for _, z in of_it]) for version, of_it in sorted(pinned.items())
        ]
        places = [place for _, of_it in sorted(pinned.items()) for place, _ in of_it] + [
            place for place, _ in task_modules
        ]
        weights: list[Weights] = [*generated, *(module.weights() for _, module in task_modules)]
        if len(weights) == 1:
            return weights[0]
        order = np.argsort(places).tolist()
        return TaskWeights.joined(weights, order) if task_modules else GeneratedAdapters.joined(generated, order)


def _generated(hypernetwork: Hypernetwork, embeddings: Sequence[np.ndarray]) -> GeneratedAdapters:
    adapters: GeneratedAdapters = hypernetwork(
        torch.from_numpy(np.stack(embeddings)).to(next(hypernetwork.parameters()).device)
    )
    return adapters
