"""The authors' own numbers: HyperFormer++ at commit 56b0f99 of their repository, run on a small T5."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.refusals import refused
from torch import Tensor

from onboard.errors import DamagedError, NotFoundError
from onboard.model.importers import HyperFormer, load_hyperformer

FIELDS = {
    "down": "down.weight",
    "down_bias": "down.bias",
    "up": "up.weight",
    "up_bias": "up.bias",
    "gamma": "post_norm.weight",
    "beta": "post_norm.bias",
}
HYPERNETWORK = {
    "layer_embeddings": "layer_id_embeddings.weight",
    "position_embeddings": "adapters_block_type.weight",
    "projector_in": "task_hypernet.task_embeding_generator.0",
    "projector_out": "task_hypernet.task_embeding_generator.2",
    "norm": "LayerNorm",
    "down": "down_sampler_hyper_net.weight_generator.0",
    "down_bias": "down_sampler_hyper_net.bias_generator.0",
    "up": "up_sampler_hyper_net.weight_generator.0",
    "up_bias": "up_sampler_hyper_net.bias_generator.0",
    "gamma": "post_layernorm_hypernet.weight_generator",
    "beta": "post_layernorm_hypernet.bias_generator",
}


@pytest.fixture
def model(parity_folder: Path) -> HyperFormer:
    return load_hyperformer(parity_folder)


@pytest.fixture
def numbers(parity_folder: Path) -> dict[str, Tensor]:
    return load_file(parity_folder / "io.safetensors")


def run(model: HyperFormer, numbers: dict[str, Tensor], tasks: list[str]) -> Any:
    return model(numbers["input_ids"], numbers["attention_mask"], numbers["labels_minus100"], tasks=tasks)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_logits_losses_and_encoder_states_are_the_authors(
    model: HyperFormer, numbers: dict[str, Tensor], parity_folder: Path
) -> None:
    losses = json.loads((parity_folder / "config.json").read_text())["losses"]
    assert model.tasks == ("cola", "mnli", "stsb")
    for task in model.tasks:
        out = run(model, numbers, [task] * 4)
        close(out.logits, numbers[f"{task}.logits"])
        close(out.encoder_last_hidden_state, numbers[f"{task}.encoder_last_hidden_state"])
        assert out.loss.item() == pytest.approx(losses[task]["cross_entropy_mean"], abs=1e-5)


def test_rows_of_different_tasks_in_one_batch_have_the_authors_logits(
    model: HyperFormer, numbers: dict[str, Tensor]
) -> None:
    tasks = ["stsb", "cola", "mnli", "cola"]
    logits = run(model, numbers, tasks).logits
    for row, task in enumerate(tasks):
        close(logits[row], numbers[f"{task}.logits"][row])


def test_generated_weights_are_the_authors(model: HyperFormer, parity_folder: Path) -> None:
    expected = load_file(parity_folder / "generated.safetensors")
    generated = model.hypernetwork(torch.stack([model.embeddings[task] for task in model.tasks]))
    compared = 0
    for index, task in enumerate(model.tasks):
        for stack, weights in (("encoder", generated.encoder), ("decoder", generated.decoder)):
            for layer in range(2):
                for position, place in enumerate(("feed_forward", "self_attention")):
                    for field, name in FIELDS.items():
                        own = getattr(weights, field)[index, layer, position]
                        close(own, expected[f"{task}.{stack}.{layer}.{place}.{name}"])
                        compared += 1
    assert compared == 144


def official_name(name: str) -> str:
    part, rest = name.split(".", 1)
    if part == "backbone":
        return rest
    if part == "embeddings":
        return f"task_embedding_controller.task_to_embeddings.{rest}"
    stack, ours, *field = rest.split(".")
    return ".".join([stack, "adapter_layers_hyper_net", HYPERNETWORK[ours], *field])


def test_gradients_are_the_authors_and_reach_exactly_what_they_train(
    model: HyperFormer, numbers: dict[str, Tensor], parity_folder: Path
) -> None:
    expected = load_file(parity_folder / "grads_mnli.safetensors")
    trainable = json.loads((parity_folder / "config.json").read_text())["trainable"]
    run(model, numbers, ["mnli"] * 4).loss.backward()
    own = {official_name(name): p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert own.keys() == expected.keys()
    for name, gradient in own.items():
        close(gradient, expected[name])
    assert {official_name(n) for n, p in model.named_parameters() if p.requires_grad} == set(trainable)


def test_greedy_decoding_under_adapters_gives_the_authors_tokens(
    model: HyperFormer, numbers: dict[str, Tensor]
) -> None:
    z = model.embeddings["mnli"][None]
    tokens = torch.zeros(4, 1, dtype=torch.long)
    with torch.no_grad(), model.attachment.using(model.hypernetwork(z)):
        for _ in range(6):
            logits = model.backbone(
                input_ids=numbers["input_ids"], attention_mask=numbers["attention_mask"], decoder_input_ids=tokens
            ).logits
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert torch.equal(tokens, numbers["mnli.greedy"])


def test_sizes_are_read_from_the_tensors_when_there_is_no_config(
    parity_folder: Path, numbers: dict[str, Tensor], tmp_path: Path
) -> None:
    shutil.copy(parity_folder / "model.safetensors", tmp_path)
    model = load_hyperformer(tmp_path)
    assert model.tasks == ("cola", "mnli", "stsb")
    close(run(model, numbers, ["stsb"] * 4).logits, numbers["stsb.logits"])


def test_an_unknown_task_is_named(model: HyperFormer, numbers: dict[str, Tensor]) -> None:
    with refused("embedding-not-in-checkpoint"):
        run(model, numbers, ["mnli", "rte", "mnli", "mnli"])


def test_another_checkpoint_is_refused(parity_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        load_hyperformer(tmp_path)
    tensors = load_file(parity_folder / "model.safetensors")
    plain = {name: value for name, value in tensors.items() if "hyper_net" not in name}
    save_file(plain, tmp_path / "model.safetensors")
    with refused("not-a-hyperformer-checkpoint"):
        load_hyperformer(tmp_path)
    headless = {name: value for name, value in tensors.items() if not name.endswith("SelfAttention.k.weight")}
    save_file(headless, tmp_path / "model.safetensors")
    with refused("checkpoint-tensors-differ"):
        load_hyperformer(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a safetensors file")
    with pytest.raises(DamagedError):
        load_hyperformer(tmp_path)
