"""Products with the frozen backbone's matrices in bfloat16, on CPUs with instructions for it.

They take two thirds of the time of float32 for a training step, and change log-probabilities by some thousandths. That
is accurate enough to compare starts and to train an embedding. Predictions, evaluations and measurements use float32,
so that answers agree between machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (the name that every PyTorch reader knows)
from torch.overrides import TorchFunctionMode

_INSTRUCTIONS: Final = ("avx512_bf16", "amx_bf16")


@cache
def has_bfloat16() -> bool:
    """Return whether this CPU has bfloat16 multiplication; without it, bfloat16 would be slower than float32."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(instruction, False) for instruction in _INSTRUCTIONS)


def rounded_weights(backbone: Any) -> dict[int, Tensor]:
    """Return the float32 matrices of a frozen T5's two stacks, rounded to bfloat16, by the id of the parameter."""
    stacks = (backbone.encoder, backbone.decoder)
    weights = [module.weight for stack in stacks for module in stack.modules() if isinstance(module, nn.Linear)]
    return {id(weight): weight.detach().bfloat16() for weight in weights if weight.dtype == torch.float32}


class RoundedProducts(TorchFunctionMode):
    """Within the block, linear layers with these weights multiply in bfloat16, in this thread only.

    Args:
        weights: from `rounded_weights`.
    """

    def __init__(self, weights: Mapping[int, Tensor]) -> None:
        super().__init__()
        self._weights = weights

    def __torch_function__(  # PyTorch defines the signature
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is F.linear:
            weight = self._weights.get(id(args[1]))
            if weight is not None:
                return _Product.apply(args[0], weight)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return func(*args, **(kwargs or {}))


class _Product(torch.autograd.Function):
    """x Wᵀ of float32 x (…, i) and a frozen bfloat16 W (o, i), summed in float32; so is its gradient for x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.weight = weight
        return F.linear(x.bfloat16(), weight).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return (gradient.bfloat16() @ ctx.weight).float(), None
