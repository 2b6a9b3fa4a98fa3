"""The loss of an episode: solve a readout on its support rows in closed form, and answer its query rows.

The readout is that of jobs (`onboard.statistics.readout`), written so that gradients flow to the encoder through the
solution: signed roots, blocks of equal length, ridge regression with the label words as an additional row of each
label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from onboard.making.multitask.episodes import Episode
from onboard.model.engine import Engine
from onboard.model.readout_features import blocks_of

SMOOTH = 1e-4  # under the root, because its slope at 0 is unbounded
RIDGE = 1.0
TOKENS_AT_ONCE = 16384  # padded tokens per pass of the encoder


@dataclass(frozen=True)
class EpisodeLosses:
    """The losses of one episode.

    Args:
        queries: cross-entropy of the query rows, nats.
        names: the same, from the label words alone.
        teacher: distance between the encoder's and the teacher's kernel of the rows; 0 without vectors.
        right: share of the query rows that are answered correctly.
    """

    queries: Tensor
    names: Tensor
    teacher: Tensor
    right: float


def episode_losses(
    engine: Engine, episode: Episode, features: Tensor, sharpness: Tensor, *, with_names: bool
) -> EpisodeLosses:
    """Solve and answer one episode.

    Args:
        engine: its encoder has read the rows.
        episode: its rows.
        features: (n + m + K, 6h) of its rows and its label words, from `read_episodes`.
        sharpness: (2,) logarithms of the inverse temperatures of readout and of names.
        with_names: whether each label's words are a training row.
    """
    blocks = blocks_of(pairs=engine.encoder.is_pair(episode.ids[0]))
    features = features[:, : blocks * engine.backbone.config.d_model]
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
    query_features = (rows[n:] - mean) / lengths
    scores = _ridge(x, y, query_features)
    queries = functional.cross_entropy(sharpness[0].exp() * scores, answers)
    centred = (rows[n:] - rows.mean(0)) / lengths
    by_names = sharpness[1].exp() * (centred @ (named - named.mean(0)).T)
    zero = functional.cross_entropy(by_names, answers)
    right = float((scores.argmax(1) == answers).float().mean())
    return EpisodeLosses(queries, zero, _kernel_distance(rows, blocks, episode), right)


def read_episodes(
    engine: Engine, episodes: Sequence[Episode], precision: torch.dtype = torch.float32
) -> Sequence[Tensor]:
    """Return signed roots of the readout features of every episode's rows and words, (n + m + K, 6h) each, without
    adapters.

    Rows of similar length are read together, across episodes.

    Args:
        engine: its encoder is trained.
        episodes: of one step.
        precision: the encoder's compute type; results are converted to float32.
    """
    counts = [len(episode.ids) + len(episode.names) for episode in episodes]
    ids = [row for episode in episodes for row in (*episode.ids, *episode.names)]
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    with torch.autocast(engine.device.type, dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
        read = torch.cat([engine.readout_features([ids[row] for row in part]) for part in _parts(ids, order)])
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    features = read[back.to(read.device)]
    roots = features.sign() * ((features.abs() + SMOOTH).sqrt() - SMOOTH**0.5)
    return torch.split(roots, counts)


def _parts(ids: Sequence[Sequence[int]], order: Sequence[int]) -> list[list[int]]:
    """Return the rows in order, in parts of at most `TOKENS_AT_ONCE` padded tokens."""
    parts: list[list[int]] = [[]]
    for row in order:
        if (len(parts[-1]) + 1) * len(ids[row]) > TOKENS_AT_ONCE and parts[-1]:
            parts.append([])
        parts[-1].append(row)
    return parts


def _block_lengths(centred: Tensor, blocks: int) -> Tensor:
    """As `onboard.statistics.blocks.lengths_of_blocks`, (h,)."""
    squares = centred.square().mean(0).reshape(blocks, -1).sum(1)
    lengths = torch.where(squares > 1e-8, blocks * squares, torch.ones_like(squares)).sqrt()
    return lengths.repeat_interleave(centred.shape[1] // blocks)


def _as_long(words: Tensor, mean: Tensor, blocks: int) -> Tensor:
    """Return the label words as rows on the task's scale (K, h), as in `onboard.statistics.blocks.with_names`."""
    width = words.shape[1] // blocks
    texts = min(3, blocks) * width  # the difference blocks of a pair contain no information about a word
    apart = torch.cat([words[:, :texts] - mean[:texts], torch.zeros_like(words[:, texts:])], dim=1)
    return apart / _block_lengths(apart, blocks)


def _ridge(x: Tensor, y: Tensor, asked: Tensor) -> Tensor:
    """Return scores (m, K) of a ridge regression of y (n, K) on x (n, h) with intercept, in its dual form."""
    kernel = x @ x.T + 1.0
    weights = torch.linalg.solve(kernel + RIDGE * torch.eye(len(x), device=x.device), y)
    scores: Tensor = (asked @ x.T + 1.0) @ weights
    return scores


def _kernel_distance(rows: Tensor, blocks: int, episode: Episode) -> Tensor:
    """Return 1 minus the correlation, over pairs of rows, of the encoder's and the teacher's cosines; 0 without
    vectors.

    As in centered kernel alignment (Kornblith et al. 2019, arXiv 1905.00414), only relative similarities matter.
    """
    if episode.vectors is None:
        return rows.new_zeros(())
    centred = rows - rows.mean(0)
    ours = functional.normalize(centred / _block_lengths(centred, blocks), dim=1)
    vectors = torch.from_numpy(episode.vectors).to(rows)
    theirs = functional.normalize(vectors - vectors.mean(0), dim=1)
    first, second = torch.triu_indices(len(rows), len(rows), 1, device=rows.device)
    pairs = torch.stack([(ours @ ours.T)[first, second], (theirs @ theirs.T)[first, second]])
    return 1.0 - torch.corrcoef(pairs)[0, 1]
