"""The encoder follows the teacher: batches of like length, a loss that falls, a step size for every matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.tiny_teacher import make_teacher
from torch import nn

from onboard.making.multitask.loop import Running, StepLoss, TrainingStage, run_stage
from onboard.making.pretrain.distill import Distillation, Keeping, relative_groups
from onboard.making.pretrain.inherit import new_backbone, with_start
from onboard.making.pretrain.recipe import BackboneShape, DistillStage
from onboard.making.pretrain.teacher import Teacher, pooled
from onboard.model.encoding import pad

SIZE = 64  # pieces
NONE = np.zeros((0, 16), dtype=np.float16)


@pytest.fixture
def teacher(words: list[str]) -> Teacher:
    return make_teacher(words)


@pytest.fixture
def backbone(teacher: Teacher) -> Any:
    torch.manual_seed(0)
    return new_backbone(BackboneShape(vocabulary_size=SIZE, d_ff=32, decoder_layers=1, max_tokens=64), teacher)


@pytest.fixture(scope="module")
def sequences() -> list[list[int]]:
    """3,000 texts of 2 to 60 tokens, with their end."""
    rng = np.random.default_rng(1)
    return [[*rng.integers(3, SIZE, int(rng.integers(1, 60))).tolist(), 1] for _ in range(3000)]


def distillation(sequences: list[list[int]], vectors: np.ndarray = NONE, seed: int = 0) -> Distillation:
    return Distillation(sequences, vectors, torch.arange(SIZE) + 5, 400, seed)


def values(losses: list[StepLoss]) -> list[float]:
    return [float(loss.value.detach()) for loss in losses]


def test_a_batch_is_of_like_length_holds_the_recipes_tokens_and_follows_from_seed_and_step(
    backbone: Any, teacher: Teacher, sequences: list[list[int]]
) -> None:
    seen: list[torch.Tensor] = []

    def look(module: nn.Module, arguments: Any, named: dict[str, torch.Tensor]) -> None:
        del module, arguments
        seen.append(named["attention_mask"])

    backbone.encoder.register_forward_pre_hook(look, with_kwargs=True)
    many = sequences * 10
    loss_of = distillation(many).loss(backbone, teacher)
    losses = [loss_of(step) for step in range(20)]
    assert [loss.tokens for loss in losses] == [int(mask.sum()) for mask in seen]
    assert [loss.rows for loss in losses] == [len(mask) for mask in seen]
    assert np.mean([float(mask.float().mean()) for mask in seen]) > 0.9  # hardly any padding
    assert all(8 <= len(mask) <= 128 for mask in seen)
    assert 250 < np.mean([mask.numel() for mask in seen]) < 550
    assert max(mask.shape[1] for mask in seen) > 40 > 20 > min(mask.shape[1] for mask in seen)
    again = distillation(many).loss(backbone, teacher)
    assert values([again(step) for step in (7, 3)]) == [values(losses)[step] for step in (7, 3)]
    other = distillation(many, seed=1).loss(backbone, teacher)
    assert values([other(7)]) != [values(losses)[7]]


def test_what_learns_tasks_keeps_its_teachers_vectors(
    backbone: Any, teacher: Teacher, sequences: list[list[int]]
) -> None:
    texts = sequences[:200]
    with torch.no_grad():
        ids, mask = pad(texts, 0)
        vectors = pooled(teacher.model(input_ids=ids + 5, attention_mask=mask).last_hidden_state, mask)
    keeping = Keeping(texts, vectors.numpy().astype(np.float16), 400, 0, 0.5)
    drift = nn.Parameter(torch.zeros(()))
    loss_of = keeping.beside(lambda step: StepLoss(drift + step, "task", 3, 30), backbone.encoder, torch.float32)
    first = loss_of(2)
    assert (first.task, first.rows, first.tokens) == ("task", 3, 30)  # what is told is the task's
    apart = float(first.value.detach()) - 2
    assert apart > 0
    assert float(loss_of(2).value.detach()) - 2 == pytest.approx(apart)
    assert float(loss_of(3).value.detach()) - 3 != pytest.approx(apart)
    optimiser = torch.optim.Adam(backbone.encoder.parameters(), lr=1e-3)
    for step in range(60):
        optimiser.zero_grad()
        loss_of(step).value.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimiser.step()
    assert float(loss_of(2).value.detach()) - 2 < 0.7 * apart


def test_distilling_lowers_the_loss(
    backbone: Any, teacher: Teacher, sequences: list[list[int]], tmp_path: Path
) -> None:
    loss_of = distillation(sequences).loss(backbone, teacher)
    held_out = range(1000, 1006)
    with torch.no_grad():
        before = np.mean(values([loss_of(step) for step in held_out]))
    schedule = DistillStage(steps=40, batch=400, learning_rate=1e-2, warmup_steps=4)
    encoder = backbone.encoder
    relative = relative_groups(dict(encoder.named_parameters()))
    stage = TrainingStage("distill", schedule, {"encoder": encoder}, relative, loss_of, {})
    run_stage(stage, Running(tmp_path, lambda line: None))
    with torch.no_grad():
        after = np.mean(values([loss_of(step) for step in held_out]))
    assert after < 0.7 * before
    assert nearest_layer(backbone, teacher, sequences[:64]) == 1


@torch.no_grad()
def nearest_layer(backbone: Any, teacher: Teacher, sequences: list[list[int]]) -> int:
    """The teacher's layer (1 or 2) whose states are most like those of the student's first."""
    ids, mask = pad(sequences, 0)
    ours = backbone.encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[1]
    taught, seen = with_start(ids, mask, torch.arange(SIZE) + 5, teacher.tokenizer.cls_token_id)
    theirs = teacher.model(input_ids=taught, attention_mask=seen, output_hidden_states=True).hidden_states[1:]
    likeness = [torch.cosine_similarity(ours, states[:, 1:].float(), dim=-1)[mask.bool()].mean() for states in theirs]
    return 1 + int(torch.stack(likeness).argmax())


def test_every_layer_of_the_encoder_and_nothing_of_the_teacher_or_decoder_learns(
    backbone: Any, teacher: Teacher, sequences: list[list[int]]
) -> None:
    distillation(sequences).loss(backbone, teacher)(0).value.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    assert all(parameter.grad is not None for parameter in backbone.encoder.parameters())
    assert all(parameter.grad is None for name, parameter in backbone.decoder.named_parameters() if "embed" not in name)
    assert all(parameter.grad is None for parameter in teacher.model.parameters())


def test_the_vectors_of_whole_words_count_where_they_are_known(
    backbone: Any, teacher: Teacher, sequences: list[list[int]]
) -> None:
    ids, mask = pad(sequences, 0)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        own = pooled(backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float(), mask)
    agreed = own.numpy().astype(np.float16)  # as if the teacher said of every text what the student says
    half = len(sequences) // 2
    losses = [distillation(sequences, vectors).loss(backbone, teacher)(0) for vectors in (NONE, agreed[:half], agreed)]
    none, some, all_known = values(losses)
    assert all_known < some < none


def test_the_step_size_of_a_matrix_is_relative_to_its_size() -> None:
    parameters = {
        "block.0.wi.weight": nn.Parameter(torch.full((4, 4), -0.05)),
        "block.0.wo.weight": nn.Parameter(torch.full((4, 4), 2.0)),
        "block.0.small.weight": nn.Parameter(torch.full((4, 4), 1e-4)),
        "block.0.layer_norm.weight": nn.Parameter(torch.full((4,), 3.0)),
        "block.0.relative_attention_bias.weight": nn.Parameter(torch.zeros(4, 2)),
        "decoder.block.0.wi.weight": nn.Parameter(torch.full((4, 4), 0.05)),
    }
    groups = relative_groups(parameters, decoder=1.5)
    assert [parameter for (parameter,), _ in groups] == list(parameters.values())
    assert [multiple for _, multiple in groups] == pytest.approx([0.05, 2.0, 0.01, 1.0, 5.0, 0.075])
    assert relative_groups(parameters)[-1][1] == pytest.approx(0.05)
