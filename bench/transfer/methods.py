"""Methods other than an embedding alone: each with parameters and scores, and one training loop for all.

Every method reads the same token ids, trains the loss that is scored (the distribution over the task's own labels) and
starts from the base's backbone, which has learned the source tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from bench.harness.budgeted import SCORED_AT_ONCE, Method
from bench.harness.variants import Build, adapters, full_fine_tuning
from bench.transfer.recipes import Recipe
from onboard.making.multitask.loss import bare_scores
from onboard.model.batch import Batch
from onboard.model.encoding import pad
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie, PackedTries, label_log_probabilities
from onboard.train.fewshot import batches

LORA_RANK: Final = 8
PROMPT_TOKENS: Final = 20
CLIP: Final = 1.0  # norm of the gradient, as the authors have it

Scores = Callable[[Sequence[Sequence[int]], LabelTrie], Tensor]  # B texts → (B, K) log-probabilities


@dataclass(frozen=True)
class Learner:
    """Something that can be trained on labelled texts.

    Args:
        groups: parameters with their learning rates.
        scores: log-probabilities of the labels, differentiable in them.
    """

    groups: Sequence[tuple[Sequence[nn.Parameter], float]]
    scores: Scores


def baseline(name: str, engine: Engine, recipe: Recipe) -> Learner:
    """One of BUILDS on an engine of the caller's own."""
    method = BUILDS[name](engine, ["new"])
    nothing = np.empty(0, dtype=np.float32)

    def scores(ids: Sequence[Sequence[int]], trie: LabelTrie) -> Tensor:
        return method.scores_of([Batch(list(ids), trie, nothing)], [0], 0)[0]

    return Learner([(method.trained, recipe.learning_rate)], scores)


def fit(
    learner: Learner, ids: Sequence[Sequence[int]], targets: np.ndarray, trie: LabelTrie, recipe: Recipe, seed: int
) -> int:
    """Minimise the loss; Adam, no weight decay, the rates fall linearly.

    Args:
        learner: the trained parts.
        ids: token ids of each row (n).
        targets: distribution over labels of each row (n, K).
        trie: of the label words.
        recipe: steps, batch and rates.
        seed: of the batches' order.

    Returns:
        Rows that went through the model, forward and backward.
    """
    parameters = [parameter for group, _ in learner.groups for parameter in group]
    optimiser = torch.optim.Adam([{"params": list(group), "lr": rate} for group, rate in learner.groups])
    steps = recipe.steps_for(len(ids))
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / steps)
    passes = 0
    for rows in batches([len(tokens) for tokens in ids], steps, recipe.batch, seed):
        optimiser.zero_grad()
        scores = learner.scores([ids[row] for row in rows], trie)
        loss = -(torch.from_numpy(targets[rows]).to(scores) * scores).sum(-1).mean()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimiser.step()
        falling.step()
        passes += len(rows)
    return passes


def answers(learner: Learner, ids: Sequence[Sequence[int]], trie: LabelTrie) -> np.ndarray:
    """The most probable label of each text (n,)."""
    labels: np.ndarray = scored(learner, ids, trie).argmax(1)
    return labels


@torch.no_grad()
def scored(learner: Learner, ids: Sequence[Sequence[int]], trie: LabelTrie) -> np.ndarray:
    """Log-probabilities of the labels of each text (n, K)."""
    scores = np.empty((len(ids), trie.labels), dtype=np.float64)
    order = np.argsort([len(tokens) for tokens in ids], kind="stable")
    for start in range(0, len(order), SCORED_AT_ONCE):
        rows = order[start : start + SCORED_AT_ONCE]
        scores[rows] = learner.scores([ids[row] for row in rows], trie).cpu().numpy()
    return scores


def lora(engine: Engine, tasks: Sequence[str]) -> Method:
    """PEFT's LoRA of rank 8 on the query and value projections."""
    from peft import LoraConfig, inject_adapter_in_model

    del tasks
    config = LoraConfig(r=LORA_RANK, lora_alpha=2 * LORA_RANK, lora_dropout=0.0, target_modules=["q", "v"])
    inject_adapter_in_model(config, engine.backbone)
    trained = nn.ParameterList(parameter for name, parameter in engine.backbone.named_parameters() if "lora_" in name)
    return Method({"lora": trained}, bare_scores(engine))


def prompt_tuning(engine: Engine, tasks: Sequence[str]) -> Method:
    """PEFT's prompt tuning: vectors before the encoder's input, which start as tokens of the vocabulary."""
    from peft import PromptTuningConfig, PromptTuningInit, TaskType
    from peft.tuners.prompt_tuning import PromptEmbedding

    del tasks
    config = PromptTuningConfig(
        task_type=TaskType.SEQ_2_SEQ_LM, num_virtual_tokens=PROMPT_TOKENS, token_dim=engine.backbone.config.d_model,
        num_transformer_submodules=1, prompt_tuning_init=PromptTuningInit.SAMPLE_VOCAB,
    )  # fmt: skip
    prompt = PromptEmbedding(config, engine.backbone.shared)

    def scores_of(drawn: Sequence[Batch], *_: object) -> list[Tensor]:
        return [_prompted(engine, prompt, batch) for batch in drawn]

    return Method({"prompt": prompt}, scores_of)


def _prompted(engine: Engine, prompt: nn.Module, batch: Batch) -> Tensor:
    backbone = engine.backbone
    input_ids, mask = pad(batch.ids, engine.encoder.pad_id)  # (B, S)
    vectors = prompt(torch.arange(PROMPT_TOKENS)).expand(len(input_ids), -1, -1)  # (B, P, h)
    embedded = torch.cat((vectors, backbone.shared(input_ids)), dim=1)
    mask = torch.cat((mask.new_ones(len(mask), PROMPT_TOKENS), mask), dim=1)
    with engine.attachment.bare():
        states = backbone.encoder(inputs_embeds=embedded, attention_mask=mask).last_hidden_state
        packed = PackedTries.pack([batch.trie], backbone.config.decoder_start_token_id, engine.device)
        return label_log_probabilities(backbone, states, mask, packed, None)


BUILDS: Final[dict[str, Build]] = {
    "full": full_fine_tuning,
    "adapters": adapters(gamma_start=0.0),  # from 1, as the authors have it, `mini` forgets what it knows (ablations)
    "lora": lora,
    "prompt": prompt_tuning,
}
