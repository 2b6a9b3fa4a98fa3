"""One embedding of all rows: a training without what the service trains beside it."""

from __future__ import annotations

import numpy as np

from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.scoring import LabelTrie
from onboard.train.fewshot import Part, Trained, train_parts
from onboard.train.settings import FewShotSettings


def train_embedding(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    execution: Execution = UNWATCHED,
) -> Trained:
    """Train one embedding on all rows; arguments as of `train_parts`."""
    everything = [Part(np.arange(len(rows.ids)), settings.seeds)]
    return train_parts(engine, TrainingSet(rows, trie), start, settings, seed, everything, execution)[0]
