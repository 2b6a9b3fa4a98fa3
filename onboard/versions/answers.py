"""What a version answers to rows, as metrics compare it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onboard.data.regression import Buckets
from onboard.domain.dataset import Example
from onboard.domain.task import EmbeddingVersion
from onboard.model.engine import Engine
from onboard.model.readout import probabilities_of
from onboard.statistics.readout import Readout


def answers(
    engine: Engine,
    version: EmbeddingVersion,
    z: np.ndarray,
    words: Sequence[str],
    rows: Sequence[Example],
    readout: Readout | None,
) -> np.ndarray:
    """Probabilities (n, K) in the order of the words; of a regression the expected numbers (n,), on its own scale.

    Args:
        engine: under the hypernetwork that is to be asked.
        version: of a task; says whether it is a regression.
        z: (t,) its embedding.
        words: its K label words; of a regression those of the buckets, in their order.
        rows: n rows.
        readout: of the version, in the order of the words; None where it has none.
    """
    ids = engine.encoder.encode([(row.text_a, row.text_b) for row in rows])
    probabilities = probabilities_of(engine, ids, z, engine.trie(words), readout)
    if version.low is None or version.high is None:
        return probabilities
    numbers: np.ndarray = probabilities @ np.array(Buckets(version.low, version.high).values)
    return numbers
