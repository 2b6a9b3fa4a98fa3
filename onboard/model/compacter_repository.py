"""Read checkpoints of the authors' second repository (rabeehk/compacter): one task with a task-specific method."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from onboard.errors import InputError
from onboard.model.attach import FEED_FORWARD, SELF_ATTENTION
from onboard.model.authors_files import CheckpointOrigin, blocks, cross_bias, described, fill_t5, section, tensors_of
from onboard.model.methods import new_task
from onboard.model.methods.adapter_drop import AdapterDrop
from onboard.model.methods.adapter_low_rank import AdapterLowRank
from onboard.model.methods.adapter_shaped import BOTH
from onboard.model.methods.adapters import Adapters
from onboard.model.methods.bitfit import BitFit
from onboard.model.methods.compacter import Compacter, CompacterPlusPlus
from onboard.model.methods.hyperformer import place_prefix
from onboard.model.methods.pfeiffer_adapter import PfeifferAdapter
from onboard.model.methods.phm_adapter import PhmAdapter
from onboard.model.methods.prompt_tuning import PromptTuningRandom, PromptTuningTokens
from onboard.model.task_module import TaskModule

_ONLY = (
    "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, Compacter++, prompt tuning "
    "and BitFit can be read."
)
_COMPACTER = CheckpointOrigin("rabeehk/compacter", _ONLY)
_ADAPTER = re.compile(r"(encoder|decoder)\.block\.(\d+)\.layer\.(\d+)\.adapter_controller\.adapters\.([^.]+)\.(.+)")
# required settings, so that adapters are computed in the same way
_COMPUTED_AS: Final[Mapping[str, Any]] = {
    "non_linearity": "gelu_new",
    "add_layer_norm_before_adapter": False,
    "add_layer_norm_after_adapter": False,
    "normalize_phm_weight": False,
    "shared_W_phm": False,
    "factorized_phm_rule": False,
}


@dataclass(frozen=True)
class TaskCheckpoint:
    """The contents of a checkpoint.

    Args:
        backbone: a stock T5 in float32, with the norms of the checkpoint; its weights may be memory-mapped.
        module: the task-specific parameters, in float32.
        described: config.json; empty if missing.
        notes: sentences on what could not be imported.
    """

    backbone: Any
    module: TaskModule
    task: str
    described: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Adapters:
    """The adapters of a checkpoint, derived from its names.

    Args:
        layers: the blocks of each stack that have adapters.
        positions: their positions within a block.
        parts: names of their parameters, such as "down_sampler.weight".
    """

    task: str
    layers: dict[str, tuple[int, ...]]
    positions: tuple[int, ...]
    parts: frozenset[str]

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> _Adapters | None:
        """Return None if there are no adapters. Raises InputError for those of several tasks."""
        matches = [match for name in tensors if (match := _ADAPTER.fullmatch(name))]
        tasks = sorted({match[4] for match in matches})
        if not tasks:
            return None
        if len(tasks) > 1:
            raise InputError("checkpoint-of-several-tasks", tasks=list(tasks))
        layers = {
            stack: tuple(sorted({int(match[2]) for match in matches if match[1] == stack}))
            for stack in ("encoder", "decoder")
        }
        positions = {SELF_ATTENTION if match[3] == "0" else FEED_FORWARD for match in matches}
        return cls(tasks[0], layers, tuple(sorted(positions)), frozenset(match[5] for match in matches))


def read_task_checkpoint(folder: str | Path) -> TaskCheckpoint:
    """Read a checkpoint of rabeehk/compacter: `model.safetensors` or `pytorch_model.bin`.

    Method and sizes are derived from the tensors. Facts that tensors do not contain (dropout, epsilon, the blocks of
    AdapterDrop, the start of a prompt) come from `config.json` or are defaults.

    Raises:
        NotFoundError: the folder contains neither file.
        DamagedError: a file cannot be read.
        InputError: the checkpoint is of another method (the error names it) or of several tasks, its adapters are
            computed differently, tensors are missing, unexpected or of another shape, or the .bin contains anything but
            tensors (no code is executed).
    """
    config, tensors = described(Path(folder)), tensors_of(Path(folder))
    adapters = _Adapters.of(tensors)
    arguments = section(config, "adapter_args") or config
    method, settings = (
        _prompt_or_biases(tensors, arguments)
        if adapters is None
        else _adapter_method(tensors, adapters, arguments, str(config.get("method", "")))
    )
    task = adapters.task if adapters else str(config.get("task", "task"))
    with torch.device("meta"):
        backbone = _COMPACTER.t5(tensors, config)
        expected = new_task(method, backbone, settings).official_views(task)
    _COMPACTER.check(tensors, backbone, {name: tuple(view.shape) for name, view in expected.items()})
    fill_t5(backbone, tensors)
    module = new_task(method, backbone, settings)
    for name, view in module.official_views(task).items():
        view.copy_(tensors[name])
    return TaskCheckpoint(backbone, module, task, config, cross_bias(tensors))


def _adapter_method(
    tensors: Mapping[str, Tensor], adapters: _Adapters, arguments: Mapping[str, Any], told_method: str
) -> tuple[str, dict[str, Any]]:
    """Return the name in `TASK_METHODS` and the settings."""
    for name, ours in _COMPUTED_AS.items():
        if arguments.get(name, ours) != ours:
            raise InputError("adapter-computation-unknown", name=name, argument=arguments[name], ours=ours)
    whole = {stack: tuple(range(blocks(tensors, stack))) for stack in ("encoder", "decoder")}
    if adapters.parts >= {"down_sampler.weight"}:
        return _dense(tensors, adapters, whole, told_method)
    settings = {"reduction_factor": _reduction(tensors, adapters, "b")}
    if adapters.layers != whole:
        raise InputError("adapters-missing-in-blocks")
    down = f"{_first(adapters)}down_sampler."
    if f"{down}W" in tensors:
        method: Any = PhmAdapter
    elif f"{down}W_left" in tensors and tensors[f"{down}W_left"].dim() == 2:
        method = AdapterLowRank
    elif f"{down}W_left" in tensors:
        method = CompacterPlusPlus if adapters.positions == (FEED_FORWARD,) else Compacter
    else:
        raise _COMPACTER.unlike("lacks", [f"{down}W"])
    if method is not AdapterLowRank:
        settings["n"] = _COMPACTER.shape(tensors, f"{down}W" if method is PhmAdapter else f"{down}W_left", 3)[0]
    if adapters.positions not in (BOTH, method.POSITIONS_USED):
        raise InputError("adapters-misplaced", method=method.TITLE)
    return method.METHOD, settings


def _dense(
    tensors: Mapping[str, Tensor], adapters: _Adapters, whole: Mapping[str, tuple[int, ...]], told_method: str
) -> tuple[str, dict[str, Any]]:
    if any("post_layer_norm" in name or "pre_layer_norm" in name for name in tensors):
        raise InputError("adapters-of-hyperformer")
    settings: dict[str, Any] = {"reduction_factor": _reduction(tensors, adapters, "bias")}
    if adapters.layers == whole and adapters.positions == (SELF_ATTENTION,):
        return PfeifferAdapter.METHOD, settings
    if adapters.positions != BOTH:
        raise InputError("adapters-of-no-method")
    if adapters.layers == whole and told_method != "adapters_drop":
        return Adapters.METHOD, settings
    return AdapterDrop.METHOD, {**settings, **{f"{stack}_layers": [*rows] for stack, rows in adapters.layers.items()}}


def _first(adapters: _Adapters) -> str:
    """Return the name prefix of one of the adapters."""
    stack = "encoder" if adapters.layers["encoder"] else "decoder"
    return f"{place_prefix(stack, adapters.layers[stack][0], adapters.positions[-1])}adapters.{adapters.task}."


def _reduction(tensors: Mapping[str, Tensor], adapters: _Adapters, bias: str) -> int:
    width = _COMPACTER.shape(tensors, "shared.weight", 2)[1]
    (bottleneck,) = _COMPACTER.shape(tensors, f"{_first(adapters)}down_sampler.{bias}", 1)
    return max(1, width // max(1, bottleneck))


def _prompt_or_biases(tensors: Mapping[str, Tensor], arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if "prefix_shared" in tensors:
        method = PromptTuningTokens if arguments.get("init_prefix_from_vocab") else PromptTuningRandom
        return method.METHOD, {"tokens": _COMPACTER.shape(tensors, "prefix_shared", 2)[0]}
    if any(name.endswith("SelfAttention.q.bias") for name in tensors):
        return BitFit.METHOD, {}
    if any("intrinsic_parameter" in name for name in tensors):
        kind = "Intrinsic-SAID, whose projection is not stored"
    elif any("hyper_net" in name or "meta_up_sampler" in name for name in tensors):
        kind = "HyperFormer's or HyperFormer++'s; onboard base import reads it"
    else:
        kind = "a T5 alone"
    raise InputError("not-a-compacter-checkpoint", kind=kind)
