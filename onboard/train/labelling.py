"""Choose which unlabeled texts to label next: uncertain ones that differ from each other.

Uncertainty alone would return the same kind of sentence twenty times. Among the most uncertain texts, each next one is
therefore the farthest from those already chosen, by the frozen encoder's features (farthest-first, after arXiv
1708.00489).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.readout import probabilities_of
from onboard.model.scoring import LabelTrie
from onboard.model.task_weights import Answering
from onboard.statistics.label_order import SURE, farthest_first, uncertainty
from onboard.statistics.readout import Readout
from onboard.statistics.temperature import tempered

WANTED: Final = 20
SHORTLIST: Final = 60  # maximum number of most uncertain texts that are compared by features
Unlike = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Next:
    """A text (index) to label, the probabilities of its labels or buckets (K,), and their uncertainty.

    `uncertainty` is their entropy as a share of the maximum: 0 is certain, 1 is a uniform distribution. `unlike` is
    true for texts that are unlike the task's data.
    """

    row: int
    probabilities: np.ndarray
    uncertainty: float
    unlike: bool = False

    def at(self, temperature: float) -> Next:
        """Return the same text with the answer at this temperature."""
        probabilities = tempered(self.probabilities[None], temperature)
        return Next(self.row, probabilities[0], float(uncertainty(probabilities)[0]), self.unlike)


def label_next(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    trie: LabelTrie,
    task: Answering,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
    readout: Readout | None = None,
) -> list[Next]:
    """Return the texts to label next, most uncertain first: at most `WANTED` or half of them, and at least one.

    Texts with an answer more certain than `SURE` are left out, unless all are.

    Args:
        ids: token ids of n unlabeled texts, in an order that depends only on their content.
        trie: trie of K label words.
        task: the trained version: its embedding (t,), its weights, or nothing for a readout alone.
        before_batch: called before every batch; may raise to stop.
        at_once: batch size that fits in memory; updated for further calls.
        readout: the task's readout, if any.

    Raises:
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    at_once = at_once or RowsAtOnce()
    probabilities = probabilities_of(engine, ids, task, trie, readout, before_batch, at_once)
    return suggested(engine, ids, probabilities, at_once)


def suggested(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    probabilities: np.ndarray,
    at_once: RowsAtOnce,
    unlike: Unlike | None = None,
) -> list[Next]:
    """Return the texts to label next, given their probabilities (n, K).

    Texts unlike the task's data come last, and only if there are too few others: every model is unsure about "asdf",
    and its label teaches nothing.

    Args:
        unlike: returns whether the texts at these indices (m,) are unlike the task's data (m,); None treats none as
            unlike.
    """
    unsure = uncertainty(probabilities)
    count = min(WANTED, max(1, len(ids) // 2))
    ranked = np.argsort(-unsure, kind="stable")
    doubtful = ranked[probabilities[ranked].max(1) <= SURE]
    most = min(SHORTLIST, max(len(ids) // 2, count * 3 // 2))
    candidates = (doubtful if len(doubtful) else ranked[:1])[: 2 * most]
    strange = np.zeros(len(candidates), dtype=np.bool_) if unlike is None else unlike(candidates)
    shortlist, others = candidates[~strange][:most], candidates[strange]
    chosen = shortlist
    if len(shortlist):
        features = at_once.fitting(len(shortlist), lambda: _features(engine, [ids[row] for row in shortlist], at_once))
        chosen = shortlist[farthest_first(features, count)]
    ordered = chosen[np.argsort(-unsure[chosen], kind="stable")]
    last = others[: max(0, count - len(shortlist))]
    parts = ((ordered, False), (last, True))
    return [Next(int(row), probabilities[row], float(unsure[row]), odd) for part, odd in parts for row in part]


def by_worth(text: Next) -> tuple[bool, float]:
    """Return the sort key of texts to label: those unlike the task's data last, the most uncertain first."""
    return text.unlike, -text.uncertainty


@torch.inference_mode()
def _features(engine: Engine, ids: Sequence[Sequence[int]], at_once: RowsAtOnce) -> np.ndarray:
    parts = [engine.encode_features(ids[part]).cpu().numpy() for part in at_once.parts(len(ids))]
    return np.concatenate(parts).astype(np.float64)
