"""Loading stock T5s of every family from folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from support.refusals import refused
from transformers import BertConfig

from onboard.model.backbone import load_backbone, norm_parameters

Backbones = Callable[..., Any]


def test_a_saved_backbone_comes_back_frozen_with_equal_logits(
    backbone_of: Backbones, family: str, tmp_path: Path
) -> None:
    backbone = backbone_of(family)
    backbone.save_pretrained(tmp_path)
    loaded = load_backbone(tmp_path)
    assert type(loaded) is type(backbone)
    assert not loaded.training
    assert not any(p.requires_grad for p in loaded.parameters())
    batch = {"input_ids": torch.tensor([[5, 6, 1]]), "decoder_input_ids": torch.tensor([[0, 7]])}
    with torch.no_grad():
        assert torch.equal(loaded(**batch).logits, backbone(**batch).logits)
    tied = loaded.lm_head.weight is loaded.shared.weight
    assert tied == (not family.endswith("untied"))


def test_bfloat16_is_loaded_and_float16_is_refused(backbone_of: Backbones, tmp_path: Path) -> None:
    backbone_of("t5").save_pretrained(tmp_path)
    assert {p.dtype for p in load_backbone(tmp_path, dtype=torch.bfloat16).parameters()} == {torch.bfloat16}
    with refused("unknown-dtype"):
        load_backbone(tmp_path, dtype=torch.float16)


def test_folders_without_a_t5_are_refused(backbone_of: Backbones, tmp_path: Path) -> None:
    with refused("backbone-config-missing"):
        load_backbone(tmp_path)
    BertConfig().save_pretrained(tmp_path)
    with refused("not-a-t5"):
        load_backbone(tmp_path)
    backbone_of("t5").config.save_pretrained(tmp_path)
    with refused("backbone-unreadable"):
        load_backbone(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with refused("backbone-unreadable"):
        load_backbone(tmp_path)


def test_norms_are_all_of_t5s_and_only_those(backbone_of: Backbones) -> None:
    backbone = backbone_of("t5")
    names = {id(p): name for name, p in backbone.named_parameters()}
    norms = [names[id(p)] for p in norm_parameters(backbone)]
    assert len(norms) == len(set(norms)) == 3 * 2 + 1 + 2 * 3 + 1
    assert "encoder.final_layer_norm.weight" in norms
    assert "decoder.block.1.layer.1.layer_norm.weight" in norms
