"""The weights of T tasks with any methods: adapters, and additional parts of tasks."""

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
    """The parts of one task in addition to its adapters' weights.

    Args:
        normed: whether its adapters have a layer norm (HyperFormer's repository) or not (Compacter's).
        prompt: (P, h), placed before the encoder's embedded input.
        norms: (5L + 2, h), replace the T5's norms, in the order of `norms_of`.
        biases: (sum,), added to the outputs of linear layers and norms, concatenated in the order of `biased_of`.
        matrices: replacements for parameters of the backbone, by name.
    """

    normed: bool = True
    prompt: Tensor | None = None
    norms: Tensor | None = None
    biases: Tensor | None = None
    matrices: Mapping[str, Tensor] = field(default_factory=dict)


GENERATED = OwnParts()  # a task with generated adapters has no additional parts


@dataclass(frozen=True, slots=True, eq=False)
class TaskWeights:
    """The weights of T tasks, accepted by `Attachment.using` and `Engine.score` like `GeneratedAdapters`.

    Args:
        adapters: of all tasks, (T, L, 2, ...); None if no task has any. Tasks or places without an adapter have zeros
            with `normed` False, which change nothing.
        own: one per task (T).
    """

    adapters: GeneratedAdapters | None
    own: tuple[OwnParts, ...]

    @property
    def tasks(self) -> int:
        """T, the number of tasks."""
        return len(self.own)

    @property
    def mixes(self) -> bool:
        """Whether its rows can share a batch with other tasks; false if they change the backbone's matrices."""
        return not any(parts.matrices for parts in self.own)

    def of(self, tasks: Sequence[int]) -> TaskWeights:
        """Return the weights of these tasks in this order; tasks may be repeated or left out."""
        adapters = None if self.adapters is None else self.adapters.of(tasks)
        return TaskWeights(adapters, tuple(self.own[task] for task in tasks))

    @staticmethod
    def joined(parts: Sequence[Weights], order: Sequence[int] | None = None) -> TaskWeights:
        """Join tasks with any methods into one batch.

        Args:
            parts: at least one, for one backbone, device and dtype. Bottlenecks may differ: narrow ones are padded with
                zeros.
            order: for each task of the result, its index among all tasks of `parts`, concatenated; None keeps them all.

        Raises:
            ValueError: there are no parts, or one of several tasks changes the backbone's matrices.
        """
        if not parts:
            raise ValueError("there are no tasks to join")
        whole = [part if isinstance(part, TaskWeights) else generated_weights(part) for part in parts]
        parts_of_tasks = tuple(parts_of_task for part in whole for parts_of_task in part.own)
        if len(parts_of_tasks) > 1 and not all(part.mixes for part in whole):
            raise ValueError("a task that changes the backbone's own matrices goes through the model alone")
        joined = TaskWeights(_side_by_side(whole), parts_of_tasks)
        return joined if order is None else joined.of(order)


Weights = GeneratedAdapters | TaskWeights
Answering = np.ndarray | TaskWeights | None  # of one task: an embedding (t,), its weights, or None for a readout only


def generated_weights(generated: GeneratedAdapters) -> TaskWeights:
    """Return generated adapters as the weights of T tasks."""
    return TaskWeights(generated, (GENERATED,) * generated.tasks)


def _side_by_side(parts: Sequence[TaskWeights]) -> GeneratedAdapters | None:
    """Return the adapters of all tasks with the same bottleneck; identities for tasks without any."""
    adapted = [part.adapters for part in parts if part.adapters is not None]
    if not adapted:
        return None
    bottleneck = max(adapters.encoder.down.shape[-2] for adapters in adapted)
    return GeneratedAdapters.joined(
        [
            GeneratedAdapters(*(stack.widened(bottleneck) for stack in part.adapters))
            if part.adapters is not None
            else GeneratedAdapters(*(_identity(stack, part.tasks).widened(bottleneck) for stack in adapted[0]))
            for part in parts
        ]
    )


def _identity(like: AdapterWeights, tasks: int) -> AdapterWeights:
    """Return T zero adapters for the same places as `like`; without a layer norm they change nothing."""
    return AdapterWeights(*(torch.zeros(tasks, *w.shape[1:], device=w.device, dtype=w.dtype) for w in like))
