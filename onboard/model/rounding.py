"""Products with the frozen backbone's matrices in bfloat16, on CPUs that have instructions for them.

They take two thirds of the time of float32 for a training step, forward and back, and move log-probabilities by some
thousandths: enough to compare starts and to find the way of an embedding, not to answer with. Whoever answers, judges
or measures computes in float32 everywhere, so that answers agree between machines.
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
    """Whether this machine's CPU multiplies bfloat16; without such instructions it would be slower than float32."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(instruction, False) for instruction in _INSTRUCTIONS)


def rounded_weights(backbone: Any) -> dict[int, Tensor]:
    """The float32 matrices of a frozen T5's two stacks, rounded to bfloat16, by the id of the parameter."""
    stacks = (backbone.encoder, backbone.decoder)
    weights = [module.weight for stack in stacks for module in stack.modules() if isinstance(module, nn.Linear)]
    return {id(weight): weight.detach().bfloat16() for weight in weights if weight.dtype == torch.float32}


class RoundedProducts(TorchFunctionMode):
    """Within the block, and in its thread alone, linear layers with these weights multiply in bfloat16.

    Args:
        weights: of `rounded_weights`.
    """

    def __init__(self, weights: Mapping[int, Tensor]) -> None:
        super().__init__()
        self._weights = weights

    def __torch_function__(  # the signature is PyTorch's
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
    """x Wᵀ of float32 x (…, i) and a frozen bfloat16 W (o, i), summed in float32; its gradient in x alike."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.weight = weight
        return F.linear(x.bfloat16(), weight).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return (gradient.bfloat16() @ ctx.weight).float(), None
