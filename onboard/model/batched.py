"""Label log-probabilities of any number of rows, in batches of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from onboard.model.cores import side_by_side
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.on_demand import OnDemand
from onboard.model.scoring import LabelTrie
from onboard.model.task_weights import TaskWeights, Weights

BATCH = 64
ALIKE = 16  # tries with at most this many nodes cost almost nothing compared to the encoder


@torch.inference_mode()
def log_probabilities(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    task: np.ndarray | TaskWeights,
    trie: LabelTrie,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Return the label log-probabilities of rows of one task.

    Args:
        ids: token ids of n texts.
        task: its embedding (t,), or task-specific weights.
        trie: of K label words.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into memory; kept for further calls.

    Returns:
        (n, K) float32, in the order of `ids`.

    Raises:
        OutOfMemoryError: a single row does not fit into the GPU's memory.
    """
    if isinstance(task, TaskWeights):
        generated: Weights = task
    else:
        generated = engine.hypernetwork(torch.from_numpy(task)[None].to(engine.device))
    tasks = np.zeros(len(ids), dtype=np.int64)
    return mixed_log_probabilities(engine, ids, generated, [trie], tasks, before_batch, at_once)


@torch.inference_mode()
def mixed_log_probabilities(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    generated: Weights | OnDemand,
    tries: Sequence[LabelTrie],
    tasks: np.ndarray,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Return the label log-probabilities of rows of different tasks, mixed in every batch.

    Args:
        ids: token ids of n texts.
        generated: adapters of T tasks, or weights of T tasks with any methods. For large T they can be generated on
            demand, so that only those of a batch are in memory.
        tries: T label tries.
        tasks: (n,) task of each row.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into memory; kept for further calls.

    Returns:
        (n, K) float32, where K is the largest number of labels of a row; −inf beyond a row's labels.

    Raises:
        OutOfMemoryError: a single row does not fit into the GPU's memory.
    """
    row_tries = [tries[task] for task in tasks]  # per row, so that the cost of a batch does not depend on T
    log_probabilities = np.full((len(ids), max(trie.labels for trie in row_tries or tries)), -np.inf, dtype=np.float32)
    read = partial(_read, engine.score, generated, tries, tasks, ids)
    sizes = np.array([_size(trie) for trie in row_tries])
    for size in np.unique(sizes):  # by size, so that no row pays for a much larger trie
        _fill(log_probabilities, read, np.flatnonzero(sizes == size), ids, engine.device, before_batch, at_once)
    return log_probabilities


@torch.inference_mode()
def mixed_edge_logits(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    generated: Weights | OnDemand,
    tries: Sequence[LabelTrie],
    tasks: np.ndarray,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Return the logits of the tries' edges: (n, E) float32, where E is the largest number of edges of a row.

    Args:
        as `mixed_log_probabilities`.
    """
    row_tries = [tries[task] for task in tasks]
    logits = np.full((len(ids), max(len(trie.edge_token) for trie in row_tries or tries)), -np.inf, dtype=np.float32)
    read = partial(_read, engine.edge_logits, generated, tries, tasks, ids)
    _fill(logits, read, np.arange(len(ids)), ids, engine.device, before_batch, at_once)
    return logits


def _size(trie: LabelTrie) -> int:
    """Return the size class of a trie, a power of two. Sizes below `ALIKE` are one class, to fill batches."""
    return max(ALIKE, len(trie.tokens), len(trie.edge_token) // 4).bit_length()


def _read(
    score: Callable[..., Tensor],
    generated: Weights | OnDemand,
    tries: Sequence[LabelTrie],
    tasks: np.ndarray,
    ids: Sequence[Sequence[int]],
    chosen: np.ndarray,
) -> np.ndarray:
    tasks_present, whose = np.unique(tasks[chosen], return_inverse=True)
    with torch.inference_mode():  # inference mode is per thread
        if len(tasks_present) < len(tries) or isinstance(generated, OnDemand):
            generated, tries = generated.of(tasks_present.tolist()), [tries[task] for task in tasks_present]
        scores = score([ids[row] for row in chosen], generated, tries, torch.from_numpy(whose))
    return scores.float().cpu().numpy()


def _fill(
    answers: np.ndarray,
    read: Callable[[np.ndarray], np.ndarray],
    rows: np.ndarray,
    ids: Sequence[Sequence[int]],
    device: torch.device,
    before_batch: Callable[[], None],
    at_once: RowsAtOnce | None,
) -> None:
    """Write the results of `read` for these rows into `answers` (n, C), in batches of similar length."""
    at_once = at_once or RowsAtOnce(BATCH)
    order = rows[np.argsort([len(ids[row]) for row in rows], kind="stable")]

    def fill(batch: np.ndarray) -> None:
        parts = [batch[part] for part in at_once.parts_of_like_length([len(ids[row]) for row in batch], device)]
        for part_rows, scores in zip(parts, side_by_side(device, read, parts), strict=True):
            answers[part_rows, : scores.shape[1]] = scores

    for start in range(0, len(order), BATCH):
        before_batch()
        batch = order[start : start + BATCH]
        at_once.fitting(len(batch), partial(fill, batch))
