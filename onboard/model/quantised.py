"""Weights as int8 with one scale per row, as bases store them. Arithmetic only, without file access.

Symmetric absmax quantization (Dettmers et al. 2022, arXiv 2208.07339, here with one scale per row): scale = absmax /
127, stored = round(x / scale), read back = stored · scale.

Storing read-back values changes nothing: the largest number of a row is ±127 · scale, and 127 · scale / 127, each step
rounded to float32, equals the scale for every scale from absmax / 127 (a test tries all 2^23 mantissas; exponents do
not matter). A float16 scale would be too coarse for rows with absmax below 0.008.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from onboard.errors import DamagedError, InputError

RESTORE = "Copy the base again from where it came, or make it again: onboard base train"
_SCALE = ".scale"
_SMALLEST = 4096  # numbers; smaller tensors are stored as float16
_LARGEST_INT8 = 127
_LEAST_SCALE = torch.finfo(torch.float32).tiny  # also the scale of a row of zeros


def quantise(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return float tensors in their stored format.

    A tensor of at least two dimensions and 4,096 numbers, (..., n), becomes NAME int8 (..., n) and NAME.scale float32
    (...); |x - x'| ≤ scale / 2. Everything else becomes float16 of the same shape.

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
    """Return float32 tensors from a result of `quantise`. Tensors in float16 or float32 keep their values.

    All tensors are new; none is a view of the file.

    Args:
        tensors: all tensors of a file.

    Raises:
        DamagedError: a scale is missing, has another shape or is not a positive number, or a tensor has another dtype.
    """
    return {
        name: _read_back(name, tensor, tensors, source)
        for name, tensor in tensors.items()
        if not _is_scale_in(name, tensors)
    }


@torch.no_grad()
def round_to_stored(module: nn.Module) -> None:
    """Round every float32 parameter to its stored value, so that training continues from stored weights.

    Raises:
        InputError: as `quantise`.
    """
    parameters = dict(module.named_parameters())  # each tied weight once
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
