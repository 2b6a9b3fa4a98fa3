"""The base class of methods that generate adapters from a task embedding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from onboard.model.adapter import AdapterWeights

POSITIONS = 2  # 0 = feed-forward, 1 = self-attention


class GeneratedAdapters(NamedTuple):
    """The adapters of T tasks for both stacks; the fields' leading dimensions are (T, L, 2)."""

    encoder: AdapterWeights
    decoder: AdapterWeights

    @property
    def tasks(self) -> int:
        """T, the number of tasks."""
        return self.encoder.down.shape[0]

    def to(self, device: torch.device, dtype: torch.dtype) -> GeneratedAdapters:
        """Return the adapters on another device or with another dtype; differentiable."""
        return GeneratedAdapters(self.encoder.to(device, dtype), self.decoder.to(device, dtype))

    def of(self, tasks: Sequence[int]) -> GeneratedAdapters:
        """Return the adapters of these tasks in this order; tasks may be repeated or left out."""
        indices = torch.tensor(tasks, device=self.encoder.down.device)
        return GeneratedAdapters(self.encoder.select(indices), self.decoder.select(indices))

    @staticmethod
    def joined(parts: Sequence[GeneratedAdapters], order: Sequence[int] | None = None) -> GeneratedAdapters:
        """Join the tasks of several hypernetworks into one batch.

        Args:
            parts: at least one, of the same sizes, device and dtype.
            order: for each task of the result, its index among all tasks of `parts`, concatenated; tasks may be
                repeated or left out. None keeps them all.

        Raises:
            ValueError: there are no parts.
        """
        if not parts:
            raise ValueError("there are no adapters to join")
        if order is None and len(parts) == 1:
            return parts[0]
        encoder, decoder = (
            AdapterWeights(*map(torch.cat, zip(*stacks, strict=True))) for stacks in zip(*parts, strict=True)
        )
        joined = GeneratedAdapters(encoder, decoder)
        return joined if order is None else joined.of(order)


class Hypernetwork(nn.Module, ABC):
    """Generates the adapters of both stacks from a task embedding; the methods are in `onboard.model.methods`.

    Args:
        d_model: h of the backbone.
        encoder_layers: L of the encoder.
        decoder_layers: L of the decoder.
        bottleneck: b.
        task_embedding_size: t.
        projector_width: e.
        conditioning_size: c.

    Attributes:
        METHOD: the method's name in files, recipes and bases.
        TITLE: its name in sentences.
        EMBEDDING_SIZE: default of t.
        OFFICIAL_SWITCHES: settings that identify it in the authors' config.json.
        sizes: the arguments, from which the hypernetwork can be rebuilt.
        encoder, decoder: generate the adapters of each stack.
    """

    METHOD: ClassVar[str]
    TITLE: ClassVar[str]
    EMBEDDING_SIZE: ClassVar[int]
    OFFICIAL_SWITCHES: ClassVar[Mapping[str, bool]]

    def __init__(
        self,
        *,
        d_model: int,
        encoder_layers: int,
        decoder_layers: int,
        bottleneck: int,
        task_embedding_size: int,
        projector_width: int,
        conditioning_size: int,
    ) -> None:
        super().__init__()
        self.sizes: dict[str, int] = {
            "d_model": d_model,
            "encoder_layers": encoder_layers,
            "decoder_layers": decoder_layers,
            "bottleneck": bottleneck,
            "task_embedding_size": task_embedding_size,
            "projector_width": projector_width,
            "conditioning_size": conditioning_size,
        }
        self.encoder, self.decoder = self.stack(encoder_layers), self.stack(decoder_layers)

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Self:
        """Build one from sizes; some have defaults of the method. Raises TypeError as the constructor."""
        return cls(**sizes)

    @abstractmethod
    def stack(self, layers: int) -> nn.Module:
        """Return a module that generates the adapters of `layers` blocks: (T, …) from `shared` → AdapterWeights."""

    @abstractmethod
    def shared(self, z: Tensor) -> Tensor:
        """Compute the input of both stacks from the task embeddings: (T, t) → (T, …)."""

    @abstractmethod
    def official_views(self) -> dict[str, Tensor]:
        """Return a view into our tensor for each of the authors' names: read it to export, fill it to import.

        Together the views cover every parameter once.
        """

    def forward(self, z: Tensor) -> GeneratedAdapters:
        """Generate the adapters of T tasks for both stacks from (T, t).

        Raises:
            ValueError: z is not of shape (T, t).
        """
        size = self.sizes["task_embedding_size"]
        if z.dim() != 2 or z.shape[1] != size:
            raise ValueError(f"task embeddings must have shape (T, {size}), got {tuple(z.shape)}")
        shared = self.shared(z)
        return GeneratedAdapters(self.encoder(shared), self.decoder(shared))
