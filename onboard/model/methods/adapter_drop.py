"""AdapterDrop (Rücklé et al., arXiv 2010.11918): no adapters in the lower blocks of both stacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from onboard.errors import InputError
from onboard.model.methods.adapters import Adapters


class AdapterDrop(Adapters):
    """Adapters in the upper blocks only: in blocks 5 to 11 of 12, otherwise in the same proportion.

    The settings `encoder_layers` and `decoder_layers` list the blocks with adapters, from 0; None means the upper
    blocks.
    """

    METHOD: ClassVar[str] = "adapter-drop"
    TITLE: ClassVar[str] = "AdapterDrop"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"reduction_factor": 32, "encoder_layers": None, "decoder_layers": None}

    def layers(self, stack: str, depth: int) -> tuple[int, ...]:
        """Return the listed blocks, or the upper seven twelfths; at least one block of several is dropped.

        Raises:
            InputError: a block does not exist or is listed twice.
        """
        named = self.settings[f"{stack}_layers"]
        if named is None:
            return tuple(range(max(5 * depth // 12, min(1, depth - 1)), depth))
        listed = isinstance(named, list | tuple)
        layers = tuple(named) if listed else ()
        whole = all(isinstance(layer, int) and not isinstance(layer, bool) for layer in layers)
        if not listed or not whole or len(set(layers)) < len(layers) or not set(layers) <= set(range(depth)):
            raise InputError("adapter-layers-wrong", stack=stack, method=self.TITLE, named=named, last_block=depth - 1)
        return layers
