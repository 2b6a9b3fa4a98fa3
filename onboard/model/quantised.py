"""Weights as int8 with one scale per row: what a base stores. Arithmetic only; files are written elsewhere.

Symmetric absmax quantisation (Dettmers et al. 2022, arXiv 2208.07339, here with one scale per row):
scale = absmax / 127, stored = round(x / scale), read back = stored · scale.

Storing what was read back changes nothing: the largest number of a row is ±127 · scale, and 127 · scale / 127, each
step rounded to float32, is the scale again for every scale that came from absmax / 127 (the test tries all 2^23
mantissas; exponents do not matter). A float16 scale would be too coarse for rows whose absmax is below 0.008.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from onboard.errors import DamagedError, InputError

RESTORE = "Copy the base again from where it came, or make it again: onboard base train"
_SCALE = ".scale"
_SMALLEST = 4096  # numbers; below it a tensor is kept in float16
_LARGEST_INT8 = 127
_LEAST_SCALE = torch.finfo(torch.float32).tiny  # also the scale of a row of zeros


def quantise(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What is stored of float tensors.

    A tensor of at least two dimensions and 4,096 numbers, (..., n), becomes NAME int8 (..., n) and NAME.scale
    float32 (...); |x - x'| ≤ scale / 2. Everything else becomes float16, same shape.

    Raises:
        InputError: not floats, NaN, infinite or too large, or the name of a scale is taken.
    """
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise InputError("tensor-not-floating", name=name, dtype=tensor.dtype)
        value = tensor.detach().float()
        if value.dim() < 2 or value.numel() < _SMALLEST:
            stored[name] = _finite(name, value.half())
            continue
        if name + _SCALE in tensors:
            raise InputError("tensor-name-taken", name=name)
        scale = (value.abs().amax(-1) / _LARGEST_INT8).clamp(min=_LEAST_SCALE)  # (...)
        _finite(name, scale * _LARGEST_INT8)  # the largest number that would be read back
        stored[name] = (value / scale.unsqueeze(-1)).round().to(torch.int8)  # (..., n), never beyond ±127
        stored[name + _SCALE] = scale
    return stored


def dequantise(tensors: Mapping[str, Tensor], source: str | Path = "what was stored") -> dict[str, Tensor]:
    """Float32 tensors of what `quantise` made; what is stored in float16 or float32 comes back with its own numbers.

    All are new tensors: none is a view of the file that it was read from.

    Args:
        tensors: all tensors of a file.
        source: the file, for the message.

    Raises:
        DamagedError: a scale is missing, has another shape or is not a positive number; a tensor is of another type.
    """
    return {
        name: _read_back(name, tensor, tensors, source)
        for name, tensor in tensors.items()
        if not _is_scale_in(name, tensors)
    }


@torch.no_grad()
def round_to_stored(module: nn.Module) -> None:
    """Every float32 parameter becomes what will be read back: what is trained next is what will be shipped.

    Raises:
        InputError: as `quantise`.
    """
    parameters = dict(module.named_parameters())  # a tied weight once
    for name, value in dequantise(quantise(parameters)).items():
        parameters[name].copy_(value)


def _is_scale_in(name: str, tensors: Mapping[str, Tensor]) -> bool:
    owner = tensors.get(name.removesuffix(_SCALE))
    return name.endswith(_SCALE) and owner is not None and owner.dtype == torch.int8


def _read_back(name: str, tensor: Tensor, tensors: Mapping[str, Tensor], source: str | Path) -> Tensor:
    if tensor.dtype in (torch.float16, torch.float32):
        return tensor.to(torch.float32, copy=True)
    if tensor.dtype != torch.int8:
        raise DamagedError("tensor-type-unknown", tensor=name, source=source, dtype=tensor.dtype)
    scale = tensors.get(name + _SCALE)
    if scale is None:
        raise DamagedError("tensor-scale-missing", tensor=name, source=source)
    if scale.dtype != torch.float32 or scale.shape != tensor.shape[:-1]:
        raise DamagedError(
            "tensor-scale-shape-differs",
            tensor=name,
            source=source,
            dtype=scale.dtype,
            shape=tuple(scale.shape),
            expected_dtype=torch.float32,
            expected_shape=tuple(tensor.shape[:-1]),
        )
    if not bool((scale.isfinite() & (scale > 0)).all()):
        raise DamagedError("tensor-scale-not-positive", tensor=name, source=source)
    return tensor * scale.unsqueeze(-1)  # int8 · float32 is computed in float32


def _finite(name: str, value: Tensor) -> Tensor:
    if not bool(value.isfinite().all()):
        raise InputError("tensor-not-finite", tensor=name)
    return value
