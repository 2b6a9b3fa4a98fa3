"""Adapters of very many tasks, made when a batch needs them: they cost what the batch's own tasks cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork


@dataclass(frozen=True, slots=True, eq=False)
class OnDemand:
    """T task embeddings, and the hypernetworks that make their adapters. Nothing that was made is kept.

    Args:
        z: (T, t) float32.
        pinned: (T,) which of `hypernetworks` each task is pinned to.
        hypernetworks: by their version, on one device and of one type.
    """

    z: np.ndarray
    pinned: np.ndarray
    hypernetworks: Mapping[int, Hypernetwork]

    def of(self, tasks: Sequence[int]) -> GeneratedAdapters:
        """The adapters of these tasks, in this order: one product a kind for all that share a hypernetwork."""
        chosen = np.asarray(tasks)
        parts: list[GeneratedAdapters] = []
        places: list[np.ndarray] = []
        for version in np.unique(self.pinned[chosen]):
            hypernetwork = self.hypernetworks[int(version)]
            place = np.flatnonzero(self.pinned[chosen] == version)
            z = torch.from_numpy(self.z[chosen[place]])
            parts.append(hypernetwork(z.to(next(hypernetwork.parameters()).device)))
            places.append(place)
        if len(parts) == 1:
            return parts[0]
        return GeneratedAdapters.joined(parts, np.argsort(np.concatenate(places)).tolist())
