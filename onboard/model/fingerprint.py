"""The fingerprint of a labeled dataset: numbers that are similar for similar tasks, computed without training.

One half relates directions of the texts' features to labels: random projections of the covariance between the bare
encoder's features and the label words' embeddings. The other half describes texts and labels: projections of both
means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from onboard.model.batch import Batch
from onboard.model.engine import Engine
from onboard.model.projections import Projections
from onboard.model.scoring import LabelTrie

_TINY = 1e-6


@torch.no_grad()
def raw_fingerprint(engine: Engine, batches: Iterable[Batch], projections: Projections) -> np.ndarray:
    """Return the fingerprint of the rows of all batches: (t,) float32, to be scaled by `Fingerprints.scaled`.

    Args:
        engine: only its bare backbone is used, without adapters and hypernetwork.
        batches: some rows of the task; 32 suffice to distinguish kinds of tasks.
    """
    words = engine.backbone.get_input_embeddings().weight  # (V, h)
    usual = words.mean(0, dtype=torch.float32)
    batches = list(batches)
    with _without_dropout(engine.backbone):
        texts = torch.cat([engine.encode_features(batch.ids) for batch in batches])  # (n, h)
    with torch.autocast(engine.device.type, enabled=False):  # also within bf16 training
        features = [label_features(batch.trie, words) - usual for batch in batches]  # each (K, h)
        targets = [torch.from_numpy(batch.targets).to(usual) for batch in batches]
        labels = torch.cat([shares @ those for shares, those in zip(targets, features, strict=True)])
        return _projected(texts, labels, projections)


def _projected(x: Tensor, y: Tensor, projections: Projections) -> np.ndarray:
    """Project features of texts and of their labels (n, h) → (t,)."""
    mean_x, mean_y = x.mean(0), y.mean(0)
    x, y = x - mean_x, y - mean_y
    covariance = x.T @ y / len(x) / (_spread(x) * _spread(y) + _TINY)  # (h, h)
    left, right, both = (torch.from_numpy(matrix).to(x) for matrix in projections)
    projected = torch.cat([((left @ covariance) * right).sum(1), both @ torch.cat([mean_x, mean_y])])
    raw: np.ndarray = projected.cpu().numpy()
    return raw


@contextmanager
def _without_dropout(module: nn.Module) -> Iterator[None]:
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)


def _spread(centred: Tensor) -> Tensor:
    return centred.square().sum(1).mean().sqrt()


def label_features(trie: LabelTrie, words: Tensor) -> Tensor:
    """Return the mean embedding of the tokens that distinguish each label (K, h)."""
    edges = torch.cat([trie.branches.flatten(), torch.tensor([len(trie.edge_token)])])[trie.paths]  # (K, P)
    tokens = torch.cat([trie.edge_token, torch.tensor([0])])[edges].to(words.device)
    real = (edges < len(trie.edge_token)).to(words.device)[..., None]  # (K, P, 1)
    features: Tensor = (words[tokens].float() * real).sum(1) / real.sum(1).clamp(min=1)
    return features
