"""The loss of an episode: a readout is solved on its support rows in closed form, and answers its query rows.

The same readout as a job's (`onboard.statistics.readout`), written so that gradients reach the encoder through the
solution: signed roots, blocks of equal length, ridge regression with the labels' words as one more row of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from onboard.bases.multitask.episodes import Episode
from onboard.model.engine import Engine
from onboard.model.readout_features import blocks_of

SMOOTH = 1e-4  # under the root, whose slope at 0 has no bound
RIDGE = 1.0


@dataclass(frozen=True)
class EpisodeLosses:
    """What one episode says.

    Args:
        queries: cross-entropy of the query rows, nats.
        names: the same from the labels' words alone.
        teacher: distance between the encoder's kernel of the rows and the teacher's; 0 without vectors.
        right: share of the query rows that are answered rightly.
    """

    queries: Tensor
    names: Tensor
    teacher: Tensor
    right: float


def episode_losses(
    engine: Engine, episode: Episode, sharpness: Tensor, *, with_names: bool, precision: torch.dtype = torch.float32
) -> EpisodeLosses:
    """Solve and answer one episode.

    Args:
        engine: whose encoder learns; without adapters.
        episode: its rows.
        sharpness: (2,) logarithms of the inverse temperatures of readout and of names.
        with_names: whether the labels' words are a row of them.
        precision: the type that the encoder computes in; the readout is solved in float32.
    """
    pairs = any(engine.encoder.is_pair(row) for row in episode.ids[:1])
    blocks = blocks_of(pairs=pairs)
    with torch.autocast(engine.device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
        features = _features(engine, [*episode.ids, *episode.names], blocks)
    rows, words = features[: len(episode.ids)], features[len(episode.ids) :]
    n, k = episode.support, len(episode.names)
    labels = torch.from_numpy(episode.labels).to(features.device)
    eye = torch.eye(k, device=features.device)
    of_support, answers = rows[:n], labels[n:]
    mean = of_support.mean(0)
    lengths = _block_lengths(of_support - mean, blocks)
    x, y = (of_support - mean) / lengths, eye[labels[:n]]
    named = _as_long(words, mean, blocks)
    if with_names:
        x, y = torch.cat([x, named]), torch.cat([y, eye])
    asked = (rows[n:] - mean) / lengths
    scores = _ridge(x, y, asked)
    queries = functional.cross_entropy(sharpness[0].exp() * scores, answers)
    centred = (rows[n:] - rows.mean(0)) / lengths
    by_names = sharpness[1].exp() * (centred @ (named - named.mean(0)).T)
    zero = functional.cross_entropy(by_names, answers)
    right = float((scores.argmax(1) == answers).float().mean())
    return EpisodeLosses(queries, zero, _kernel_distance(rows, blocks, episode), right)


def _features(engine: Engine, ids: list[list[int]], blocks: int) -> Tensor:
    """Signed roots of the blocks that such rows have (N, blocks·h), read in two parts of like length."""
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    parts = [order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]]
    read = torch.cat([engine.readout_features([ids[row] for row in part]) for part in parts if part])
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    seen = read[back.to(read.device)][:, : blocks * engine.backbone.config.d_model]
    return seen.sign() * ((seen.abs() + SMOOTH).sqrt() - SMOOTH**0.5)


def _block_lengths(centred: Tensor, blocks: int) -> Tensor:
    """As `onboard.statistics.blocks.lengths_of_blocks`, (h,)."""
    squares = centred.square().mean(0).reshape(blocks, -1).sum(1)
    lengths = torch.where(squares > 1e-8, blocks * squares, torch.ones_like(squares)).sqrt()
    return lengths.repeat_interleave(centred.shape[1] // blocks)


def _as_long(words: Tensor, mean: Tensor, blocks: int) -> Tensor:
    """The words as rows of the task, on its scale: (K, h), as `onboard.statistics.blocks.with_names` makes them."""
    width = words.shape[1] // blocks
    texts = min(3, blocks) * width  # of a pair the differences say nothing of a word
    apart = torch.cat([words[:, :texts] - mean[:texts], torch.zeros_like(words[:, texts:])], dim=1)
    return apart / _block_lengths(apart, blocks)


def _ridge(x: Tensor, y: Tensor, asked: Tensor) -> Tensor:
    """Scores (m, K) of a ridge regression of y (n, K) on x (n, h) with an intercept, solved among the rows."""
    kernel = x @ x.T + 1.0
    weights = torch.linalg.solve(kernel + RIDGE * torch.eye(len(x), device=x.device), y)
    return (asked @ x.T + 1.0) @ weights


def _kernel_distance(rows: Tensor, blocks: int, episode: Episode) -> Tensor:
    """Mean squared distance of cosines between centred rows, the encoder's and the teacher's."""
    if episode.vectors is None:
        return rows.new_zeros(())
    centred = rows - rows.mean(0)
    ours = functional.normalize(centred / _block_lengths(centred, blocks), dim=1)
    vectors = torch.from_numpy(episode.vectors).to(rows)
    theirs = functional.normalize(vectors - vectors.mean(0), dim=1)
    return functional.mse_loss(ours @ ours.T, theirs @ theirs.T)
