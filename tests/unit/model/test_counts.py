"""Parameter counts: the closed form, the paper's table, and counting on the meta device agree."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import T5Config

from onboard.model.counts import closed_form, counted, on_meta

BASE: dict[str, Any] = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
SMALL: dict[str, Any] = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}


@pytest.mark.parametrize(
    ("sizes", "trained", "whole", "per_task"),
    [(BASE, 5_211_056, 222_903_552, 0.292), (SMALL, 2_415_776, 60_506_624, 0.499)],
    ids=["T5-base", "T5-small"],
)
def test_counts_are_those_of_the_authors_code(sizes: dict[str, Any], trained: int, whole: int, per_task: float) -> None:
    bottleneck = sizes["d_model"] // 32
    backbone, hypernetwork = on_meta(T5Config(**sizes, vocab_size=32128), bottleneck)
    assert all(p.is_meta for p in [*backbone.parameters(), *hypernetwork.parameters()])
    assert sum(p.numel() for p in backbone.parameters()) == whole
    assert counted(backbone, hypernetwork, tasks=8) == trained
    layers = sizes["num_layers"]
    assert (
        closed_form(
            d_model=sizes["d_model"], encoder_layers=layers, decoder_layers=layers, bottleneck=bottleneck, tasks=8
        )
        == trained
    )
    assert 100 * trained / whole / 8 == pytest.approx(per_task, abs=5e-4)


def test_the_closed_form_is_the_printed_one() -> None:
    t, e, h, d, layers, tasks = 64, 128, 512, 16, 6, 8
    printed = (
        2 * ((3 * t + 1) * e + (e + 1) * t + 2 * t + (layers + 2) * t + (t + 1) * (2 * h * d + 3 * h + d))
        + tasks * t
        + (5 * layers + 2) * h
    )
    assert printed == closed_form(d_model=h, encoder_layers=layers, decoder_layers=layers, bottleneck=d, tasks=tasks)


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
