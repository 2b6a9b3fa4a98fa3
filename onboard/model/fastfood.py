"""Fastfood (Le et al., arXiv 1408.3060): random projections that need not be stored."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from torch import Tensor


class Fastfood:
    """The projection P of d numbers onto the n entries of one matrix: P x = H · G · Π · H · B · x / √n.

    H is the Hadamard matrix of p = 2^⌈log₂ d⌉ numbers, B random signs, Π a permutation and G normal numbers. For n > p
    there are several blocks, each with a separate G, so that their rows are independent given B and Π. On average ‖P x‖
    = ‖x‖. All random numbers follow from the seed and the name on every machine: numpy guarantees that those of
    `RandomState` never change. They are drawn on first use and never stored.

    Args:
        name: name of the matrix; each has a different projection.
        inputs: d.
        outputs: n.
    """

    def __init__(self, seed: int, name: str, inputs: int, outputs: int) -> None:
        self.seed, self.name, self.inputs, self.outputs = seed, name, inputs, outputs
        self.size = 1 << (inputs - 1).bit_length()
        self._drawn: tuple[Tensor, Tensor, Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Project (d,) → (n,), differentiable."""
        signs, order, normal = self._draws(x.device)
        padded = torch.nn.functional.pad(x, (0, self.size - self.inputs)) * signs.to(x.dtype)  # (p,)
        mixed = hadamard(padded)[order] * self.size**-0.5  # (p,), with the norm of x
        blocks = hadamard(normal.to(x.dtype) * mixed)  # (blocks, p)
        projected: Tensor = blocks.flatten()[: self.outputs] * self.outputs**-0.5
        return projected

    @property
    def nbytes(self) -> int:
        """Bytes of the random numbers, once drawn."""
        return self.size * (4 + 8 + 4 * -(-self.outputs // self.size))  # signs, order, normal numbers

    def _draws(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        if self._drawn is None or self._drawn[0].device != device:
            digest = hashlib.sha256(f"{self.seed} {self.name}".encode()).digest()
            random = np.random.RandomState(np.frombuffer(digest, dtype="<u4").astype(np.int64))
            signs = random.randint(0, 2, self.size) * 2.0 - 1.0
            order = random.permutation(self.size)
            normal = random.standard_normal((-(-self.outputs // self.size), self.size))
            self._drawn = (
                torch.from_numpy(signs.astype(np.float32)).to(device),
                torch.from_numpy(order).to(device),
                torch.from_numpy(normal.astype(np.float32)).to(device),
            )
        return self._drawn


def hadamard(x: Tensor) -> Tensor:
    """Multiply x by the Hadamard matrix (entries ±1) over its last dimension p, a power of two, in p · log₂ p
    additions.
    """
    transformed: Tensor = _Hadamard.apply(x)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return transformed


class _Hadamard(torch.autograd.Function):
    """The matrix is symmetric, so the gradient is transformed like the input, and nothing has to be saved."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004 (the signature is PyTorch's)
        return _transformed(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004 (the signature is PyTorch's)
        return _transformed(gradient)


def _transformed(x: Tensor) -> Tensor:
    shape, width = x.shape, 1
    while width < shape[-1]:
        first, second = x.reshape(-1, 2, width).unbind(1)
        x = torch.stack([first + second, first - second], dim=1)
        width *= 2
    return x.reshape(shape)
