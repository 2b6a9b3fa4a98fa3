"""Weights of very many tasks, made when a batch needs them: they cost what the batch's own tasks cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import TaskWeights, Weights

Learned = np.ndarray | TaskModule | None  # an embedding (t,), weights of its own, or nothing but a readout


@dataclass(frozen=True, slots=True, eq=False)
class OnDemand:
    """What T tasks have learned, and the hypernetworks that make adapters of embeddings. Nothing that was made is kept.

    Args:
        learned: of each task its embedding (t,) float32, or weights of its own that share a batch (`TaskModule.MIXES`).
        pinned: (T,) which of `hypernetworks` each embedding is pinned to.
        hypernetworks: by their version, on one device and of one type.
    """

    learned: Sequence[Learned] | np.ndarray
    pinned: np.ndarray
    hypernetworks: Mapping[int, Hypernetwork]

    def of(self, tasks: Sequence[int]) -> Weights:
        """The weights of these tasks, in this order: one product a kind for all that share a hypernetwork."""
        pinned: dict[int, list[tuple[int, np.ndarray]]] = {}
        own: list[tuple[int, TaskModule]] = []
        for place, task in enumerate(tasks):
            learned = self.learned[task]
            if isinstance(learned, TaskModule):
                own.append((place, learned))
            else:
                assert learned is not None  # what only a readout answers goes through no model
                pinned.setdefault(int(self.pinned[task]), []).append((place, learned))
        generated = [
            _generated(self.hypernetworks[version], [z for _, z in of_it]) for version, of_it in sorted(pinned.items())
        ]
        places = [place for _, of_it in sorted(pinned.items()) for place, _ in of_it] + [place for place, _ in own]
        weights: list[Weights] = [*generated, *(module.weights() for _, module in own)]
        if len(weights) == 1:
            return weights[0]
        order = np.argsort(places).tolist()
        return TaskWeights.joined(weights, order) if own else GeneratedAdapters.joined(generated, order)


def _generated(hypernetwork: Hypernetwork, embeddings: Sequence[np.ndarray]) -> GeneratedAdapters:
    made: GeneratedAdapters = hypernetwork(
        torch.from_numpy(np.stack(embeddings)).to(next(hypernetwork.parameters()).device)
    )
    return made
