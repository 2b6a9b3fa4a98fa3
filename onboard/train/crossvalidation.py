"""Out-of-fold predictions where every row is needed for training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onboard.data.splits import folds
from onboard.domain.dataset import Dataset
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.train.fewshot import FewShotSettings, LabelledRows, train_embedding

FOLDS = 4
FEWEST_ROWS = 8


def out_of_fold(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    dataset: Dataset,
    on_step: Callable[[int, float], None],
    at_once: RowsAtOnce | None = None,
    scored_at_once: RowsAtOnce | None = None,
) -> dict[str, Any] | None:
    """Every training row's probabilities under an embedding that was trained without it.

    Args:
        dataset: whose training rows `rows` are, for the stratification.
        scored_at_once: as for `log_probabilities`.
        (the others): as for `train_embedding`.

    Returns:
        {"fold": fold of each row (n), "probabilities": (n, K)}; None with fewer than 8 rows.
    """
    count = len(rows.ids)
    if count < FEWEST_ROWS:
        return None
    probabilities = np.zeros_like(rows.targets)
    fold_of = np.zeros(count, dtype=np.int64)
    for number, held in enumerate(folds(dataset, FOLDS, seed)):
        kept = np.setdiff1d(np.arange(count), held)
        part = LabelledRows([rows.ids[row] for row in kept], rows.targets[kept])
        trained = train_embedding(engine, start, part, trie, settings, seed, on_step, at_once)
        held_ids = [rows.ids[row] for row in held]
        scores = log_probabilities(engine, held_ids, trained.z, trie, at_once=scored_at_once)
        probabilities[list(held)] = np.exp(scores)
        fold_of[list(held)] = number
    return {"fold": fold_of.tolist(), "probabilities": probabilities.tolist()}
