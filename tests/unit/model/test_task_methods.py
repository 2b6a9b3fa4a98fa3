"""Methods that train a task's own parameters: the papers' counts, how they start, what is stored and refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.refusals import refused
from support.small_methods import SETTINGS
from support.task_files import load_task, save_task
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration

from onboard.errors import DamagedError
from onboard.model.attach import attach
from onboard.model.methods import METHODS, TASK_METHODS, new_task
from onboard.model.methods.adapters_dagger import AdaptersDagger
from onboard.model.task_files import described, task_of
from onboard.model.task_module import TaskModule

BASE: dict[str, Any] = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
SMALL: dict[str, Any] = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}

COUNTS: list[tuple[str, dict[str, Any], int]] = [
    ("adapters", {}, 1_855_104),
    ("pfeiffer-adapter", {}, 951_360),
    ("adapter-drop", {}, 1_101_984),
    ("adapter-low-rank", {}, 161_664),
    ("phm-adapter", {"n": 4}, 534_144),
    ("phm-adapter", {"n": 8}, 355_968),
    ("phm-adapter", {"n": 12}, 398_976),
    ("compacter", {"n": 4}, 161_728),
    ("compacter", {"n": 8}, 162_176),
    ("compacter", {"n": 12}, 163_392),
    ("compacter++", {"n": 4}, 104_704),
    ("compacter++", {"n": 8}, 105_152),
    ("compacter++", {"n": 12}, 106_368),
    ("prompt-tuning-r", {}, 76_800),
    ("prompt-tuning-t", {}, 76_800),
    ("bitfit", {}, 280_932),
    ("intrinsic-said", {}, 20_000 + 12 * 6 + 12 * 10 + 3),  # one λ a matrix: linears, token embedding, position biases
    ("adapters-dagger", {}, 1_928_832),
    ("full-fine-tuning", {}, 222_882_048),
]
SMALL_PERCENT = {
    "adapters": 0.698, "pfeiffer-adapter": 0.363, "adapter-low-rank": 0.090, "phm-adapter": 0.216, "compacter": 0.090,
    "compacter++": 0.059, "bitfit": 0.190, "prompt-tuning-r": 0.085,
}  # fmt: skip


def on_meta(sizes: dict[str, Any], vocabulary: int = 32_100) -> Any:
    with torch.device("meta"):
        return T5ForConditionalGeneration(T5Config(**sizes, vocab_size=vocabulary))


def test_counts_on_t5_base_are_those_of_the_authors_code() -> None:
    backbone = on_meta(BASE)
    counted = [(method, settings, new_task(method, backbone, settings).trained) for method, settings, _ in COUNTS]
    assert counted == COUNTS
    assert {method for method, *_ in COUNTS} == TASK_METHODS.keys()


def test_shares_on_t5_small_are_those_of_the_authors_code() -> None:
    backbone = on_meta(SMALL)
    whole = sum(parameter.numel() for parameter in backbone.parameters())
    shares = {method: round(100 * new_task(method, backbone).trained / whole, 3) for method in SMALL_PERCENT}
    assert shares == SMALL_PERCENT


@pytest.mark.parametrize(("sizes", "trained"), [(BASE, 14_581_248), (SMALL, 3_288_064)], ids=["base", "small"])
def test_eight_tasks_that_share_their_norms_are_counted_as_the_authors_do(sizes: dict[str, Any], trained: int) -> None:
    backbone = on_meta(sizes, 32_128)
    first, *others = (AdaptersDagger(backbone) for _ in range(8))
    tasks = nn.ModuleList([first, *(task.beside(first) for task in others)])
    assert sum(parameter.numel() for parameter in tasks.parameters()) == trained


def test_names_of_tasks_methods_and_of_hypernetworks_are_apart() -> None:
    assert not METHODS.keys() & TASK_METHODS.keys()
    assert all(name == method.METHOD and method.TITLE for name, method in TASK_METHODS.items())
    assert {name for name, method in TASK_METHODS.items() if not method.PUBLISHES} == {"full-fine-tuning"}
    assert {name for name, method in TASK_METHODS.items() if not method.MIXES} == {"full-fine-tuning", "intrinsic-said"}


def test_learning_rates_are_the_authors() -> None:
    rates = {name: method.LEARNING_RATE for name, method in TASK_METHODS.items()}
    assert rates["compacter"] == rates["compacter++"] == rates["phm-adapter"] == rates["adapter-low-rank"] == 3e-3
    assert (rates["prompt-tuning-r"], rates["prompt-tuning-t"], rates["intrinsic-said"]) == (0.03, 0.3, 0.03)
    assert {rates[n] for n in ("adapters", "adapters-dagger", "pfeiffer-adapter", "adapter-drop", "bitfit")} == {3e-4}


@pytest.fixture
def backbone(backbone_of: Callable[..., Any]) -> Any:
    return backbone_of("t5").requires_grad_(False)


def small(method: str, backbone: Any) -> TaskModule:
    return new_task(method, backbone, SETTINGS.get(method))


def logits(backbone: Any, module: TaskModule) -> Tensor:
    attachment = attach(backbone)
    try:
        with torch.no_grad(), attachment.using(module.weights()):
            out: Tensor = backbone(input_ids=torch.tensor([[5, 6, 7, 1]]), labels=torch.tensor([[7, 1]])).logits
        return out
    finally:
        attachment.detach()


def test_starts_are_as_the_authors_have_them(backbone: Any) -> None:
    torch.manual_seed(0)
    adapters = dict(new_task("adapters", backbone, {"reduction_factor": 1}).named_parameters())
    assert adapters["encoder.down"].std().item() == pytest.approx(0.01, rel=0.05)
    assert not any(value.any() for name, value in adapters.items() if name.endswith("bias"))
    assert torch.equal(adapters["norms"][0], backbone.encoder.block[0].layer[0].layer_norm.weight)
    compacter = dict(small("compacter", backbone).named_parameters())
    assert compacter["rule"].std().item() == pytest.approx(1e-4, rel=0.4)
    bound = math.sqrt(2) * math.sqrt(6 / (8 + 1))  # of left (n, h / n, 1)
    assert bound * 0.9 < compacter["encoder.down_left"].abs().max().item() <= bound
    prompts = dict(new_task("prompt-tuning-r", backbone).named_parameters())["prompt"]
    assert 0.49 < prompts.max().item() <= 0.5
    assert -0.5 <= prompts.min().item() < -0.49
    tokens = dict(new_task("prompt-tuning-t", backbone).named_parameters())["prompt"]
    assert torch.equal(tokens, backbone.shared.weight[:100])


@pytest.mark.parametrize("method", ["bitfit", "intrinsic-said", "full-fine-tuning"])
def test_what_starts_at_the_backbone_computes_as_it_does(method: str, backbone: Any) -> None:
    with torch.no_grad():
        bare = backbone(input_ids=torch.tensor([[5, 6, 7, 1]]), labels=torch.tensor([[7, 1]])).logits
    torch.testing.assert_close(logits(backbone, small(method, backbone)), bare)


@pytest.mark.parametrize("method", [name for name, method in TASK_METHODS.items() if method.PUBLISHES])
def test_a_stored_task_computes_the_same_again(method: str, backbone: Any, tmp_path: Path) -> None:
    torch.manual_seed(1)
    module = small(method, backbone)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_task(module, tmp_path / "task.safetensors", {"task": "reviews"})
    again = load_task(tmp_path / "task.safetensors", backbone)
    assert (type(again), again.settings) == (type(module), module.settings)
    assert torch.equal(logits(backbone, again), logits(backbone, module))
    assert (again.trained, again.stored_bytes) == (module.trained, 4 * module.trained)
    header = (tmp_path / "task.safetensors").stat().st_size - module.stored_bytes
    assert 0 < header < 5000


def test_every_parameter_of_every_method_gets_a_gradient(backbone: Any) -> None:
    for method in TASK_METHODS:
        torch.manual_seed(1)
        module = small(method, backbone)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        attachment = attach(backbone)
        with attachment.using(module.weights()):
            backbone(input_ids=torch.tensor([[5, 6, 7, 1]]), labels=torch.tensor([[7, 1]])).loss.backward()
        attachment.detach()
        without = {name for name, p in module.named_parameters() if p.grad is None or not p.grad.any()}
        assert without == set(), method
        assert all(parameter.grad is None for parameter in backbone.parameters())


def stored(backbone: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    module = small("compacter", backbone)
    return module.state(), described(module)


def test_damaged_tensors_are_refused_by_name(backbone: Any) -> None:
    tensors, metadata = stored(backbone)
    changes: list[tuple[dict[str, Tensor], str]] = [
        ({"rule": tensors["rule"][:2]}, "stored-tensor-shape-differs"),
        ({"rule": tensors["rule"].clone().fill_(torch.nan)}, "stored-tensor-not-finite"),
        ({"rule": tensors["rule"].long()}, "stored-tensor-not-finite"),
        ({"gate": torch.ones(1)}, "stored-tensors-differ"),
    ]
    for change, type_ in changes:
        with refused(type_, tensor=next(iter(change))) as caught:
            task_of({**tensors, **change}, metadata, backbone)
        assert caught.value.remedy
    with refused("stored-tensors-differ", tensor="encoder.up_bias"):
        task_of({name: value for name, value in tensors.items() if name != "encoder.up_bias"}, metadata, backbone)


def test_nothing_is_taken_over_where_one_tensor_is_damaged(backbone: Any) -> None:
    module = small("compacter", backbone)
    before, changed = module.state(), {name: value + 1 for name, value in module.state().items()}
    with pytest.raises(DamagedError):
        module.restore({**changed, "rule": changed["rule"] * torch.inf})
    assert all(torch.equal(value, before[name]) for name, value in module.state().items())


@pytest.mark.parametrize(
    ("metadata", "type_"),
    [
        ({"format": "onboard-hypernetwork-1"}, "task-weights-format-unknown"),
        ({"method": "lora"}, "weights-method-unknown"),
        ({"method": "full-fine-tuning"}, "weights-method-unknown"),
        ({"settings": "{"}, "stored-settings-unreadable"),
        ({"settings": "[]"}, "stored-settings-not-object"),
        ({"settings": '{"rank": 3}'}, "unknown-method-setting"),
        ({"settings": '{"n": 5}'}, "method-setting-not-divisor"),
    ],
)
def test_what_describes_no_task_is_refused(metadata: dict[str, str], type_: str, backbone: Any) -> None:
    tensors, own = stored(backbone)
    with refused(type_):
        task_of(tensors, {**own, **metadata}, backbone)


def test_full_fine_tuning_publishes_nothing(backbone: Any, tmp_path: Path) -> None:
    with refused("method-only-for-comparison"):
        save_task(new_task("full-fine-tuning", backbone), tmp_path / "task.safetensors")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("method", "settings", "type_", "remedy"),
    [
        ("adapters", {"reduction_factor": 5}, "method-setting-not-divisor", "1, 2, 4, 8, 16, 32"),
        ("adapters", {"reduction_factor": 0}, "method-setting-not-positive", "whole number"),
        ("adapters", {"reduction_factor": True}, "method-setting-not-positive", "whole number"),
        ("adapters", {"n": 4}, "unknown-method-setting", "reduction_factor"),
        ("compacter", {"reduction_factor": 4, "n": 16}, "method-setting-not-divisor", "1, 2, 4, 8"),
        ("phm-adapter", {"reduction_factor": 16}, "method-setting-not-divisor", "1, 2"),
        ("prompt-tuning-r", {"tokens": 129}, "prompt-too-long", "1 to 128"),
        ("prompt-tuning-t", {"tokens": 0}, "method-setting-not-positive", "whole number"),
        ("adapter-drop", {"reduction_factor": 4, "encoder_layers": [3]}, "adapter-layers-wrong", "0 to 2"),
        ("adapter-drop", {"reduction_factor": 4, "decoder_layers": [0, 0]}, "adapter-layers-wrong", "once"),
        ("adapter-drop", {"reduction_factor": 4, "decoder_layers": "0"}, "adapter-layers-wrong", "0 to 1"),
        ("adapter-drop", {"reduction_factor": 4, "encoder_layers": 2}, "adapter-layers-wrong", "0 to 2"),
        ("intrinsic-said", {"dimension": 10**9}, "dimension-too-large", "1 to"),
        ("intrinsic-said", {"dimension": 10, "seed": -1}, "method-seed-wrong", "0"),
        ("lora", {}, "unknown-task-method", "compacter"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_those_that_do(
    method: str, settings: dict[str, Any], type_: str, remedy: str, backbone: Any
) -> None:
    with refused(type_) as caught:
        new_task(method, backbone, settings)
    assert remedy in caught.value.remedy


def test_backbones_that_a_method_does_not_support_are_refused(backbone: Any) -> None:
    with refused("not-an-encoder-decoder"):
        new_task("compacter", nn.Linear(2, 2))
    backbone.encoder.block[1].layer[0].SelfAttention.q = nn.Linear(32, 32)
    with refused("backbone-has-bias"):
        new_task("bitfit", backbone)


@pytest.mark.parametrize(("depth", "first"), [(12, 5), (6, 2), (4, 1), (2, 1), (1, 0)])
def test_adapter_drop_leaves_the_lower_five_twelfths_without(depth: int, first: int) -> None:
    module = new_task("adapter-drop", on_meta({**SMALL, "num_layers": depth, "num_decoder_layers": 1}))
    assert module.get_submodule("encoder").places.layers == tuple(range(first, depth))
