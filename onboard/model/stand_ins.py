"""Other matrices in the place of a backbone's own, for one computation and its thread alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class StandIns(TorchFunctionMode):
    """Within the block, and in its thread alone, every operation on one of these parameters takes its stand-in.

    The backbone itself is not touched, so that other threads go on computing with it as it is. Gradients reach the
    stand-ins and what they were made of.

    Args:
        backbone: whose parameters are stood in for; one that is tied in several places is met in all of them.
        tensors: stand-ins by the parameter's name, of its shape.
        active: asked at every operation; False leaves the backbone's own in place.

    Raises:
        KeyError: the backbone has no parameter of a name.
        ValueError: a stand-in is of another shape.
    """

    def __init__(self, backbone: nn.Module, tensors: Mapping[str, Tensor], active: Callable[[], bool]) -> None:
        super().__init__()
        self._active = active
        parameters = dict(backbone.named_parameters())
        for name, tensor in tensors.items():
            if tensor.shape != parameters[name].shape:
                raise ValueError(f"{name} is {tuple(parameters[name].shape)}, its stand-in {tuple(tensor.shape)}")
        self._by_id = {id(parameters[name]): tensor for name, tensor in tensors.items()}

    def __torch_function__(  # the signature is PyTorch's
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if not self._active():
            return func(*args, **(kwargs or {}))
        return func(*(self._by_id.get(id(arg), arg) for arg in args), **(kwargs or {}))
