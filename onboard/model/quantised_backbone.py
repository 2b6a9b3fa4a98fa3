"""A T5 folder with int8 weights: config.json and model.int8.safetensors."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from onboard.errors import DamagedError, InputError
from onboard.model.quantised import RESTORE, dequantise, quantise
from onboard.model.weights import read_tensors, write_tensors

QUANTISED_FILE = "model.int8.safetensors"
QUANTISED_FORMAT = "onboard-int8-1"


def save_quantised_backbone(backbone: Any, folder: str | Path) -> None:
    """Write config.json and model.int8.safetensors. Equal weights give equal bytes.

    Args:
        backbone: a T5, preferably rounded with `round_to_stored`. A tied weight is stored once.
        folder: created if missing. An existing model.safetensors in it is kept, but no longer read.

    Raises:
        InputError: a weight is NaN, infinite or too large.
    """
    tensors = quantise(dict(backbone.named_parameters()))
    config = copy.deepcopy(backbone.config)
    config.architectures = [type(backbone).__name__]
    config.dtype = torch.float32  # dtype of the weights as they are read back
    Path(folder).mkdir(parents=True, exist_ok=True)
    config.save_pretrained(folder)
    write_tensors(tensors, Path(folder) / QUANTISED_FILE, {"format": QUANTISED_FORMAT})


def read_quantised_backbone(folder: str | Path, kind: type[Any], config: Any, dtype: torch.dtype) -> Any:
    """Read the model of a folder to the CPU. Weights are assigned without initialization.

    Args:
        folder: contains model.int8.safetensors.
        kind: the T5 class.
        config: of the class, from the folder's config.json.
        dtype: of the parameters.

    Raises:
        DamagedError: it cannot be read, or its tensors do not match config.json.
        InputError: another format.
    """
    path = Path(folder) / QUANTISED_FILE
    try:
        stored, metadata = read_tensors(path)
    except DamagedError as error:
        raise DamagedError.like(error, RESTORE) from error
    if metadata.get("format") != QUANTISED_FORMAT:
        raise InputError("quantised-format-unknown", path=path, format=metadata.get("format"))
    tensors = {name: value.to(dtype) for name, value in dequantise(stored, path).items()}
    config.dtype = dtype
    with torch.device("meta"):
        model = kind(config)
    _check(model, tensors, path)
    assign_weights(model, tensors)
    return model


def assign_weights(model: Any, tensors: Mapping[str, Tensor]) -> None:
    """Give a T5 on the meta device its weights without copying. A tied weight that is included stays separate."""
    model.load_state_dict(tensors, strict=False, assign=True)  # only tied weights may be missing
    for name in tensors.keys() & model.all_tied_weights_keys.keys():
        del model.all_tied_weights_keys[name]  # stored separately: an untied head
    model.tie_weights(recompute_mapping=False)


def _check(model: Any, tensors: Mapping[str, Tensor], path: Path) -> None:
    expected = dict(model.named_parameters(remove_duplicate=False))
    for name in sorted(tensors.keys() - expected.keys()):
        raise DamagedError("tensor-not-described", tensor=name, path=path)
    for name in sorted(expected.keys() - tensors.keys() - model.all_tied_weights_keys.keys()):
        raise DamagedError("tensor-missing", tensor=name, path=path)
    for name, value in tensors.items():
        if value.shape != expected[name].shape:
            raise DamagedError(
                "tensor-shape-differs",
                tensor=name,
                path=path,
                shape=tuple(value.shape),
                expected=tuple(expected[name].shape),
            )
