"""Parameter counts: the closed form, the paper's table, and counting on the meta device agree."""

from __future__ import annotations

from typing import Any

import pytest
from support.parameter_counts import closed_form, counted, on_meta, plain_closed_form
from transformers import T5Config

from onboard.model.methods.hyperformer import PlainHyperFormer

BASE: dict[str, Any] = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
SMALL: dict[str, Any] = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}


# method, sizes, trained with T = 8 and r = 32, per cent a task: measured on the authors' code
TABLE = [
    ("hyperformer", BASE, 122_404_672, 6.86),
    ("hyperformer", SMALL, 28_074_560, 5.80),
    ("hyperformer++", BASE, 5_211_056, 0.292),
    ("hyperformer++", SMALL, 2_415_776, 0.499),
]
FORMS = {"hyperformer": plain_closed_form, "hyperformer++": closed_form}


@pytest.mark.parametrize(
    ("method", "sizes", "trained", "per_task"),
    TABLE,
    ids=[f"{method}, T5-{'base' if sizes is BASE else 'small'}" for method, sizes, _, _ in TABLE],
)
def test_counts_are_those_of_the_authors_code(
    method: str, sizes: dict[str, Any], trained: int, per_task: float
) -> None:
    bottleneck, layers = sizes["d_model"] // 32, sizes["num_layers"]
    backbone, hypernetwork = on_meta(T5Config(**sizes, vocab_size=32128), bottleneck, method)
    assert all(p.is_meta for p in [*backbone.parameters(), *hypernetwork.parameters()])
    whole = sum(p.numel() for p in backbone.parameters())
    assert whole == {12: 222_903_552, 6: 60_506_624}[layers]
    assert counted(backbone, hypernetwork, tasks=8) == trained
    numbers = {"d_model": sizes["d_model"], "encoder_layers": layers, "decoder_layers": layers, "tasks": 8}
    assert FORMS[method](**numbers, bottleneck=bottleneck) == trained
    assert 100 * trained / whole / 8 == pytest.approx(per_task, rel=1e-3)


def test_the_closed_form_is_the_printed_one() -> None:
    t, e, h, d, layers, tasks = 64, 128, 512, 16, 6, 8
    printed = (
        2 * ((3 * t + 1) * e + (e + 1) * t + 2 * t + (layers + 2) * t + (t + 1) * (2 * h * d + 3 * h + d))
        + tasks * t
        + (5 * layers + 2) * h
    )
    assert printed == closed_form(d_model=h, encoder_layers=layers, decoder_layers=layers, bottleneck=d, tasks=tasks)


def test_the_closed_form_of_plain_hyperformer_is_the_printed_one() -> None:
    t, e, c, h, b, layers, tasks = 512, 128, 64, 768, 24, 12, 8
    printed = (
        (t + 1) * e + (e + 1) * c + 4 * layers * (c + 1) * (2 * h * b + 3 * h + b) + tasks * t + (5 * layers + 2) * h
    )
    numbers = {"d_model": h, "encoder_layers": layers, "decoder_layers": layers, "bottleneck": b, "tasks": tasks}
    assert printed == plain_closed_form(**numbers)


def test_stacks_of_different_depth_are_counted(backbone_of: Any, hypernetwork_for: Any) -> None:
    backbone = backbone_of("byt5")
    hypernetwork = hypernetwork_for(backbone, conditioning_size=7)
    expected = closed_form(
        d_model=32,
        encoder_layers=4,
        decoder_layers=1,
        bottleneck=6,
        tasks=3,
        task_embedding_size=12,
        projector_width=20,
        conditioning_size=7,
    )
    assert counted(backbone, hypernetwork, tasks=3) == expected


def test_plain_hypernetworks_of_stacks_of_different_depth_are_counted(backbone_of: Any) -> None:
    backbone = backbone_of("byt5")
    sizes = {"d_model": 32, "encoder_layers": 4, "decoder_layers": 1, "bottleneck": 6}
    sizes |= {"task_embedding_size": 12, "projector_width": 20, "conditioning_size": 7}
    assert counted(backbone, PlainHyperFormer(**sizes), tasks=3) == plain_closed_form(**sizes, tasks=3)
