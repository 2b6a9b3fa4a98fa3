"""Interpolation between two hypernetworks or embeddings, weight by weight."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch

from onboard.model.hypernetwork import Hypernetwork


@torch.inference_mode(False)  # tensors made in inference mode could not be trained
@torch.no_grad()
def between(old: Hypernetwork, new: Hypernetwork, share: float) -> Hypernetwork:
    """Return old + share · (new − old), with the dtype and device of `old`. The arguments are not changed.

    Args:
        old: the result for share 0, bit for bit.
        new: the result for share 1, bit for bit.
        share: from 0 to 1.

    Returns:
        A frozen copy.

    Raises:
        ValueError: the share is out of range, or the two differ in method or sizes.
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"a share lies between 0 and 1, not {share}")
    if (old.METHOD, old.sizes) != (new.METHOD, new.sizes):
        raise ValueError(f"{old.METHOD} {old.sizes} and {new.METHOD} {new.sizes} have nothing between them")
    mixed = deepcopy(old).requires_grad_(False)
    if share == 0.0:
        return mixed
    theirs = dict(new.named_parameters())
    for name, weight in mixed.named_parameters():
        target = theirs[name].detach().to(weight)
        weight.copy_(target if share == 1.0 else torch.lerp(weight, target, share))
    return mixed


def embedding_between(old: np.ndarray, new: np.ndarray, share: float) -> np.ndarray:
    """Return old + share · (new − old) of embeddings (t,), float32; share 1 gives `new` bit for bit."""
    return new if share == 1.0 else (old + np.float32(share) * (new - old)).astype(np.float32)
