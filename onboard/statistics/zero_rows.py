"""A readout without labeled rows: from the labels' words, and the weights that a prior predicts for them.

Unlabeled texts define the center and the length of each block of features. Scores are linear in the distance from that
center, so a text at the center gets equal probabilities.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import lengths_of_blocks
from onboard.statistics.prior import NAME_BLOCKS, Prior, names_on_scale
from onboard.statistics.readout import Readout, packed, require_finite, signed_roots, weights_of_prior

FEWEST_TEXTS: Final = 8  # texts of the task that define the center; with fewer, generic texts do
# Measured on the source tasks of `mini`, each with a prior without it (bench/results/zero_rows.md):
NAMES_BESIDE_PRIOR: Final = 0.5  # weight of the words, relative to the prior's
SHARPNESS_TEXTS: Final = 4.0  # inverse temperature at which answers are on average less certain than they are right
SHARPNESS_PAIRS: Final = 2.0


def readout_of_names(names: np.ndarray, texts: np.ndarray, blocks: int, prior: Prior | None = None) -> Readout:
    """Return a readout of K labels from their words alone.

    Args:
        names: features (K, 3h) of the labels' words.
        texts: features (m, b·h), m ≥ 2, of unlabeled texts of the task, or of generic ones.
        blocks: b, number of blocks of the texts: 3 for single texts, 6 for pairs.
        prior: prior of earlier tasks of the same form; None without one.

    Raises:
        InputError: features are not finite, there are fewer than two texts, or the prior belongs to another base.
    """
    require_finite(names)
    require_finite(texts)
    if len(texts) < 2:
        raise InputError("readout-needs-two-texts")
    seen = signed_roots(texts)
    mean = seen.mean(0)
    lengths = lengths_of_blocks(seen - mean, blocks)
    weights = np.zeros((len(names), texts.shape[1]))
    weights[:, : names.shape[1]] = names_on_scale(names)
    towards = weights_of_prior(prior, names, texts.shape[1])
    if towards is not None:
        weights = NAMES_BESIDE_PRIOR * weights + towards
    weights = (SHARPNESS_TEXTS if blocks == NAME_BLOCKS else SHARPNESS_PAIRS) * weights / lengths
    return packed(weights, -(weights @ mean))
