"""Readout features of texts, and combined answers of embedding and readout.

The features are those of the bare encoder, without embedding and hypernetwork. So a readout stays valid when either
changes, one pass serves all tasks of a text, and rows can be left out in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from onboard.model.batched import BATCH, log_probabilities
from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.model.task_weights import Answering
from onboard.statistics.blocks import BLOCKS
from onboard.statistics.readout import Readout


def bare_features(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Return readout features of texts (`onboard.model.readout_features`). Each distinct text is encoded once.

    Args:
        ids: token ids of n texts.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into memory; kept for further calls.

    Returns:
        (n, 6h) float32, in the order of `ids`.

    Raises:
        OutOfMemoryError: a single row does not fit into the GPU's memory.
    """
    places = {text: place for place, text in enumerate(dict.fromkeys(map(tuple, ids)))}
    features = _read(engine, list(places), before_batch, at_once or RowsAtOnce(BATCH))
    return features[[places[tuple(row)] for row in ids]]


def _read(
    engine: Engine, texts: Sequence[Sequence[int]], before_batch: Callable[[], None], at_once: RowsAtOnce
) -> np.ndarray:
    features = np.zeros((len(texts), BLOCKS * engine.backbone.config.d_model), dtype=np.float32)
    order = np.argsort([len(text) for text in texts], kind="stable")

    @torch.inference_mode()  # inference mode is per thread
    def read(chosen: np.ndarray) -> np.ndarray:
        return engine.readout_features([texts[row] for row in chosen]).cpu().numpy()

    def fill(batch: np.ndarray) -> None:
        lengths = [len(texts[row]) for row in batch]
        parts = [batch[part] for part in at_once.parts_of_like_length(lengths, engine.device)]
        for chosen, of_part in zip(parts, side_by_side(engine.device, read, parts), strict=True):
            features[chosen] = of_part

    for start in range(0, len(order), BATCH):
        before_batch()
        batch = order[start : start + BATCH]
        at_once.fitting(len(batch), partial(fill, batch))
    return features


def probabilities_of(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    task: Answering,
    trie: LabelTrie,
    readout: Readout | None,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
    features: np.ndarray | None = None,
) -> np.ndarray:
    """Return the probabilities (n, K) of a task's embedding or weights, combined with its readout if it has one.

    Args:
        engine: with the hypernetwork of the embedding.
        ids: token ids of n texts.
        task: its embedding (t,) or weights; None if only the readout answers.
        trie: of K label words.
        readout: of the same labels in the same order, or None.
        before_batch, at_once: as in `bare_features`.
        features: of these texts, from `bare_features`, if already computed.
    """
    if task is None:
        probabilities = np.zeros((len(ids), trie.labels), dtype=np.float32)
    else:
        probabilities = np.exp(log_probabilities(engine, ids, task, trie, before_batch, at_once))
    if readout is None or not len(ids):
        return probabilities
    read = bare_features(engine, ids, before_batch, at_once) if features is None else features
    return readout.beside(probabilities, read)
