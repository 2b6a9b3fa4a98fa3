"""Which unlabelled texts to label next: those that the embedding is least sure of, and not many that say the same.

Uncertainty alone would ask twenty times for the same kind of sentence; among the most uncertain texts, each next one is
the one farthest from those that were taken, by the frozen encoder's features (farthest-first, after arXiv 1708.00489).
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
SHORTLIST: Final = 60  # most uncertain texts, at most, that are told apart by their features
Unlike = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Next:
    """A text (index) to label, the probabilities of its labels or buckets (K,), and how unsure they are.

    `uncertainty` is their entropy as a share of the most that there can be: 0 is sure, 1 has no idea.
    `unlike` says that the text is unlike the task's data.
    """

    row: int
    probabilities: np.ndarray
    uncertainty: float
    unlike: bool = False

    def at(self, temperature: float) -> Next:
        """The same as it is answered at that temperature."""
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
    """The texts to label next, the most uncertain first: `WANTED` or half of them at most, and one at least.

    Texts whose answer is surer than `SURE` are left out, unless all are.

    Args:
        engine: the model.
        ids: token ids of n unlabelled texts, in an order that follows from what they say.
        trie: of K label words.
        task: what answers of the trained version: its embedding (t,), its weights, or only the readout.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.
        readout: that answers beside the task, if any does.

    Raises:
        OutOfMemoryError: the GPU has no room for a single row.
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
    """The same of texts that were answered already, with probabilities (n, K).

    Texts unlike the task's data come last, and only where others are too few: nobody is sure of "asdf", and its label
    teaches nothing.

    Args:
        unlike: says of places of texts (m,) whether they are unlike the task's data (m,); None takes none for that.
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
    """What texts to label next are sorted by: those unlike the task's data last, the most uncertain first."""
    return text.unlike, -text.uncertainty


@torch.inference_mode()
def _features(engine: Engine, ids: Sequence[Sequence[int]], at_once: RowsAtOnce) -> np.ndarray:
    parts = [engine.encode_features(ids[part]).cpu().numpy() for part in at_once.parts(len(ids))]
    return np.concatenate(parts).astype(np.float64)
