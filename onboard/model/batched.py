"""Label log-probabilities of any number of rows, in batches of like length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from onboard.model.engine import Engine
from onboard.model.hypernetwork import GeneratedAdapters
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie

BATCH = 64


@torch.inference_mode()
def log_probabilities(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    z: np.ndarray,
    trie: LabelTrie,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Of one task.

    Args:
        engine: the model.
        ids: token ids of n texts.
        z: (t,) the task embedding.
        trie: of K label words.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Returns:
        (n, K) float32, in the order of `ids`.

    Raises:
        OutOfMemoryError: the GPU has no room for a single row.
    """
    generated = engine.hypernetwork(torch.from_numpy(z)[None].to(engine.device))
    tasks = np.zeros(len(ids), dtype=np.int64)
    return mixed_log_probabilities(engine, ids, generated, [trie], tasks, before_batch, at_once)


@torch.inference_mode()
def mixed_log_probabilities(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    generated: GeneratedAdapters,
    tries: Sequence[LabelTrie],
    tasks: np.ndarray,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Of rows of different tasks, mixed in every batch.

    Args:
        engine: the model.
        ids: token ids of n texts.
        generated: adapters of T tasks.
        tries: T label tries.
        tasks: (n,) task of each row.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Returns:
        (n, K) float32 with K the largest number of labels; −inf beyond a row's own labels.

    Raises:
        OutOfMemoryError: the GPU has no room for a single row.
    """
    at_once = at_once or RowsAtOnce(BATCH)
    found = np.full((len(ids), max(trie.labels for trie in tries)), -np.inf, dtype=np.float32)
    order = np.argsort([len(row) for row in ids], kind="stable")

    def score(batch: np.ndarray) -> None:
        for part in at_once.parts(len(batch)):
            chosen = batch[part]
            rows = torch.from_numpy(tasks[chosen])
            scores = engine.score([ids[row] for row in chosen], generated, tries, rows)
            found[chosen, : scores.shape[1]] = scores.float().cpu().numpy()

    for start in range(0, len(order), BATCH):
        before_batch()
        batch = order[start : start + BATCH]
        at_once.fitting(len(batch), partial(score, batch))
    return found
