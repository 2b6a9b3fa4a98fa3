"""What the model computes with for T tasks of any methods: adapters, and what a task has beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from onboard.model.adapter import AdapterWeights
from onboard.model.hypernetwork import GeneratedAdapters


@dataclass(frozen=True, slots=True, eq=False)
class OwnParts:
    """What one task has beside its adapters' weights.

    Args:
        normed: its adapters have a layer norm inside (HyperFormer's repository) or not (Compacter's).
        prompt: (P, h) in front of the encoder's embedded input.
        norms: (5L + 2, h) in place of the T5's norms, in the order of `norms_of`.
        biases: (sum,) added to the outputs of linears and norms, one after the other in the order of `biased_of`.
        matrices: what stands in for the backbone's own parameters, by their name.
    """

    normed: bool = True
    prompt: Tensor | None = None
    norms: Tensor | None = None
    biases: Tensor | None = None
    matrices: Mapping[str, Tensor] = field(default_factory=dict)


GENERATED = OwnParts()  # a task whose hypernetwork makes its adapters has nothing beside them


@dataclass(frozen=True, slots=True, eq=False)
class TaskWeights:
    """The weights of T tasks, for `Attachment.using` and `Engine.score` in the place of `GeneratedAdapters`.

    Args:
        adapters: of all tasks, (T, L, 2) in front; None where no task has any. Those of a task or place without an
            adapter are zero, and `normed` is False: they leave what they get as it is.
        own: one a task (T).
    """

    adapters: GeneratedAdapters | None
    own: tuple[OwnParts, ...]

    @property
    def tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.own)

    @property
    def mixes(self) -> bool:
        """Whether its rows may share a batch with other tasks'; not where they change the backbone's matrices."""
        return not any(own.matrices for own in self.own)

    def of(self, tasks: Sequence[int]) -> TaskWeights:
        """Those of these tasks, in this order; a task may be named again or left out."""
        adapters = None if self.adapters is None else self.adapters.of(tasks)
        return TaskWeights(adapters, tuple(self.own[task] for task in tasks))

    @staticmethod
    def joined(parts: Sequence[Weights], order: Sequence[int] | None = None) -> TaskWeights:
        """The tasks of several of them as one batch, whatever their methods.

        Args:
            parts: at least one, made for one backbone, on one device and of one type. Bottlenecks may differ: the
                narrow ones are widened by zeros.
            order: for each place of the result, the place among all tasks of `parts`, one after the other; None keeps
                them as they come.

        Raises:
            ValueError: there are no parts, or one of several tasks changes the backbone's own matrices.
        """
        if not parts:
            raise ValueError("there are no tasks to join")
        whole = [part if isinstance(part, TaskWeights) else generated_weights(part) for part in parts]
        own = tuple(one for part in whole for one in part.own)
        if len(own) > 1 and not all(part.mixes for part in whole):
            raise ValueError("a task that changes the backbone's own matrices goes through the model alone")
        joined = TaskWeights(_side_by_side(whole), own)
        return joined if order is None else joined.of(order)


Weights = GeneratedAdapters | TaskWeights
Answering = np.ndarray | TaskWeights | None  # of one task: an embedding (t,), its weights, or nothing but a readout


def generated_weights(generated: GeneratedAdapters) -> TaskWeights:
    """What a hypernetwork made, as the weights of T tasks."""
    return TaskWeights(generated, (GENERATED,) * generated.tasks)


def _side_by_side(parts: Sequence[TaskWeights]) -> GeneratedAdapters | None:
    """The adapters of all tasks, equally wide; identities where a task has none."""
    present = [part.adapters for part in parts if part.adapters is not None]
    if not present:
        return None
    bottleneck = max(adapters.encoder.down.shape[-2] for adapters in present)
    return GeneratedAdapters.joined(
        [
            GeneratedAdapters(*(stack.widened(bottleneck) for stack in part.adapters))
            if part.adapters is not None
            else GeneratedAdapters(*(_identity(stack, part.tasks).widened(bottleneck) for stack in present[0]))
            for part in parts
        ]
    )


def _identity(like: AdapterWeights, tasks: int) -> AdapterWeights:
    """T adapters of zeros for the same places as `like`; without a layer norm they change nothing."""
    return AdapterWeights(*(torch.zeros(tasks, *w.shape[1:], device=w.device, dtype=w.dtype) for w in like))
