"""Weights in int8: what is read back, what is refused, and T5s in folders."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused as error_of
from torch import Tensor
from transformers import BertConfig

from onboard.bases import folder_digest
from onboard.errors import DamagedError
from onboard.model.backbone import load_backbone, output_scale
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus
from onboard.model.quantised import dequantise, quantise, round_to_stored
from onboard.model.quantised_backbone import QUANTISED_FILE, save_quantised_backbone
from onboard.model.weights import digest, read_tensors, write_tensors

Backbones = Callable[..., Any]
BATCH = {
    "input_ids": torch.tensor([[5, 6, 9, 1], [8, 1, 0, 0]]),
    "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
    "decoder_input_ids": torch.tensor([[0, 7, 3], [0, 2, 2]]),
}
FORMAT = {"format": "onboard-int8-1"}
ORDINARY = st.floats(-2.0, 2.0, width=32)
ANY = st.floats(-1.99 * 2.0**127, 1.99 * 2.0**127).map(lambda value: float(torch.tensor(value)))  # subnormal too
MAGNITUDES = st.one_of(st.just(0.0), st.floats(-149, 127).map(lambda power: 2.0**power))


def equal(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> bool:
    return left.keys() == right.keys() and digest(left) == digest(right)


def once_and_twice(value: Tensor) -> tuple[Tensor, Tensor]:
    once = dequantise(quantise({"w": value}))
    twice = dequantise(quantise(once))
    return once["w"], twice["w"]


def assert_within_half_a_scale(value: Tensor) -> None:
    stored = quantise({"w": value})
    assert stored["w"].dtype == torch.int8
    assert int(stored["w"].min()) >= -127
    error = (dequantise(stored)["w"].double() - value.double()).abs()
    assert (error <= (0.5 + 2 * 127 * 2.0**-24) * stored["w.scale"].double().unsqueeze(-1)).all()


def test_only_large_matrices_become_int8_and_everything_else_float16() -> None:
    stored = quantise(
        {
            "matrix": torch.randn(64, 64),
            "three": torch.randn(4, 16, 64),
            "small": torch.randn(63, 65),
            "norm": torch.randn(5000),
            "half": torch.randn(64, 64).half(),
        }
    )
    kinds = {name: (value.dtype, tuple(value.shape)) for name, value in stored.items()}
    assert kinds == {
        "matrix": (torch.int8, (64, 64)),
        "matrix.scale": (torch.float32, (64,)),
        "three": (torch.int8, (4, 16, 64)),
        "three.scale": (torch.float32, (4, 16)),
        "small": (torch.float16, (63, 65)),
        "norm": (torch.float16, (5000,)),
        "half": (torch.int8, (64, 64)),
        "half.scale": (torch.float32, (64,)),
    }
    back = dequantise(stored)
    assert back.keys() == {"matrix", "three", "small", "norm", "half"}
    assert {value.dtype for value in back.values()} == {torch.float32}


def test_each_row_is_off_by_at_most_half_its_own_scale() -> None:
    torch.manual_seed(0)
    value = torch.randn(100, 64) * torch.logspace(-8, 8, 100)[:, None]
    assert_within_half_a_scale(value)
    stored = quantise({"w": value})
    assert (stored["w"].abs().amax(-1) == 127).all()
    assert torch.equal(stored["w.scale"], value.abs().amax(-1) / 127)


@settings(deadline=None, max_examples=60)
@given(row=st.one_of(st.lists(ORDINARY, min_size=1, max_size=40), st.lists(ANY, min_size=1, max_size=40)))
def test_a_single_row_of_any_numbers_that_was_read_back_is_stored_without_change(row: list[float]) -> None:
    value = torch.tensor(row).repeat(math.ceil(4096 / len(row)))[None]
    once, twice = once_and_twice(value)
    assert torch.equal(once.view(torch.int32), twice.view(torch.int32))
    assert_within_half_a_scale(value)


@settings(deadline=None, max_examples=60)
@given(magnitudes=st.lists(MAGNITUDES, min_size=1, max_size=30), seed=st.integers(0, 2**20))
def test_rows_of_zeros_and_of_huge_and_tiny_numbers_do_not_disturb_each_other(
    magnitudes: list[float], seed: int
) -> None:
    width = math.ceil(4096 / len(magnitudes))
    noise = torch.rand(len(magnitudes), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    value = ((2 * noise - 1) * torch.tensor(magnitudes, dtype=torch.float64)[:, None]).float()
    once, twice = once_and_twice(value)
    assert torch.equal(once.view(torch.int32), twice.view(torch.int32))
    assert_within_half_a_scale(value)
    zeros = [index for index, magnitude in enumerate(magnitudes) if magnitude == 0]
    assert not once[zeros].any()


def test_every_scale_that_there_is_survives_being_stored_again() -> None:
    mantissas = torch.arange(2**23, dtype=torch.int32)
    largest = (mantissas + (127 << 23)).view(torch.float32)[:, None]  # every float32 from 1 to 2
    first = quantise({"w": largest})
    assert equal(quantise(dequantise(first)), first)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("shape", [(64, 64), (7,)])
def test_numbers_that_cannot_be_stored_are_refused_by_name(wrong: float, shape: tuple[int, ...]) -> None:
    value = torch.randn(shape)
    value.view(-1)[5] = wrong
    with error_of("tensor-not-finite"):
        quantise({"block.wi": value})


def test_numbers_that_would_come_back_as_infinity_are_refused() -> None:
    for too_large in (torch.full((64, 64), torch.finfo(torch.float32).max), torch.tensor([1.0, 7e4])):
        with error_of("tensor-not-finite"):
            quantise({"w": too_large})


def test_what_is_not_float_or_would_share_a_name_is_refused() -> None:
    with error_of("tensor-not-floating"):
        quantise({"ids": torch.arange(5000)})
    with error_of("tensor-name-taken"):
        quantise({"w": torch.randn(64, 64), "w.scale": torch.randn(3)})
    unharmed = {"norm": torch.ones(3), "norm.scale": torch.zeros(3)}
    assert equal(dequantise(quantise(unharmed)), unharmed)


def test_files_of_float32_and_float16_are_read_as_before() -> None:
    tensors = {"a": torch.randn(64, 64), "b": torch.randn(3).half()}
    back = dequantise(tensors)
    assert equal(back, {"a": tensors["a"], "b": tensors["b"].float()})
    assert back["a"].data_ptr() != tensors["a"].data_ptr()  # the file may be written anew


def test_a_rounded_module_is_what_is_read_back_and_stays_so() -> None:
    torch.manual_seed(0)
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "bottleneck": 8}
    hypernetwork = HyperFormerPlusPlus(**sizes, task_embedding_size=16, projector_width=24)
    before = {name: value.clone() for name, value in hypernetwork.state_dict().items()}
    identities = [id(parameter) for parameter in hypernetwork.parameters()]
    round_to_stored(hypernetwork)
    after = hypernetwork.state_dict()
    assert equal(after, dequantise(quantise(before)))
    assert equal(after, dequantise(quantise(after)))
    assert not equal(after, before)
    assert any(value.dtype == torch.int8 for value in quantise(before).values())
    assert [id(parameter) for parameter in hypernetwork.parameters()] == identities
    assert all(parameter.requires_grad for parameter in hypernetwork.parameters())


def test_a_backbone_that_was_rounded_comes_back_bit_for_bit_with_equal_logits(
    backbone_of: Backbones, family: str, tmp_path: Path
) -> None:
    backbone = backbone_of(family)
    round_to_stored(backbone)
    tied = backbone.lm_head.weight is backbone.shared.weight
    save_quantised_backbone(backbone, tmp_path)
    loaded = load_backbone(tmp_path)
    assert type(loaded) is type(backbone)
    assert equal(loaded.state_dict(), backbone.state_dict())
    assert (loaded.lm_head.weight is loaded.shared.weight) == tied
    assert loaded.encoder.embed_tokens.weight is loaded.decoder.embed_tokens.weight is loaded.shared.weight
    with torch.no_grad():
        assert torch.equal(loaded(**BATCH).logits, backbone(**BATCH).logits)


def test_the_forward_of_what_is_stored_stays_close(backbone_of: Backbones, family: str, tmp_path: Path) -> None:
    backbone = backbone_of(family)
    save_quantised_backbone(backbone, tmp_path)
    with torch.no_grad():
        logits, expected = load_backbone(tmp_path)(**BATCH).logits, backbone(**BATCH).logits
    assert 0 < float((logits - expected).norm() / expected.norm()) < 0.03


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_the_model_that_transformers_loads_from_the_same_weights(
    backbone_of: Backbones, family: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    backbone = backbone_of(family)
    round_to_stored(backbone)
    backbone.save_pretrained(tmp_path / "plain")
    save_quantised_backbone(backbone, tmp_path / "int8")
    plain, loaded = (load_backbone(tmp_path / name, dtype=dtype) for name in ("plain", "int8"))
    assert equal(loaded.state_dict(), plain.state_dict())
    assert [name for name, _ in loaded.named_parameters()] == [name for name, _ in plain.named_parameters()]
    assert [name for name, _ in loaded.named_buffers()] == [name for name, _ in plain.named_buffers()]
    assert loaded.all_tied_weights_keys == plain.all_tied_weights_keys
    assert {p.dtype for p in loaded.parameters()} == {dtype}
    assert not any(p.requires_grad for p in loaded.parameters())
    assert not any(module.training for module in loaded.modules())
    assert not any(value.is_meta for value in [*loaded.parameters(), *loaded.buffers()])
    assert (loaded.dtype, loaded.config.dtype) == (plain.dtype, plain.config.dtype)
    assert output_scale(loaded) == output_scale(plain)
    with torch.no_grad():
        assert torch.equal(loaded(**BATCH).logits, plain(**BATCH).logits)
    loaded.save_pretrained(tmp_path / "again")
    assert equal(load_backbone(tmp_path / "again", dtype=dtype).state_dict(), plain.state_dict())


def test_a_tied_weight_is_stored_once_and_an_untied_head_by_itself(backbone_of: Backbones, tmp_path: Path) -> None:
    for family, head in (("t5", False), ("v1.1-untied", True), ("mt5-untied", True)):
        save_quantised_backbone(backbone_of(family), tmp_path / family)
        stored, metadata = read_tensors(tmp_path / family / QUANTISED_FILE)
        assert metadata == FORMAT
        assert {"shared.weight", "shared.weight.scale"} <= stored.keys()
        assert ("lm_head.weight" in stored) == head
        assert not any("embed_tokens" in name for name in stored)
        bias = stored["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        assert bias.dtype == stored["encoder.final_layer_norm.weight"].dtype == torch.float16


def test_equal_weights_have_equal_bytes_wherever_they_come_from_and_others_another_digest(
    backbone_of: Backbones, family: str, tmp_path: Path
) -> None:
    save_quantised_backbone(backbone_of(family), tmp_path / "first")
    first = folder_digest(tmp_path / "first")
    save_quantised_backbone(backbone_of(family), tmp_path / "first")
    assert folder_digest(tmp_path / "first") == first
    save_quantised_backbone(load_backbone(tmp_path / "first"), tmp_path / "second")
    assert {path.name for path in (tmp_path / "second").iterdir()} == {"config.json", QUANTISED_FILE}
    assert folder_digest(tmp_path / "second") == first
    path = tmp_path / "second" / QUANTISED_FILE
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert folder_digest(tmp_path / "second") != first


def test_the_int8_file_is_read_before_another_in_the_same_folder(backbone_of: Backbones, tmp_path: Path) -> None:
    backbone_of("t5", seed=1).save_pretrained(tmp_path)
    expected = backbone_of("t5", seed=2)
    round_to_stored(expected)
    save_quantised_backbone(expected, tmp_path)
    assert equal(load_backbone(tmp_path).state_dict(), expected.state_dict())


def test_loading_draws_no_random_numbers(backbone_of: Backbones, tmp_path: Path) -> None:
    save_quantised_backbone(backbone_of("t5"), tmp_path)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    load_backbone(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.fixture
def stored_folder(backbone_of: Backbones, tmp_path: Path) -> Path:
    save_quantised_backbone(backbone_of("v1.1-untied"), tmp_path)
    return tmp_path


def tensors_of(folder: Path) -> dict[str, Tensor]:
    """Copies: what is read may be a view of the file, which is written anew below."""
    return {name: value.clone() for name, value in read_tensors(folder / QUANTISED_FILE)[0].items()}


def refused(folder: Path, tensors: Mapping[str, Tensor] | None = None) -> DamagedError:
    if tensors is not None:
        write_tensors(tensors, folder / QUANTISED_FILE, FORMAT)
    with pytest.raises(DamagedError) as caught:
        load_backbone(folder)
    assert str(folder / QUANTISED_FILE) in caught.value.message
    assert "onboard base train" in caught.value.remedy
    return caught.value


def test_a_truncated_or_overwritten_file_is_damaged(stored_folder: Path) -> None:
    path = stored_folder / QUANTISED_FILE
    content = path.read_bytes()
    for harmed in (content[:-1], content[:100], content[:5], b"", b"\xff" * 64, content + b"more"):
        path.write_bytes(harmed)
        assert refused(stored_folder).type == "weights-file-unreadable"


def test_a_missing_or_wrong_scale_is_named(stored_folder: Path) -> None:
    tensors = tensors_of(stored_folder)
    scale = tensors["lm_head.weight.scale"]
    without = {name: value for name, value in tensors.items() if name != "lm_head.weight.scale"}
    assert "lm_head.weight in" in refused(stored_folder, without).message
    wrong_scales = {
        "not torch.float32 (400,)": [scale[1:], scale[:, None], scale[:1], scale.double(), scale.half()],
        "not a positive number": [scale * 0, -scale, scale / 0, scale * math.nan],
    }
    for message, wrong in wrong_scales.items():
        for wrong_scale in wrong:
            error = refused(stored_folder, {**tensors, "lm_head.weight.scale": wrong_scale})
            assert message in error.message
            assert error.data["tensor"] == "lm_head.weight"


def test_tensors_that_config_json_does_not_describe_are_named(stored_folder: Path) -> None:
    tensors = tensors_of(stored_folder)
    norm = "encoder.final_layer_norm.weight"
    without = {name: value for name, value in tensors.items() if name != norm}
    assert refused(stored_folder, without).data["tensor"] == norm
    assert refused(stored_folder, {**tensors, "encoder.bias": torch.ones(4)}).data["tensor"] == "encoder.bias"
    assert refused(stored_folder, {**tensors, norm: torch.ones(31)}).data["tensor"] == norm
    assert refused(stored_folder, {**tensors, norm: torch.ones(32).bfloat16()}).data["tensor"] == norm
    orphan = {name: value for name, value in tensors.items() if name != "shared.weight"}
    assert refused(stored_folder, orphan).data["tensor"] == "shared.weight.scale"
    short = {**tensors, "shared.weight": tensors["shared.weight"][1:]}
    assert (
        refused(stored_folder, {**short, "shared.weight.scale": tensors["shared.weight.scale"][1:]}).data["tensor"]
        == "shared.weight"
    )


def test_a_file_whose_shared_table_is_gone_is_damaged(stored_folder: Path) -> None:
    tensors = tensors_of(stored_folder)
    names = {"shared.weight", "shared.weight.scale"}
    error = refused(stored_folder, {name: value for name, value in tensors.items() if name not in names})
    assert error.data["tensor"] == "shared.weight"


def test_another_format_and_another_model_are_refused_as_input(stored_folder: Path) -> None:
    tensors = tensors_of(stored_folder)
    write_tensors(tensors, stored_folder / QUANTISED_FILE, {"format": "onboard-int8-2"})
    with error_of("quantised-format-unknown"):
        load_backbone(stored_folder)
    with error_of("unknown-dtype"):
        load_backbone(stored_folder, dtype=torch.float16)
    BertConfig().save_pretrained(stored_folder)
    with error_of("not-a-t5"):
        load_backbone(stored_folder)


def test_a_backbone_with_a_broken_weight_leaves_the_old_files_as_they_were(
    backbone_of: Backbones, stored_folder: Path
) -> None:
    before = folder_digest(stored_folder)
    backbone = backbone_of("t5")
    with torch.no_grad():
        random.Random(0).choice(list(backbone.parameters())).view(-1)[3] = math.nan
    with error_of("tensor-not-finite"):
        save_quantised_backbone(backbone, stored_folder)
    with error_of("tensor-not-finite"):
        round_to_stored(backbone)
    assert folder_digest(stored_folder) == before
