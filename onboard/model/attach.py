"""Attach adapters to a stock T5 with forward hooks. The backbone is not copied, subclassed or changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from onboard.errors import ConflictError
from onboard.model.adapter import AdapterWeights, adapt, adapt_rows
from onboard.model.hypernetwork import GeneratedAdapters
from onboard.model.own_parts import StackedParts, register
from onboard.model.stand_ins import StandIns
from onboard.model.t5_parts import no_t5
from onboard.model.task_weights import OwnParts, TaskWeights, Weights

FEED_FORWARD, SELF_ATTENTION = 0, 1


@dataclass(frozen=True, slots=True)
class _Active:
    """The state that the hooks apply: the weights of every place, and the task of each row (None: one task).

    Stacks without adapters are empty. `normed` is as in `adapt_rows`.
    """

    encoder: list[AdapterWeights]
    decoder: list[AdapterWeights]
    rows: Tensor | None
    normed: bool | Tensor = True
    beside: StackedParts | None = None


class _Current(threading.local):
    """The active adapters of the current thread. Two threads may use one backbone with different tasks."""

    active: _Active | None = None


class _AdapterHook:
    """Forward hook of one place. Self-attention returns a tuple with the output first, the feed-forward a tensor."""

    __slots__ = ("current", "place", "stack")

    def __init__(self, current: _Current, stack: str, place: int) -> None:
        self.current, self.stack, self.place = current, stack, place

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:  # noqa: ARG002 (the hook's signature is PyTorch's)
        active = self.current.active
        if active is None:
            return None
        places = active.encoder if self.stack == "encoder" else active.decoder
        if not places:
            return None
        y = output[0] if isinstance(output, tuple) else output
        if active.rows is None:
            adapted = adapt(y, places[self.place], active.normed is True)
        else:
            adapted = adapt_rows(y, places[self.place], active.rows, active.normed)
        return (adapted, *output[1:]) if isinstance(output, tuple) else adapted


class Attachment:
    """The hooks on one backbone, created by `attach`. They have no effect outside `using`; `detach` removes them."""

    def __init__(self, backbone: nn.Module) -> None:
        self._current = _Current()
        self._handles: list[Any] = []
        self._backbone = backbone
        self._reference: nn.Parameter = next(backbone.parameters())
        self._registering, self._has_own_hooks = threading.Lock(), False
        self.layers: dict[str, int] = {}
        for stack in ("encoder", "decoder"):
            places = _places(backbone, stack)
            self.layers[stack] = len(places) // 2
            for index, module in enumerate(places):
                self._handles.append(module.register_forward_hook(_AdapterHook(self._current, stack, index)))

    @contextmanager
    def using(self, weights: Weights, rows: Tensor | None = None) -> Iterator[None]:
        """Within the block, the backbone uses the weights of these tasks, in this thread.

        Args:
            weights: the adapters of T tasks, or `TaskWeights`; moved to the backbone's device and dtype.
            rows: (B,) LongTensor on any device, the task of each row; may be None if T is 1.

        Raises:
            ValueError: T > 1 without rows, or layers that do not fit the backbone.
            ConflictError: the attachment was detached.
        """
        if not self._handles:
            raise ConflictError("adapters-detached")
        if weights.tasks == 1:
            rows = None
        elif rows is None:
            raise ValueError(f"adapters of {weights.tasks} tasks need the task of each row")
        rows = None if rows is None else rows.to(self._reference.device)
        if isinstance(weights, GeneratedAdapters):
            active = self._prepare(weights, rows)
        else:
            active = self._with_own(weights, rows)
        with self._applying(active), self._standing_in(weights, active):
            yield

    def head_bias(self) -> Tensor | None:
        """Return the head bias (T, vocabulary) of the active tasks for computing logits without the head, or None."""
        beside = self._beside()
        return None if beside is None else beside.head_bias()

    def bare(self) -> AbstractContextManager[None]:
        """Within the block, the backbone computes without adapters, also inside `using`."""
        return self._applying(None)

    @contextmanager
    def _applying(self, active: _Active | None) -> Iterator[None]:
        before = self._current.active
        self._current.active = active
        try:
            yield
        finally:
            self._current.active = before

    def detach(self) -> None:
        """Remove every hook. Calling this twice is harmless."""
        while self._handles:
            self._handles.pop().remove()

    def _prepare(self, generated: GeneratedAdapters, rows: Tensor | None) -> _Active:
        for stack, weights in zip(("encoder", "decoder"), generated, strict=True):
            if weights.down.shape[1] != self.layers[stack]:
                raise ValueError(
                    f"adapters for {weights.down.shape[1]} {stack} layers, the backbone has {self.layers[stack]}"
                )
        generated = generated.to(self._reference.device, self._reference.dtype)
        return _Active(generated.encoder.places(), generated.decoder.places(), rows)

    def _with_own(self, weights: TaskWeights, rows: Tensor | None) -> _Active:
        active = _Active([], [], rows) if weights.adapters is None else self._prepare(weights.adapters, rows)
        beside = StackedParts.of(self._backbone, weights.own, rows)
        if beside is not None:
            self._hang_own_hooks()
        return replace(active, normed=self._normed(weights.own, rows), beside=beside)

    def _normed(self, own: Sequence[OwnParts], rows: Tensor | None) -> bool | Tensor:
        of_tasks = [part.normed for part in own]
        if rows is None or all(of_tasks) or not any(of_tasks):
            return of_tasks[0]
        return torch.tensor(of_tasks, device=rows.device).index_select(0, rows)[:, None, None]  # (B, 1, 1)

    def _hang_own_hooks(self) -> None:
        """Register these hooks only when tasks need them, so that generated adapters alone work without."""
        with self._registering:
            if not self._has_own_hooks:
                self._handles += register(self._backbone, self._beside)
                self._has_own_hooks = True

    def _beside(self) -> StackedParts | None:
        active = self._current.active
        return None if active is None else active.beside

    def _standing_in(self, weights: Weights, active: _Active) -> AbstractContextManager[Any]:
        if isinstance(weights, GeneratedAdapters) or weights.mixes:
            return nullcontext()
        matrices = {name: tensor.to(self._reference) for name, tensor in weights.own[0].matrices.items()}
        return StandIns(self._backbone, matrices, lambda: self._current.active is active)


def attach(backbone: nn.Module) -> Attachment:
    """Attach adapters to a stock T5 (t5, v1.1, flan, mt5, byt5), after self-attention and feed-forward of every block.

    Args:
        backbone: a T5 with `encoder` and `decoder` stacks as built by transformers.

    Raises:
        ConflictError: the backbone already has adapters.
        InputError: the module is not a T5.
    """
    if is_attached(backbone):
        raise ConflictError("adapters-attached")
    return Attachment(backbone)


def is_attached(backbone: nn.Module) -> bool:
    """Return whether the backbone has adapters attached."""
    hooks = (hook for module in backbone.modules() for hook in module._forward_hooks.values())
    return any(isinstance(hook, _AdapterHook) for hook in hooks)


def _places(backbone: nn.Module, stack: str) -> list[nn.Module]:
    """Return the modules of a stack that adapters follow, in the order [2 * layer + position]."""
    try:
        blocks: Any = backbone.get_submodule(f"{stack}.block")
        pairs = [(block.layer[-1].DenseReluDense, block.layer[0].SelfAttention) for block in blocks]
    except AttributeError as error:
        raise no_t5(backbone) from error
    ordered: list[nn.Module] = [torch.nn.Identity()] * (2 * len(pairs))
    ordered[FEED_FORWARD::2] = [feed_forward for feed_forward, _ in pairs]
    ordered[SELF_ATTENTION::2] = [attention for _, attention in pairs]
    return ordered
