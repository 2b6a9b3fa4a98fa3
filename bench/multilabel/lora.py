"""LoRA of our backbone with an independent score per label: balanced binary cross-entropy through the label words.

The score of a label is the sum of the decoder's logits along its word, without the normalization over the task's
labels that makes answers with one label exclusive. A slope for all labels and an offset per label turn scores into
logits. They are fitted to the untrained scores first, then trained together with the adapters. As in the other
one-vs-rest arms, rows with a label and rows without it have the same total weight, and the threshold is 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)

from bench.harness.budgeted import SCORED_AT_ONCE
from bench.transfer.methods import CLIP, lora
from bench.transfer.recipes import Recipe
from onboard.model.encoding import pad
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie, PackedTries, edge_logits
from onboard.train.fewshot import batches

CURVE_RATE: Final = 0.03  # learning rate of slope and offsets
FIRST_RATE: Final = 0.1  # of their fit to the untrained scores
FIRST_STEPS: Final = 300
PLACES_HELD: Final = 0.05  # penalty for the spread of the offsets in that fit


@dataclass(frozen=True)
class LabelledTexts:
    """Rows as the model reads them.

    Args:
        ids: token ids of each row (n).
        truth: (n, L), 1 if a row has a label, else 0.
    """

    ids: Sequence[Sequence[int]]
    truth: np.ndarray


def lora_scores(
    engine: Engine, words: Sequence[str], rows: LabelledTexts, asked: Sequence[Sequence[int]], recipe: Recipe, seed: int
) -> np.ndarray:
    """Return the probabilities (m, L) of texts after training LoRA on rows.

    Args:
        engine: changed by the training.
        words: of each label.
        rows: labeled rows.
        asked: token ids of the texts.
        recipe: steps, batch and rate of the adapters.
        seed: of the adapters' start and of the order of the rows.
    """
    torch.manual_seed(seed)
    trained, trie = lora(engine, ["new"]).trained, engine.trie(words)
    truth = torch.from_numpy(rows.truth).float().to(engine.device)
    weights = balanced(truth)
    curve = Curve.of(_all_totals(engine, rows.ids, trie), truth, weights)
    optimizer = torch.optim.Adam(
        [{"params": trained, "lr": recipe.learning_rate}, {"params": curve.parameters, "lr": CURVE_RATE}]
    )
    steps = recipe.steps_for(len(rows.ids))
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 - step / steps)
    for batch_rows in batches([len(tokens) for tokens in rows.ids], steps, recipe.batch, seed):
        optimizer.zero_grad()
        logits = curve.logits(_totals(engine, [rows.ids[row] for row in batch_rows], trie))
        loss = _loss(logits, truth[batch_rows], weights[batch_rows])
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_([*trained, *curve.parameters], CLIP)
        optimizer.step()
        falling.step()
    with torch.no_grad():
        answered: np.ndarray = curve.logits(_all_totals(engine, asked, trie)).sigmoid().cpu().double().numpy()
    return answered


def balanced(truth: Tensor) -> Tensor:
    """Return the weight of each row for each label (n, L): rows with a label weigh as much in total as those without.

    A label that all rows or none have keeps weights of 1/2.
    """
    count = len(truth)
    present = truth.sum(0)
    return torch.where(truth > 0, count / (2 * present.clamp(min=1)), count / (2 * (count - present).clamp(min=1)))


@dataclass(frozen=True)
class Curve:
    """Turns totals of label words into logits.

    Args:
        log_slope: logarithm of the slope, of all labels.
        places: (L,) offset of each label.
    """

    log_slope: nn.Parameter
    places: nn.Parameter

    @classmethod
    def of(cls, totals: Tensor, truth: Tensor, weights: Tensor) -> Curve:
        """Fit the curve to the totals of an untrained model (n, L)."""
        curve = cls(nn.Parameter(totals.new_zeros(())), nn.Parameter(-totals.mean(0)))
        optimizer = torch.optim.Adam(curve.parameters, lr=FIRST_RATE)
        for _ in range(FIRST_STEPS):
            optimizer.zero_grad()
            spread = (curve.places - curve.places.mean()).square().mean()
            loss = _loss(curve.logits(totals), truth, weights) + PLACES_HELD * spread
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimizer.step()
        return curve

    @property
    def parameters(self) -> list[nn.Parameter]:
        """Slope and offsets."""
        return [self.log_slope, self.places]

    def logits(self, totals: Tensor) -> Tensor:
        """Return the logit of each label (n, L)."""
        return self.log_slope.exp() * totals + self.places


def _loss(logits: Tensor, truth: Tensor, weights: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, truth, weight=weights, reduction="sum") / len(truth)


@torch.no_grad()
def _all_totals(engine: Engine, ids: Sequence[Sequence[int]], trie: LabelTrie) -> Tensor:
    totals = torch.zeros(len(ids), trie.labels, device=engine.device)
    order = np.argsort([len(tokens) for tokens in ids], kind="stable")
    for start in range(0, len(order), SCORED_AT_ONCE):
        batch_rows = order[start : start + SCORED_AT_ONCE]
        totals[batch_rows] = _totals(engine, [ids[row] for row in batch_rows], trie)
    return totals


def _totals(engine: Engine, ids: Sequence[Sequence[int]], trie: LabelTrie) -> Tensor:
    """Return the sum of the logits along each label's word (B, L) under the backbone as it is."""
    backbone = engine.backbone
    input_ids, mask = pad(ids, engine.encoder.pad_id)
    input_ids, mask = input_ids.to(engine.device), mask.to(engine.device)
    with engine.attachment.bare():
        states = backbone.encoder(input_ids=input_ids, attention_mask=mask).last_hidden_state
        packed = PackedTries.pack([trie], backbone.config.decoder_start_token_id, engine.device)
        logits = F.pad(edge_logits(backbone, states, mask, packed, None), (0, 1))  # (B, E + 1), 0 for padding
    cells = F.pad(packed.branches[0].flatten(), (0, 1), value=logits.shape[1] - 1)  # the edge of each step
    totals: Tensor = logits[:, cells[packed.paths[0]]].sum(-1)
    return totals
