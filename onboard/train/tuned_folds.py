"""What tuning is worth where every row is needed for it: each row is answered by a tuning that has not seen it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.interpolate import between
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.train.tuning import Tuned


def tuned_out_of_fold(
    engine: Engine,
    starts: np.ndarray,
    fold: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    share: float,
    tuned_on: Callable[[np.ndarray, LabelledRows], Tuned],
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Log-probabilities (n, K) of every row after a tuning on the rows of the other folds.

    Args:
        engine: with the hypernetwork that the tunings start from.
        starts: (folds, t) embeddings that were trained without a fold's rows.
        fold: of each row (n,).
        rows: that everything was trained on.
        trie: of their K label words.
        share: of the step that is taken, as of the tuning on all rows.
        tuned_on: tunes from an embedding (t,) on rows.
        before_batch: called before every batch that is only scored; may raise to stop.
        at_once: how many rows fit into the memory when they are only scored.

    Raises:
        as `tuned_on`.
    """
    scores = np.empty(rows.targets.shape, dtype=np.float32)
    for number, start in enumerate(starts.astype(np.float32)):
        held, kept = (np.flatnonzero(chosen).tolist() for chosen in (fold == number, fold != number))
        tuned = tuned_on(start, LabelledRows([rows.ids[row] for row in kept], rows.targets[kept]))
        changed = engine.under(between(engine.hypernetwork, tuned.hypernetwork, share))
        z = start + np.float32(share) * (tuned.z - start)
        scores[held] = log_probabilities(changed, [rows.ids[row] for row in held], z, trie, before_batch, at_once)
    return scores
