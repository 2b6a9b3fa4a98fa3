"""Checkpoints of the authors' second repository (rabeehk/compacter): computed as they compute them, or refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.authors_checkpoint import LAYERS, make_t5, write_checkpoint
from support.refusals import refused as error_of
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)

from onboard.errors import DamagedError
from onboard.model.importers import SingleTask, load_compacter

IDS = torch.tensor([[3, 4, 5, 6, 1], [7, 8, 1, 0, 0]])
MASK = IDS.ne(0).long()
TARGETS = torch.tensor([[9, 1], [10, -100]])
H, B, N = 16, 4, 2
OURS = {
    "adapters": "adapters", "pfeiffer_adapters": "pfeiffer-adapter", "adapters_drop": "adapter-drop",
    "low_rank_adapters": "adapter-low-rank", "phm_adapters": "phm-adapter", "compacter": "compacter",
    "compacter++": "compacter++", "prompt_tuning_random_init": "prompt-tuning-r", "bitfit": "bitfit",
}  # fmt: skip
ADAPTERS = [method for method in OURS if method not in ("prompt_tuning_random_init", "bitfit")]
TIED = ("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "dense": {
        "down_sampler.weight": (B, H), "down_sampler.bias": (B,), "up_sampler.weight": (H, B), "up_sampler.bias": (H,),
    },
    "low_rank": {
        "down_sampler.W_left": (H, 1), "down_sampler.W_right": (1, B), "down_sampler.b": (B,),
        "up_sampler.W_left": (B, 1), "up_sampler.W_right": (1, H), "up_sampler.b": (H,),
    },
    "phm": {
        "down_sampler.W": (N, H // N, B // N), "down_sampler.phm_rule": (N, N, N), "down_sampler.b": (B,),
        "up_sampler.W": (N, B // N, H // N), "up_sampler.phm_rule": (N, N, N), "up_sampler.b": (H,),
    },
    "compacter": {
        "down_sampler.W_left": (N, H // N, 1), "down_sampler.W_right": (N, 1, B // N), "down_sampler.b": (B,),
        "up_sampler.W_left": (N, B // N, 1), "up_sampler.W_right": (N, 1, H // N), "up_sampler.b": (H,),
    },
}  # fmt: skip
KINDS = {"low_rank_adapters": "low_rank", "phm_adapters": "phm", "compacter": "compacter", "compacter++": "compacter"}


def places(method: str) -> Iterator[tuple[str, str]]:
    """The sub-layers with an adapter: their name, and the module inside that the adapter follows."""
    for stack, layers in LAYERS.items():
        last = {"encoder": 1, "decoder": 2}[stack]
        for layer in range(1 if method == "adapters_drop" else 0, layers):
            if method != "compacter++":
                yield f"{stack}.block.{layer}.layer.0", "SelfAttention"
            if method != "pfeiffer_adapters":
                yield f"{stack}.block.{layer}.layer.{last}", "DenseReluDense"


def biased(backbone: nn.Module) -> dict[str, int]:
    sizes = {name: m.out_features for name, m in backbone.named_modules() if isinstance(m, nn.Linear)}
    norms = [name for name, _ in backbone.named_modules() if name.endswith(".layer_norm")]
    return sizes | dict.fromkeys(norms, H)


def make_tensors(method: str) -> dict[str, Tensor]:
    """What the authors' `state_dict` holds, tied tensors once; every part random."""
    torch.manual_seed(0)
    backbone = make_t5()
    tensors = {name: value.clone() for name, value in backbone.state_dict().items() if name not in TIED}
    if method == "bitfit":
        return tensors | {f"{name}.bias": torch.randn(size) * 0.3 for name, size in biased(backbone).items()}
    if method == "prompt_tuning_random_init":
        return tensors | {"prefix_shared": torch.randn(6, H)}
    for place, _ in places(method):
        for part, shape in SHAPES[KINDS.get(method, "dense")].items():
            tensors[f"{place}.adapter_controller.adapters.mrpc.{part}"] = torch.randn(shape) * 0.6
    if method.startswith("compacter"):
        tensors["phm_rule"] = torch.randn(N, N, N)
    return tensors


def write(folder: Path, method: str, tensors: dict[str, Tensor] | None = None, **arguments: Any) -> Path:
    save_file(make_tensors(method) if tensors is None else tensors, folder / "model.safetensors")
    config = {
        "method": method, "task": "mrpc", "t5": {"dropout_rate": 0.0},
        "adapter_args": {
            "non_linearity": "gelu_new", "add_layer_norm_before_adapter": False,
            "add_layer_norm_after_adapter": method not in ADAPTERS, **arguments,
        },
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def matrix(parts: dict[str, Tensor], sampler: str, rule: Tensor | None) -> Tensor:
    """H of a layer: output = input @ H + b."""
    own = {name.removeprefix(f"{sampler}."): value for name, value in parts.items() if name.startswith(sampler)}
    if "weight" in own:
        return own["weight"].T
    if "W_left" in own and own["W_left"].dim() == 2:
        return own["W_left"] @ own["W_right"]
    rule = own.get("phm_rule", rule)
    assert rule is not None
    fast = [own["W"][i] if "W" in own else own["W_left"][i] @ own["W_right"][i] for i in range(N)]
    return sum((torch.kron(rule[i], fast[i]) for i in range(N)), torch.zeros(()))


def slow_logits(tensors: dict[str, Tensor], method: str) -> Tensor:
    """A stock T5 with what the method adds, in its plainest words; differentiable in the tensors."""
    backbone = make_t5().requires_grad_(False)
    backbone.load_state_dict({k: v.detach() for k, v in tensors.items() if k in backbone.state_dict()}, strict=False)
    for name, module in [*backbone.named_modules()]:
        if name.endswith("layer_norm"):
            del module.weight
            module.weight = tensors[f"{name}.weight"]
    if method == "prompt_tuning_random_init":
        prompt = tensors["prefix_shared"][None].expand(2, -1, -1)
        embedded = torch.cat([prompt, backbone.shared(IDS)], dim=1)
        return backbone(
            inputs_embeds=embedded, attention_mask=torch.cat([torch.ones(2, 6).long(), MASK], 1), labels=TARGETS
        ).logits
    if method == "bitfit":
        for name in biased(backbone):
            bias = tensors[f"{name}.bias"]
            backbone.get_submodule(name).register_forward_hook(lambda *call, bias=bias: call[2] + bias)
    for place, inside in places(method) if method in ADAPTERS else ():
        prefix = f"{place}.adapter_controller.adapters.mrpc."
        parts = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        rule = tensors.get("phm_rule")
        down, up = matrix(parts, "down_sampler", rule), matrix(parts, "up_sampler", rule)
        biases = [next(v for k, v in parts.items() if k.startswith(s) and k.split(".")[1] in ("b", "bias")) for s in
                  ("down_sampler", "up_sampler")]  # fmt: skip

        def hook(module: Any, args: Any, output: Any, own: Any = (down, up, *biases)) -> Any:
            y = output[0] if isinstance(output, tuple) else output
            y = y + F.gelu(y @ own[0] + own[2], approximate="tanh") @ own[1] + own[3]
            return (y, *output[1:]) if isinstance(output, tuple) else y

        backbone.get_submodule(f"{place}.{inside}").register_forward_hook(hook)
    return backbone(input_ids=IDS, attention_mask=MASK, labels=TARGETS).logits


def cross_entropy(logits: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), TARGETS.flatten(), ignore_index=-100)


@pytest.mark.parametrize("method", OURS)
def test_a_checkpoint_computes_and_learns_as_its_parts_do_in_plain_words(method: str, tmp_path: Path) -> None:
    tensors = {name: value.requires_grad_(True) for name, value in make_tensors(method).items()}
    model = load_compacter(write(tmp_path, method, {name: value.detach() for name, value in tensors.items()}))
    assert (model.module.METHOD, model.task) == (OURS[method], "mrpc")
    expected, out = slow_logits(tensors, method), model(IDS, MASK, TARGETS)
    torch.testing.assert_close(out.logits, expected, atol=1e-5, rtol=0)
    with torch.no_grad():
        assert (expected - model.backbone(input_ids=IDS, attention_mask=MASK, labels=TARGETS).logits).abs().max() > 0.01
    out.loss.backward()
    cross_entropy(expected).backward()
    gradients = model.official_gradients()
    added = {name for name in tensors if name not in make_t5().state_dict()}
    norms = {name for name in tensors if name.endswith("layer_norm.weight")} if method in ADAPTERS else set()
    assert gradients.keys() == added | norms
    for name, gradient in gradients.items():
        assert tensors[name].grad is not None
        torch.testing.assert_close(gradient, tensors[name].grad, atol=1e-5, rtol=1e-4)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == sum(g.numel() for g in gradients.values())


@pytest.mark.parametrize("method", OURS)
def test_without_a_config_the_method_is_read_from_the_tensors(method: str, tmp_path: Path) -> None:
    (write(tmp_path, method) / "config.json").unlink()
    model = load_compacter(tmp_path)
    assert OURS[method] == model.module.METHOD
    views = model.module.official_views(model.task)
    stored = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(view, stored[name]) for name, view in views.items())


def test_dropped_blocks_are_those_without_adapters_and_none_where_the_config_alone_says_so(tmp_path: Path) -> None:
    model = load_compacter(write(tmp_path, "adapters_drop"))
    assert {k: model.module.settings[k] for k in ("encoder_layers", "decoder_layers")} == {
        "encoder_layers": [1, 2], "decoder_layers": [1],
    }  # fmt: skip
    whole = load_compacter(write(tmp_path, "adapters_drop", make_tensors("adapters")))
    assert (whole.module.METHOD, whole.module.settings["encoder_layers"]) == ("adapter-drop", [0, 1, 2])


def test_a_prompt_that_started_at_tokens_is_told_by_the_config(tmp_path: Path) -> None:
    folder = write(tmp_path, "prompt_tuning_random_init", init_prefix_from_vocab=True)
    assert load_compacter(folder).module.METHOD == "prompt-tuning-t"


def test_another_task_is_named(tmp_path: Path) -> None:
    model = load_compacter(write(tmp_path, "compacter"))
    assert torch.equal(model(IDS, MASK, TARGETS, tasks=["mrpc"] * 2).logits, model(IDS, MASK, TARGETS).logits)
    with error_of("parameters-not-in-checkpoint"):
        model(IDS, MASK, TARGETS, tasks=["mrpc", "rte"])


PLACE = "encoder.block.0.layer.0.adapter_controller.adapters"


def refused(folder: Path, tensors: dict[str, Tensor], type_: str, /, **facts: Any) -> None:
    with error_of(type_, **facts) as caught:
        load_compacter(write(folder, "compacter", tensors))
    assert caught.value.remedy


def misfit(folder: Path, tensors: dict[str, Tensor], *named: str) -> None:
    refused(folder, tensors, "checkpoint-tensors-differ", tensors=list(named))


def test_what_is_no_checkpoint_of_a_method_is_refused_by_what_it_is(tmp_path: Path) -> None:
    whole = make_tensors("compacter")
    t5 = {name: value for name, value in whole.items() if "adapters." not in name and name != "phm_rule"}
    refused(tmp_path, t5, "not-a-compacter-checkpoint", kind="a T5 alone")
    refused(tmp_path, {**t5, "intrinsic_parameter": torch.zeros(3)}, "not-a-compacter-checkpoint")
    with error_of("not-a-compacter-checkpoint"):
        load_compacter(write_checkpoint(tmp_path / "other", "hyperformer++"))
    two = {**whole, f"{PLACE}.rte.down_sampler.b": torch.zeros(B)}
    refused(tmp_path, two, "checkpoint-of-several-tasks", tasks=["mrpc", "rte"])
    dense = make_tensors("adapters")
    norm = f"{PLACE.removesuffix('.adapters')}.post_layer_norm.weight"
    refused(tmp_path, {**dense, norm: torch.ones(H)}, "adapters-of-hyperformer")
    drop = {name: value for name, value in whole.items() if not name.startswith("encoder.block.0.layer.0.adapter")}
    misfit(tmp_path, drop, f"{PLACE}.mrpc.down_sampler.b")
    without_block = {name: value for name, value in whole.items() if not name.startswith("encoder.block.0") or
                     "adapter_controller" not in name}  # fmt: skip
    refused(tmp_path, without_block, "adapters-missing-in-blocks")


def test_damaged_tensors_are_refused_by_name(tmp_path: Path) -> None:
    whole = make_tensors("compacter")
    misfit(tmp_path, {name: v for name, v in whole.items() if name != "phm_rule"}, "phm_rule")
    misfit(tmp_path, {**whole, "phm_rule": torch.ones(N, N)}, "phm_rule (2, 2) instead of (2, 2, 2)")
    misfit(tmp_path, {**whole, "gate": torch.ones(1)}, "gate")
    left, bias = f"{PLACE}.mrpc.down_sampler.W_left", f"{PLACE}.mrpc.down_sampler.b"
    misfit(tmp_path, {**whole, left: torch.ones(N, 3, 1)}, f"{left} (2, 3, 1) instead of (2, 8, 1)")
    misfit(tmp_path, {**whole, left: torch.ones(())}, f"{left} ()")
    misfit(tmp_path, {**whole, bias: torch.ones(())}, f"{bias} ()")
    refused(tmp_path, {**whole, bias: torch.ones(0)}, "method-setting-not-divisor", name="n")
    prompt = make_tensors("prompt_tuning_random_init")
    misfit(tmp_path, {**prompt, "prefix_shared": torch.ones(6)}, "prefix_shared (6,)")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("non_linearity", "relu"), ("add_layer_norm_before_adapter", True), ("add_layer_norm_after_adapter", True),
        ("normalize_phm_weight", True), ("shared_W_phm", True), ("factorized_phm_rule", True),
    ],
)  # fmt: skip
def test_adapters_that_are_computed_in_another_way_are_refused(argument: str, value: Any, tmp_path: Path) -> None:
    with error_of("adapter-computation-unknown", name=argument, argument=value):
        load_compacter(write(tmp_path, "compacter", make_tensors("compacter"), **{argument: value}))


def test_folders_and_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with error_of("checkpoint-missing"):
        load_compacter(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a safetensors file")
    with pytest.raises(DamagedError):
        load_compacter(tmp_path)
    (write(tmp_path, "compacter") / "config.json").write_text("[]")
    with error_of("checkpoint-json-not-object"):
        load_compacter(tmp_path)


@pytest.fixture(params=["compacter", "adapters"])
def fixture(request: pytest.FixtureRequest, parity_folder: Path) -> Path:
    return parity_folder.parents[1] / "compacter_repo" / str(request.param)


def run(model: SingleTask, numbers: dict[str, Tensor]) -> Any:
    return model(numbers["input_ids"], numbers["attention_mask"], numbers["labels_minus100"])


def test_logits_states_and_loss_are_the_authors(fixture: Path) -> None:
    numbers, described = load_file(fixture / "io.safetensors"), json.loads((fixture / "config.json").read_text())
    model = load_compacter(fixture)
    out = run(model, numbers)
    assert model.task == described["task"]
    torch.testing.assert_close(out.logits, numbers["logits"], atol=1e-5, rtol=0)
    states = numbers["encoder_last_hidden_state"]
    torch.testing.assert_close(out.encoder_last_hidden_state, states, atol=1e-5, rtol=0)
    assert out.loss.item() == pytest.approx(described["loss"], abs=1e-5)


def test_gradients_are_the_authors_and_reach_exactly_what_they_train(fixture: Path) -> None:
    expected, described = load_file(fixture / "grads.safetensors"), json.loads((fixture / "config.json").read_text())
    model = load_compacter(fixture)
    run(model, load_file(fixture / "io.safetensors")).loss.backward()
    gradients = model.official_gradients()
    assert gradients.keys() == expected.keys() == set(described["trainable"])
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-5, rtol=0)
    assert model.module.trained == described["n_trainable"]


def test_dense_matrices_are_the_authors(fixture: Path) -> None:
    numbers = load_file(fixture / "io.safetensors")
    adapters = load_compacter(fixture).module.weights().adapters
    assert adapters is not None
    compared = 0
    for name, dense in numbers.items():
        if not name.startswith("effective_weight."):
            continue
        _, stack, _, layer, _, sublayer, *_, sampler = name.split(".")
        weights, position = getattr(adapters, stack), int(sublayer == "0")
        own = weights.down if sampler == "down_sampler" else weights.up
        torch.testing.assert_close(own[0, int(layer), position], dense.T, atol=1e-5, rtol=0)
        compared += 1
    assert compared in (0, 16)


def test_a_task_of_a_checkpoint_can_be_stored(tmp_path: Path) -> None:
    from support.task_files import load_task, save_task

    model = load_compacter(write(tmp_path, "phm_adapters"))
    save_task(model.module, tmp_path / "task.safetensors")
    again = load_task(tmp_path / "task.safetensors", model.backbone)
    assert all(torch.equal(value, again.state()[name]) for name, value in model.module.state().items())
