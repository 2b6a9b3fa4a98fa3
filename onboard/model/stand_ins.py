"""Replace matrices of a backbone for one computation, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class StandIns(TorchFunctionMode):
    """Within the block, operations on these parameters use replacements, in this thread only.

    The backbone itself does not change, so other threads can use it. Gradients flow to the replacements.

    Args:
        backbone: its parameters are replaced; a tied parameter is replaced everywhere.
        tensors: replacements by the parameter's name, of the same shape.
        active: called for every operation; False uses the backbone's parameters.

    Raises:
        KeyError: the backbone has no parameter of a name.
        ValueError: a replacement has another shape.
    """

    def __init__(self, backbone: nn.Module, tensors: Mapping[str, Tensor], active: Callable[[], bool]) -> None:
        super().__init__()
        self._active = active
        parameters = dict(backbone.named_parameters())
        for name, tensor in tensors.items():
            if tensor.shape != parameters[name].shape:
                raise ValueError(f"{name} is {tuple(parameters[name].shape)}, its stand-in {tuple(tensor.shape)}")
        self._by_id = {id(parameters[name]): tensor for name, tensor in tensors.items()}

    def __torch_function__(  # PyTorch defines the signature
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if not self._active():
            return func(*args, **(kwargs or {}))
        return func(*(self._by_id.get(id(arg), arg) for arg in args), **(kwargs or {}))
