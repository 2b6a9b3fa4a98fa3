"""Label log-probabilities of any number of rows, in batches of like length."""

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
ALIKE = 16  # nodes of a trie up to which it costs next to nothing beside the encoder


@torch.inference_mode()
def log_probabilities(
    engine: Engine,
    ids: Sequence[Sequence[int]],
    task: np.ndarray | TaskWeights,
    trie: LabelTrie,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
) -> np.ndarray:
    """Of one task.

    Args:
        engine: the model.
        ids: token ids of n texts.
        task: its embedding (t,), or task-specific weights.
        trie: of K label words.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Returns:
        (n, K) float32, in the order of `ids`.

    Raises:
        OutOfMemoryError: the GPU has no room for a single row.
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
    """Of rows of different tasks, mixed in every batch.

    Args:
        engine: the model.
        ids: token ids of n texts.
        generated: adapters of T tasks, or the weights of T tasks of any methods; made on demand where T is large, as
            those of a batch's own tasks are all that is in memory then.
        tries: T label tries.
        tasks: (n,) task of each row.
        before_batch: called before every batch; may raise to stop.
        at_once: how many rows fit into the memory; kept for further calls.

    Returns:
        (n, K) float32 with K the largest number of labels of a row; −inf beyond a row's own labels.

    Raises:
        OutOfMemoryError: the GPU has no room for a single row.
    """
    own = [tries[task] for task in tasks]  # whatever T is, a batch costs what its rows cost
    log_probabilities = np.full((len(ids), max(trie.labels for trie in own or tries)), -np.inf, dtype=np.float32)
    read = partial(_read, engine.score, generated, tries, tasks, ids)
    sizes = np.array([_size(trie) for trie in own])
    for size in np.unique(sizes):  # no row pays for a trie that is much larger than its own
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
    """The logits of the tries' edges instead: (n, E) float32 with E the largest number of edges of a row.

    Args:
        as `mixed_log_probabilities`.
    """
    own = [tries[task] for task in tasks]
    logits = np.full((len(ids), max(len(trie.edge_token) for trie in own or tries)), -np.inf, dtype=np.float32)
    read = partial(_read, engine.edge_logits, generated, tries, tasks, ids)
    _fill(logits, read, np.arange(len(ids)), ids, engine.device, before_batch, at_once)
    return logits


def _size(trie: LabelTrie) -> int:
    """How large a trie is, to a power of two; below `ALIKE` all count as alike, for batches are better full."""
    return max(ALIKE, len(trie.tokens), len(trie.edge_token) // 4).bit_length()


def _read(
    score: Callable[..., Tensor],
    generated: Weights | OnDemand,
    tries: Sequence[LabelTrie],
    tasks: np.ndarray,
    ids: Sequence[Sequence[int]],
    chosen: np.ndarray,
) -> np.ndarray:
    present, whose = np.unique(tasks[chosen], return_inverse=True)
    with torch.inference_mode():  # a thread of its own has not the caller's
        if len(present) < len(tries) or isinstance(generated, OnDemand):
            generated, tries = generated.of(present.tolist()), [tries[task] for task in present]
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
    """Put into `found` (n, C) what `read` finds of these rows of it, in batches of like length."""
    at_once = at_once or RowsAtOnce(BATCH)
    order = rows[np.argsort([len(ids[row]) for row in rows], kind="stable")]

    def fill(batch: np.ndarray) -> None:
        parts = [batch[part] for part in at_once.parts_of_like_length([len(ids[row]) for row in batch], device)]
        for chosen, scores in zip(parts, side_by_side(device, read, parts), strict=True):
            answers[chosen, : scores.shape[1]] = scores

    for start in range(0, len(order), BATCH):
        before_batch()
        batch = order[start : start + BATCH]
        at_once.fitting(len(batch), partial(fill, batch))
