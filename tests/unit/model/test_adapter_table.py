"""Adapters as plain parameters: the paper's counts, a plain reference, and what a step may move."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import T5Config, T5ForConditionalGeneration

from bench.harness.adapter_table import AdapterTable
from onboard.model.attach import attach
from onboard.model.backbone import norm_parameters

BASE: dict[str, Any] = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
SMALL: dict[str, Any] = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}


def table_for(config: Any, bottleneck: int, tasks: int) -> AdapterTable:
    return AdapterTable(
        d_model=config.d_model, encoder_layers=config.num_layers, decoder_layers=config.num_decoder_layers,
        bottleneck=bottleneck, tasks=tasks,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "tasks", "trained"),
    [(BASE, 8, 14_581_248), (SMALL, 8, 3_288_064), (BASE, 1, 1_928_832), (SMALL, 1, 446_848)],
    ids=["base, eight tasks", "small, eight tasks", "base, one task", "small, one task"],
)
def test_counts_are_those_of_the_authors_code(shape: dict[str, Any], tasks: int, trained: int) -> None:
    config = T5Config(**shape, vocab_size=32128)
    with torch.device("meta"):
        backbone, table = T5ForConditionalGeneration(config), table_for(config, shape["d_model"] // 32, tasks)
    assert sum(p.numel() for p in [*table.parameters(), *norm_parameters(backbone)]) == trained


class PlainAdapter(nn.Module):
    """x + LN(U gelu(D x)) out of PyTorch's own layers, as one would write it for a single place and task."""

    def __init__(self, stack: Any, task: int, layer: int, position: int) -> None:
        super().__init__()
        bottleneck, size = stack.down[task].shape[-2:]
        self.down, self.up, self.norm = nn.Linear(size, bottleneck), nn.Linear(bottleneck, size), nn.LayerNorm(size)
        pairs = [
            (self.down.weight, stack.down[task]), (self.down.bias, stack.down_bias[task]),
            (self.up.weight, stack.up[task]), (self.up.bias, stack.up_bias[task]),
            (self.norm.weight, stack.gamma), (self.norm.bias, stack.beta),
        ]  # fmt: skip
        with torch.no_grad():
            for own, copied in pairs:
                own.copy_(copied[layer, position])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(self.up(functional.gelu(self.down(x), approximate="tanh")))


def hang(backbone: Any, table: AdapterTable, task: int) -> None:
    for name in ("encoder", "decoder"):
        for layer, block in enumerate(getattr(backbone, name).block):
            feed_forward, attention = (PlainAdapter(getattr(table, name), task, layer, place) for place in (0, 1))
            block.layer[-1].DenseReluDense.register_forward_hook(lambda *call, adapter=feed_forward: adapter(call[2]))
            block.layer[0].SelfAttention.register_forward_hook(
                lambda *call, adapter=attention: (adapter(call[2][0]), *call[2][1:])
            )


@pytest.fixture
def table(backbone_of: Any) -> AdapterTable:
    table = table_for(backbone_of("t5").config, 6, tasks=3)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in table.parameters():
            parameter.normal_(std=0.3)
    return table


def test_each_row_gets_its_tasks_adapters_as_plain_layers_compute_them(backbone_of: Any, table: AdapterTable) -> None:
    backbone = backbone_of("t5")
    inputs = {"input_ids": torch.randint(2, 400, (4, 9)), "labels": torch.randint(2, 400, (4, 3))}
    with torch.no_grad(), attach(backbone).using(table(torch.tensor([2, 0])), torch.tensor([0, 1, 1, 0])):
        mixed = backbone(**inputs).logits
    for task, rows in ((2, [0, 3]), (0, [1, 2])):
        reference = backbone_of("t5")
        hang(reference, table, task)
        with torch.no_grad():
            expected = reference(**inputs).logits
        torch.testing.assert_close(mixed[rows], expected[rows], rtol=1e-5, atol=1e-5)


def test_tasks_that_are_not_in_the_batch_get_no_gradient(backbone_of: Any, table: AdapterTable) -> None:
    backbone = backbone_of("t5").requires_grad_(False)
    with attach(backbone).using(table(torch.tensor([1]))):
        backbone(input_ids=torch.tensor([[5, 6]]), labels=torch.tensor([[7]])).loss.backward()
    moved = {name for name, parameter in table.named_parameters() if parameter.grad is not None}
    own = {f"{stack}.{kind}.1" for stack in ("encoder", "decoder") for kind in ("down", "down_bias", "up", "up_bias")}
    assert moved == own | {f"{stack}.{kind}" for stack in ("encoder", "decoder") for kind in ("gamma", "beta")}


@pytest.mark.parametrize("tasks", [torch.tensor([3]), torch.tensor([-1]), torch.tensor([[0]]), torch.tensor([0.0])])
def test_a_number_without_a_task_is_refused(table: AdapterTable, tasks: Tensor) -> None:
    with pytest.raises(ValueError, match="task"):
        table(tasks)
