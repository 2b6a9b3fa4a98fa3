"""Read checkpoints of the authors' repository (rabeehk/hyperformer): HyperFormer++ and the paper's HyperFormer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from onboard.errors import InputError
from onboard.model.authors_files import CheckpointOrigin, blocks, cross_bias, described, fill_t5, section, tensors_of
from onboard.model.exporters import TASK_PREFIX
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.methods import new_hypernetwork
from onboard.model.methods.hyperformer import PLAIN_PROJECTOR, PlainHyperFormer, place_prefix
from onboard.model.methods.hyperformer_plus_plus import PROJECTOR, STACK_PREFIX, HyperFormerPlusPlus

_ONLY = "Only checkpoints of HyperFormer++ (efficient_unique_hyper_net) and of the paper's HyperFormer can be read."
_HYPERFORMER = CheckpointOrigin("rabeehk/hyperformer", _ONLY)


@dataclass(frozen=True)
class AuthorsCheckpoint:
    """The contents of a checkpoint.

    Args:
        backbone: a stock T5 in float32; its weights may be memory-mapped.
        hypernetwork: in float32.
        embeddings: z of every task, (t,) float32, in the order of config.json, or else alphabetically.
        described: config.json; empty if missing.
        notes: sentences on what could not be imported.
    """

    backbone: Any
    hypernetwork: Hypernetwork
    embeddings: dict[str, Tensor]
    described: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_checkpoint(folder: str | Path) -> AuthorsCheckpoint:
    """Read a checkpoint with the authors' parameter names: `model.safetensors` or `pytorch_model.bin`.

    Sizes are derived from the tensors. Facts that tensors do not contain (dropout, epsilon, special tokens) come from
    `config.json`, top level or "t5", or are T5's defaults. Weights stay memory-mapped if the file allows it.

    Raises:
        NotFoundError: the folder contains neither file.
        DamagedError: a file cannot be read.
        InputError: the checkpoint is of another method (the error names it), tensors are missing, unexpected or of
            another shape, or the .bin contains anything but tensors (no code is executed).
    """
    config, tensors = described(Path(folder)), tensors_of(Path(folder))
    _refuse_other_methods(tensors, config)
    with torch.device("meta"):
        hypernetwork = _hypernetwork(tensors)
        backbone = _HYPERFORMER.t5(tensors, config)
    embeddings = {name.removeprefix(TASK_PREFIX): z for name, z in tensors.items() if name.startswith(TASK_PREFIX)}
    more = {name: tuple(value.shape) for name, value in hypernetwork.official_views().items()}
    size = (hypernetwork.sizes["task_embedding_size"],)
    _HYPERFORMER.check(tensors, backbone, {**more, **{TASK_PREFIX + task: size for task in embeddings or ["TASK"]}})
    fill_t5(backbone, tensors)
    hypernetwork.to_empty(device="cpu")
    for name, view in hypernetwork.official_views().items():
        view.copy_(tensors[name])
    listed = [name for name in config.get("tasks") or () if isinstance(name, str) and name in embeddings]
    order = [*listed, *sorted(embeddings.keys() - set(listed))]
    ordered = {name: embeddings[name].float().clone() for name in order}
    return AuthorsCheckpoint(backbone, hypernetwork, ordered, config, cross_bias(tensors))


def _refuse_other_methods(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> None:
    stack, place = STACK_PREFIX.format(stack="encoder"), place_prefix("encoder", 0, 1)
    names = list(tensors)
    if f"{stack}feed_forward_up_sampler_hyper_net.weight_generator.0.weight" in tensors:
        kind = "the authors' released configuration named HyperFormer (unique_hyper_net), not the paper's"
    elif any("phm_rule" in name or ".W_left" in name for name in names):
        kind = "a Compacter or low-rank checkpoint"
    elif any(name.startswith(f"{place}adapters.") for name in names):
        kind = "a checkpoint of adapters without a hypernetwork"
    elif not any(name.startswith((stack, f"{place}meta_")) for name in names):
        kind = "a T5 without a hypernetwork"
    else:
        kind = ""
    if kind:
        raise InputError("not-a-hyperformer-checkpoint", kind=kind)
    activation = section(config, "adapter").get("non_linearity", "gelu_new")
    if activation != "gelu_new":
        raise InputError("unknown-activation", activation=activation)


def _hypernetwork(tensors: Mapping[str, Tensor]) -> Hypernetwork:
    """Return a hypernetwork of the tensors' method and sizes, without their values."""
    stack, place = STACK_PREFIX.format(stack="encoder"), place_prefix("encoder", 0, 1)
    shared = any(name.startswith(stack) for name in tensors)
    projector = stack + PROJECTOR if shared else PLAIN_PROJECTOR
    down = f"{stack}down_sampler_hyper_net" if shared else f"{place}meta_down_sampler"
    width, joined = _HYPERFORMER.shape(tensors, f"{projector}.0.weight", 2)
    sizes = {
        "d_model": _HYPERFORMER.shape(tensors, "shared.weight", 2)[1],
        "encoder_layers": blocks(tensors, "encoder"),
        "decoder_layers": blocks(tensors, "decoder"),
        "bottleneck": _HYPERFORMER.shape(tensors, f"{down}.bias_generator.0.bias", 1)[0],
        "task_embedding_size": joined // 3 if shared else joined,
        "projector_width": width,
        "conditioning_size": _HYPERFORMER.shape(tensors, f"{projector}.2.weight", 2)[0],
    }
    return new_hypernetwork(HyperFormerPlusPlus.METHOD if shared else PlainHyperFormer.METHOD, sizes)
