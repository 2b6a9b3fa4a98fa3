"""A readout without a single labeled row: of the labels' words, and of what a prior says such words usually go with.

Texts that need no label say where the middle is and how long each block of features is. A score is linear in how far a
text is from that middle, so a text in the middle is answered with equal probabilities.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import lengths_of_blocks
from onboard.statistics.prior import NAME_BLOCKS, Prior, names_on_scale
from onboard.statistics.readout import Readout, packed, require_finite, signed_roots, weights_of_prior

FEWEST_TEXTS: Final = 8  # of the task, that say where the middle is; generic texts do where there are fewer
# Measured on the source tasks of `mini`, each by a prior without it (docs/results/zero_rows.md):
NAMES_BESIDE_PRIOR: Final = 0.5  # what the words themselves count, the prior's weights counting 1
SHARPNESS_TEXTS: Final = 4.0  # inverse temperatures at which answers are less sure, on the mean, than they are right
SHARPNESS_PAIRS: Final = 2.0


def readout_of_names(names: np.ndarray, texts: np.ndarray, blocks: int, prior: Prior | None = None) -> Readout:
    """A readout of K labels by their words alone.

    Args:
        names: features (K, 3h) of the labels' words.
        texts: features (m, b·h), m ≥ 2, of unlabeled texts of the task, or of generic ones.
        blocks: b, how many blocks of columns the texts have: 3 of single texts, 6 of pairs.
        prior: of earlier tasks of the same form; None where there is none.

    Raises:
        InputError: features that are not finite, fewer than two texts, or a prior of another base.
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
