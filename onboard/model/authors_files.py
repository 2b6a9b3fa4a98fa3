"""Common parts of checkpoints from the authors' two repositories: their files and the T5 in them."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.model.backbone import SUPPORTED
from onboard.model.exporters import CROSS_BIAS, T5_FIELDS, TIED
from onboard.model.quantised_backbone import assign_weights

NAMED = 5  # maximum number of tensors in an error


@dataclass(frozen=True)
class CheckpointOrigin:
    """The origin of the checkpoints, for errors.

    Args:
        only: a sentence that says which checkpoints can be read.
    """

    repository: str
    only: str

    def unlike(self, what: str, tensors: list[str]) -> InputError:
        """Return the error for a checkpoint with unexpected tensors."""
        more = f" and {len(tensors) - NAMED} more" if len(tensors) > NAMED else ""
        return InputError(
            "checkpoint-tensors-differ",
            tensors=tensors,
            trouble=what,
            named=list(tensors[:NAMED]),
            more=more,
            repository=self.repository,
            only=self.only,
        )

    def shape(self, tensors: Mapping[str, Tensor], name: str, dimensions: int) -> tuple[int, ...]:
        """Return the shape of a tensor. Raises InputError if it is missing or has another number of dimensions."""
        if name not in tensors:
            raise self.unlike("lacks", [name])
        shape = tuple(tensors[name].shape)
        if len(shape) != dimensions:
            raise self.unlike("has tensors of another shape:", [f"{name} {shape}"])
        return shape

    def check(self, tensors: Mapping[str, Tensor], backbone: Any, more: Mapping[str, tuple[int, ...]]) -> None:
        """Raise InputError unless the tensors are exactly those of this T5 and `more`, by name and shape."""
        expected = {name: tuple(value.shape) for name, value in backbone.state_dict().items() if name not in TIED}
        expected |= more
        if missing := sorted(expected.keys() - tensors.keys()):
            raise self.unlike("lacks", missing)
        if unexpected := sorted(tensors.keys() - expected.keys() - {*TIED, CROSS_BIAS}):
            raise self.unlike("holds what this model has not:", unexpected)
        wrong = [
            f"{name} {tuple(tensors[name].shape)} instead of {shape}"
            for name, shape in sorted(expected.items())
            if tuple(tensors[name].shape) != shape
        ]
        if wrong:
            raise self.unlike("has tensors of another shape:", wrong)

    def t5(self, tensors: Mapping[str, Tensor], described: Mapping[str, Any]) -> Any:
        """Return a stock T5 of the tensors' sizes, without their values."""
        import transformers

        t5 = section(described, "t5") or described
        attention, feed_forward = "encoder.block.0.layer.0.SelfAttention", "encoder.block.0.layer.1.DenseReluDense"
        buckets, heads = self.shape(tensors, f"{attention}.relative_attention_bias.weight", 2)
        gated = f"{feed_forward}.wi_0.weight" in tensors
        default = "gated-gelu" if gated else "relu"
        settings = {
            "decoder_start_token_id": 0,
            "feed_forward_proj": default,
            **{key: t5[key] for key in T5_FIELDS if t5.get(key) is not None},
            # this setting determines whether transformers scales the decoder's output
            "tie_word_embeddings": t5.get("scale_decoder_outputs", t5.get("tie_word_embeddings", head_tied(tensors))),
            "d_model": self.shape(tensors, "shared.weight", 2)[1],
            "d_kv": self.shape(tensors, f"{attention}.q.weight", 2)[0] // heads,
            "d_ff": self.shape(tensors, f"{feed_forward}.wo.weight", 2)[1],
            "num_heads": heads,
            "num_layers": blocks(tensors, "encoder"),
            "num_decoder_layers": blocks(tensors, "decoder"),
            "vocab_size": self.shape(tensors, "shared.weight", 2)[0],
            "relative_attention_num_buckets": buckets,
        }
        kind = settings.pop("model_type", "t5")
        if kind not in SUPPORTED:
            raise InputError("checkpoint-not-a-t5", kind=kind, remedy=self.only)
        if str(settings["feed_forward_proj"]).startswith("gated") != gated:
            settings["feed_forward_proj"] = default
        try:
            config = transformers.AutoConfig.for_model(kind, **settings)
        except (StrictDataclassError, TypeError, ValueError) as error:
            raise InputError("checkpoint-config-wrong", reason=error) from error
        return getattr(transformers, SUPPORTED[kind])(config)


def described(folder: Path) -> dict[str, Any]:
    """Return config.json; empty if missing. Raises DamagedError if it is not a JSON object."""
    path = folder / "config.json"
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedError("checkpoint-json-unreadable", path=path, reason=error) from error
    if not isinstance(content, dict):
        raise DamagedError("checkpoint-json-not-object", path=path)
    return content


def tensors_of(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of `model.safetensors`, memory-mapped, or of `pytorch_model.bin`.

    Raises:
        NotFoundError: neither file exists.
        DamagedError: a file cannot be read.
        InputError: the .bin contains anything but tensors (no code is executed).
    """
    path, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    if path.is_file():
        try:
            return load_file(path)
        except SafetensorError as error:
            raise DamagedError("checkpoint-safetensors-unreadable", path=path, reason=error) from error
    if pickled.is_file():
        return _unpickled(pickled)
    raise NotFoundError("checkpoint-missing", folder=folder)


def _unpickled(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a .bin with PyTorch's restricted unpickler, which executes no code."""
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise InputError("not-a-pytorch-file", path=path) from error
    except (RuntimeError, EOFError, OSError) as error:
        raise DamagedError("pytorch-file-unreadable", path=path, reason=error) from error
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError("not-a-state-dict", path=path)
    return loaded


def section(described: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section of config.json; empty if missing."""
    part = described.get(name)
    return part if isinstance(part, dict) else {}


def blocks(tensors: Mapping[str, Tensor], stack: str) -> int:
    """Return L of a stack."""
    return len({match[1] for name in tensors if (match := re.match(rf"{stack}\.block\.(\d+)\.", name))})


def head_tied(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether the head is the token embedding."""
    return TIED[0] not in tensors or torch.equal(tensors[TIED[0]], tensors["shared.weight"])


def fill_t5(backbone: Any, tensors: Mapping[str, Tensor]) -> None:
    """Give a T5 on the meta device its weights from a checkpoint, in float32."""
    left_out = TIED if head_tied(tensors) else TIED[1:]
    assign_weights(
        backbone,
        {name: tensors[name].float() for name in backbone.state_dict() if name in tensors and name not in left_out},
    )


def cross_bias(tensors: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return a note if the checkpoint has a nonzero cross-attention bias, which only transformers 3 supports."""
    largest = float(tensors[CROSS_BIAS].abs().max()) if CROSS_BIAS in tensors else 0.0
    if not largest:
        return ()
    return (
        f"The checkpoint has a position bias in cross-attention (up to {largest:.2g}), which transformers dropped in "
        "its version 4; it was left out, so logits may differ a little from those of the authors' program.",
    )
