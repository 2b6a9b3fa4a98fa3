"""Checkpoints in the authors' naming: read, written, refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.authors_checkpoint import (
    BIAS,
    BOTTLENECK,
    D_MODEL,
    LAYERS,
    SIZE,
    TASKS,
    make_t5,
    make_tensors,
    places,
    write_checkpoint,
)
from support.refusals import refused
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)

from onboard.errors import DamagedError, InputError
from onboard.model.exporters import official_config, official_tensors
from onboard.model.importers import load_hyperformer
from onboard.model.official import read_checkpoint

METHODS = ("hyperformer", "hyperformer++")
IDS = torch.tensor([[3, 4, 5, 6, 1], [7, 8, 1, 0, 0]])
MASK = IDS.ne(0).long()
TARGETS = torch.tensor([[9, 1], [10, 1]])


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def conditioning_of(
    tensors: dict[str, Tensor], task: str, method: str, stack: str, layer: int, position: int
) -> Tensor:
    """I by the authors' formulas, one place at a time."""
    z = tensors[f"task_embedding_controller.task_to_embeddings.{task}"]
    prefix = f"{stack}.adapter_layers_hyper_net."
    projector = "task_embedding_controller.task_hyper_net.task_embeding_generator"
    if method == "hyperformer++":
        layer_id = tensors[f"{prefix}layer_id_embeddings.weight"][layer]
        z = torch.cat([z, layer_id, tensors[f"{prefix}adapters_block_type.weight"][position]])
        projector = f"{prefix}task_hypernet.task_embeding_generator"
    hidden = F.relu(F.linear(z, tensors[f"{projector}.0.weight"], tensors[f"{projector}.0.bias"]))
    projected = F.linear(hidden, tensors[f"{projector}.2.weight"], tensors[f"{projector}.2.bias"])
    if method == "hyperformer":
        return projected
    norm = tensors[f"{prefix}LayerNorm.weight"], tensors[f"{prefix}LayerNorm.bias"]
    return F.layer_norm(projected, projected.shape, *norm, eps=1e-6)


def slow_logits(tensors: dict[str, Tensor], task: str, method: str) -> Tensor:
    """A stock T5 with one hook per place that generates its own adapter from the checkpoint's tensors."""
    backbone = make_t5()
    backbone.load_state_dict({k: v for k, v in tensors.items() if k in backbone.state_dict()}, strict=False)
    for stack, layer, position, name in places():
        prefix = f"{name}.adapter_controller." if method == "hyperformer" else f"{stack}.adapter_layers_hyper_net."
        down, up = (
            ("meta_down_sampler", "meta_up_sampler")
            if method == "hyperformer"
            else ("down_sampler_hyper_net", "up_sampler_hyper_net")
        )
        conditioning = conditioning_of(tensors, task, method, stack, layer, position)

        def made(part: str, prefix: str = prefix, conditioning: Tensor = conditioning) -> Tensor:
            return F.linear(conditioning, tensors[f"{prefix}{part}.weight"], tensors[f"{prefix}{part}.bias"])

        d = made(f"{down}.weight_generator.0").view(BOTTLENECK, D_MODEL), made(f"{down}.bias_generator.0")
        u = made(f"{up}.weight_generator.0").view(D_MODEL, BOTTLENECK), made(f"{up}.bias_generator.0")
        gamma = made("post_layernorm_hypernet.weight_generator")
        beta = made("post_layernorm_hypernet.bias_generator")

        def hook(module: nn.Module, args: Any, output: Any, own: tuple[Any, ...] = (d, u, gamma, beta)) -> Any:
            d, u, gamma, beta = own
            y = output[0] if isinstance(output, tuple) else output
            outer = F.linear(F.gelu(F.linear(y, *d), approximate="tanh"), *u)
            y = y + F.layer_norm(outer, (D_MODEL,), gamma, beta)
            return (y, *output[1:]) if isinstance(output, tuple) else y

        inside = "SelfAttention" if position else "DenseReluDense"
        backbone.get_submodule(f"{name}.{inside}").register_forward_hook(hook)
    return backbone(input_ids=IDS, attention_mask=MASK, labels=TARGETS).logits


def test_a_checkpoint_computes_what_plain_loops_over_its_places_compute(method: str, tmp_path: Path) -> None:
    tensors = make_tensors(method)
    model = load_hyperformer(write_checkpoint(tmp_path, method, tensors))
    assert method == model.hypernetwork.METHOD
    for task in TASKS:
        logits = model(IDS, MASK, TARGETS, tasks=[task] * 2).logits
        torch.testing.assert_close(logits, slow_logits(tensors, task, method), atol=1e-5, rtol=0)
    mixed = model(IDS, MASK, TARGETS, tasks=["cola", "stsb"]).logits
    torch.testing.assert_close(mixed[1], slow_logits(tensors, "stsb", method)[1], atol=1e-5, rtol=0)


def test_reading_and_writing_gives_the_same_tensors_bit_for_bit(method: str, tmp_path: Path) -> None:
    tensors = make_tensors(method)
    checkpoint = read_checkpoint(write_checkpoint(tmp_path, method, tensors))
    written = official_tensors(checkpoint.backbone, checkpoint.hypernetwork, checkpoint.embeddings)
    assert written.keys() == tensors.keys()
    assert all(torch.equal(written[name], tensors[name]) for name in tensors)
    assert checkpoint.notes == ()


def test_the_parity_fixture_is_written_with_the_authors_names_and_values(parity_folder: Path) -> None:
    tensors = load_file(parity_folder / "model.safetensors")
    checkpoint = read_checkpoint(parity_folder)
    written = official_tensors(checkpoint.backbone, checkpoint.hypernetwork, checkpoint.embeddings)
    assert written.keys() == tensors.keys()
    assert all(torch.equal(written[name], tensors[name]) for name in tensors)
    config = official_config(checkpoint.backbone, checkpoint.hypernetwork, list(checkpoint.embeddings), 8)
    assert config["tasks"] == checkpoint.described["tasks"]
    assert {**config, **config["adapter"]}.items() >= {
        **checkpoint.described["t5"],
        **checkpoint.described["adapter"],
    }.items()


def test_the_views_are_every_parameter_once(method: str, tmp_path: Path) -> None:
    hypernetwork = read_checkpoint(write_checkpoint(tmp_path, method)).hypernetwork
    views = hypernetwork.official_views()
    for view in views.values():
        view.zero_()
    assert all(parameter.eq(0).all() for parameter in hypernetwork.parameters())
    assert sum(view.numel() for view in views.values()) == sum(p.numel() for p in hypernetwork.parameters())


@pytest.mark.parametrize("family", ["t5", "v1.1", "v1.1-untied", "mt5", "mt5-untied", "byt5"])
def test_every_family_comes_back_with_the_same_logits(
    family: str, method: str, backbone_of: Callable[..., Any], tmp_path: Path
) -> None:
    from onboard.model.attach import attach
    from onboard.model.methods import new_hypernetwork

    backbone = backbone_of(family)
    config = backbone.config
    sizes = {"encoder_layers": config.num_layers, "decoder_layers": config.num_decoder_layers}
    hypernetwork = new_hypernetwork(method, {**sizes, "d_model": 32, "bottleneck": 8, "task_embedding_size": SIZE})
    embeddings = {"cola": torch.randn(SIZE)}
    labels = torch.tensor([[9, 1], [10, 1]])
    with attach(backbone).using(hypernetwork(embeddings["cola"][None])), torch.no_grad():
        before = backbone(input_ids=IDS, attention_mask=MASK, labels=labels).logits
    tensors = official_tensors(backbone, hypernetwork, embeddings)
    assert ("lm_head.weight" in tensors) == family.endswith("untied")
    save_file({k: v.clone() for k, v in tensors.items()}, tmp_path / "model.safetensors")
    official = official_config(backbone, hypernetwork, ["cola"], 4)
    (tmp_path / "config.json").write_text(json.dumps(official))
    model = load_hyperformer(tmp_path)
    assert type(model.backbone) is type(backbone)
    with torch.no_grad():
        assert torch.equal(model(IDS, MASK, labels, tasks=["cola"] * 2).logits, before)


@pytest.mark.parametrize("zipped", [True, False])
def test_the_authors_bin_files_are_read(method: str, zipped: bool, tmp_path: Path) -> None:
    tensors = make_tensors(method)
    folder = write_checkpoint(tmp_path, method, tensors)
    (folder / "model.safetensors").unlink()
    whole = {**tensors, "lm_head.weight": tensors["shared.weight"]}  # the trainer saves what is tied too
    whole |= {f"{stack}.embed_tokens.weight": tensors["shared.weight"] for stack in LAYERS}
    torch.save(whole, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    model = load_hyperformer(folder)
    assert model.backbone.lm_head.weight is model.backbone.shared.weight
    assert model.backbone.config.scale_decoder_outputs
    logits = model(IDS, MASK, TARGETS, tasks=["mnli"] * 2).logits
    torch.testing.assert_close(logits, slow_logits(tensors, "mnli", method), atol=1e-5, rtol=0)


class _Program:
    """Unpickling it as Python does would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_nothing_in_a_bin_file_is_executed(tmp_path: Path) -> None:
    torch.save({"shared.weight": _Program(tmp_path / "executed")}, tmp_path / "pytorch_model.bin")
    with refused("not-a-pytorch-file"):
        read_checkpoint(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_bin_files_that_are_no_state_dict_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({"epoch": 3, "model": {}}, path)
    with refused("not-a-state-dict"):
        read_checkpoint(tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises((DamagedError, InputError)):
        read_checkpoint(tmp_path)
    for content in (b"", b"version https://git-lfs.github.com/spec/v1\n"):
        path.write_bytes(content)
        with pytest.raises((DamagedError, InputError)):
            read_checkpoint(tmp_path)


def test_a_folder_without_weights_is_told(tmp_path: Path) -> None:
    with refused("checkpoint-missing"):
        read_checkpoint(tmp_path)


OTHERS = {
    "encoder.adapter_layers_hyper_net.feed_forward_up_sampler_hyper_net.weight_generator.0.weight": (
        "the authors' released configuration named HyperFormer (unique_hyper_net), not the paper's"
    ),
    "encoder.block.0.layer.0.adapter_controller.adapters.mrpc.down_sampler.phm_rule": (
        "a Compacter or low-rank checkpoint"
    ),
    "encoder.block.0.layer.0.adapter_controller.adapters.cola.down_sampler.weight": (
        "a checkpoint of adapters without a hypernetwork"
    ),
    "encoder.block.0.layer.0.layer_norm.weight": "a T5 without a hypernetwork",
}


@pytest.mark.parametrize("name", OTHERS)
def test_checkpoints_of_other_methods_are_refused_by_name(name: str, tmp_path: Path) -> None:
    tensors = {k: v for k, v in make_tensors("hyperformer").items() if "adapter" not in k and "hyper" not in k}
    write_checkpoint(tmp_path, "", {**tensors, name: torch.ones(D_MODEL)})
    with refused("not-a-hyperformer-checkpoint", kind=OTHERS[name]) as caught:
        read_checkpoint(tmp_path)
    assert "HyperFormer++" in caught.value.remedy


def test_missing_and_unexpected_tensors_are_named_five_at_most(method: str, tmp_path: Path) -> None:
    tensors = make_tensors(method)
    gone = [name for name in sorted(tensors) if name.endswith("EncDecAttention.k.weight") or "gamma" in name]
    write_checkpoint(tmp_path, method, {k: v for k, v in tensors.items() if k not in gone})
    with refused("checkpoint-tensors-differ") as caught:
        read_checkpoint(tmp_path)
    assert all(name in caught.value.message for name in gone)
    strange = {f"encoder.pre_layernorm_hypernet.{index}": torch.ones(1) for index in range(7)}
    write_checkpoint(tmp_path, method, {**tensors, **strange})
    with refused("checkpoint-tensors-differ") as caught:
        read_checkpoint(tmp_path)
    assert "hypernet.5" not in caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "shared.weight",
        "decoder.block.1.layer.2.DenseReluDense.wi.weight",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "task_embedding_controller.task_to_embeddings.cola",
    ],
)
def test_every_tensor_may_be_missing_or_misshapen(name: str, method: str, tmp_path: Path) -> None:
    tensors = make_tensors(method)
    write_checkpoint(tmp_path, method, {**tensors, name: torch.ones(2, 3, 2)})
    with refused("checkpoint-tensors-differ") as caught:
        read_checkpoint(tmp_path)
    assert caught.value.data["tensors"][0].startswith(f"{name} (2, 3, 2)")
    if not name.endswith("cola"):  # other tasks remain
        write_checkpoint(tmp_path, method, {k: v for k, v in tensors.items() if k != name})
        with refused("checkpoint-tensors-differ") as caught:
            read_checkpoint(tmp_path)
        assert name in caught.value.message


def test_a_checkpoint_without_tasks_is_refused(method: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, method, {k: v for k, v in make_tensors(method).items() if "task_to_embeddings" not in k})
    with refused("checkpoint-tensors-differ"):
        read_checkpoint(tmp_path)


def test_a_position_bias_in_cross_attention_is_left_out_and_told(tmp_path: Path) -> None:
    tensors = make_tensors("hyperformer") | {BIAS: torch.full((32, 2), -0.25)}
    checkpoint = read_checkpoint(write_checkpoint(tmp_path, "hyperformer", tensors))
    assert "0.25" in checkpoint.notes[0]
    assert "cross-attention" in checkpoint.notes[0]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ("{", DamagedError),
        ("[]", DamagedError),
        ('{"model_type": "bart"}', InputError),
        ('{"adapter": {"non_linearity": "swish"}}', InputError),
        ('{"dropout_rate": "much"}', InputError),
    ],
)
def test_a_config_of_something_else_is_refused(config: str, error: type[Exception], tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "hyperformer")
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(error):
        read_checkpoint(tmp_path)


def test_a_config_is_not_needed(method: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, method)
    (tmp_path / "config.json").unlink()
    assert list(read_checkpoint(tmp_path).embeddings) == sorted(TASKS)
