"""A base in a folder: weights in float16 or int8, bit for bit those that were rounded, nothing of an earlier base."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.refusals import refused
from torch import nn
from transformers import AutoTokenizer

from onboard.bases import find_base
from onboard.bases.fingerprints import FINGERPRINTS
from onboard.bases.load import load_engine
from onboard.domain.dataset import Example
from onboard.making.curriculum import Source
from onboard.making.multitask.assemble import Description, TrainedBase, Weights, save_base
from onboard.making.multitask.hypernetwork import round_to_half
from onboard.model.backbone import load_backbone
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.methods import new_hypernetwork
from onboard.model.quantised import round_to_stored

ROUNDED: dict[Weights, Callable[[nn.Module], None]] = {"float16": round_to_half, "int8": round_to_stored}
ROWS = (Example("a good film", None, "yes"), Example("a bad plot", None, "no"))
SOURCE = Source("moods", "classification", ("no", "yes"), ("no", "yes"), None, None, ROWS)


def make_engine(folder: Path) -> Engine:
    """With a hypernetwork of which some matrices are large enough for int8."""
    backbone, tokenizer = load_backbone(folder), AutoTokenizer.from_pretrained(folder)
    sizes = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "bottleneck": 16, "task_embedding_size": 16}
    torch.manual_seed(0)
    return Engine(backbone, new_hypernetwork("hyperformer++", sizes), TextEncoder(tokenizer, "|", 32))


def write(engine: Engine, weights: Weights, output: Path) -> None:
    trained = TrainedBase(engine, [SOURCE], {"moods": np.ones(16)})
    save_base(trained, Description("trial", "MIT", {}, 1, {}, weights).document(trained, {}), output)


def weights_of(engine: Engine) -> dict[str, torch.Tensor]:
    parts: tuple[tuple[str, Any], ...] = (("backbone", engine.backbone), ("hypernetwork", engine.hypernetwork))
    return {f"{name}.{key}": value for name, part in parts for key, value in part.state_dict().items()}


@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_rounded_weights_come_back_bit_for_bit(tiny_t5: Path, tmp_path: Path, weights: Weights) -> None:
    engine = make_engine(tiny_t5)
    before = {name: value.clone() for name, value in weights_of(engine).items()}
    ROUNDED[weights](engine.backbone)
    ROUNDED[weights](engine.hypernetwork)
    rounded = weights_of(engine)
    write(engine, weights, tmp_path)
    base = find_base(str(tmp_path))
    loaded = weights_of(load_engine(base, "cpu"))
    assert base.document["weights"] == weights
    assert loaded.keys() == rounded.keys()
    assert [name for name in rounded if not torch.equal(loaded[name], rounded[name])] == []
    assert not torch.equal(before["hypernetwork.encoder.up.weight"], loaded["hypernetwork.encoder.up.weight"])
    assert ("int8" in (tmp_path / "card.md").read_text(encoding="utf-8")) == (weights == "int8")


def test_a_base_in_int8_takes_little_more_than_half_of_one_in_float16(tiny_t5: Path, tmp_path: Path) -> None:
    for weights in ROUNDED:
        write(make_engine(tiny_t5), weights, tmp_path / weights)
    small, large = ((tmp_path / weights / "hypernetwork.safetensors").stat().st_size for weights in ("int8", "float16"))
    assert small < 0.75 * large  # rows of 16 numbers have a scale each


def test_nothing_of_an_earlier_base_stays_beside_the_new_one(tiny_t5: Path, tmp_path: Path) -> None:
    engine = make_engine(tiny_t5)
    for weights in ROUNDED:
        write(engine, weights, tmp_path / weights)
    write(engine, "int8", tmp_path / "float16")
    assert find_base(str(tmp_path / "float16")).digest == find_base(str(tmp_path / "int8")).digest
    (tmp_path / "int8" / "backbone" / "spiece.model").write_bytes(b"of another tokenizer")
    (tmp_path / "int8" / FINGERPRINTS).write_bytes(b"of other tasks")
    (tmp_path / "int8" / "notes.txt").write_text("somebody's own")
    write(engine, "float16", tmp_path / "int8")
    names = {path.name for path in (tmp_path / "int8").rglob("*")}
    assert not {"spiece.model", "model.int8.safetensors", FINGERPRINTS} & names
    assert {"model.safetensors", "tokenizer.json", "notes.txt"} <= names


def test_a_folder_that_cannot_be_written_to_is_told_with_what_mends_it(tiny_t5: Path, tmp_path: Path) -> None:
    (tmp_path / "embeddings.safetensors").mkdir()
    with refused("base-not-writable"):
        write(make_engine(tiny_t5), "float16", tmp_path)
