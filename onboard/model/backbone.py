"""Load a stock T5, frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from onboard.errors import InputError, NotFoundError, OnboardError, UnavailableError
from onboard.model.quantised_backbone import QUANTISED_FILE, read_quantised_backbone
from onboard.model.t5_parts import norms_of

SUPPORTED = {"t5": "T5ForConditionalGeneration", "mt5": "MT5ForConditionalGeneration"}


def load_backbone(source: str | Path, revision: str | None = None, dtype: torch.dtype = torch.float32) -> Any:
    """Return a stock `T5ForConditionalGeneration` or `MT5ForConditionalGeneration`, frozen and in eval mode.

    Args:
        source: a folder with model.int8.safetensors (preferred) or model.safetensors, or the id of a model on the
            Hugging Face hub.
        revision: commit, tag or branch on the hub.
        dtype: float32 or bfloat16 (T5 overflows in float16, transformers issue 5651).

    Raises:
        InputError: not a T5 (t5, v1.1, flan, mt5, byt5), no safetensors, or float16.
        NotFoundError: the folder contains no model.
        DamagedError: the folder's int8 weights are damaged or do not match its config.json.
        UnavailableError: the hub cannot be reached or does not have the model.
    """
    if dtype not in (torch.float32, torch.bfloat16):
        raise InputError("unknown-dtype", dtype=dtype)
    local = Path(source).is_dir()
    if local and not (Path(source) / "config.json").is_file():
        raise NotFoundError("backbone-config-missing", source=source)
    try:
        return freeze(_read(source, revision, dtype))
    except Exception as error:  # transformers raises various errors for damaged files
        if isinstance(error, OnboardError) or not (local or isinstance(error, OSError)):
            raise
        if local:
            raise InputError("backbone-unreadable", source=source, reason=error) from error
        raise UnavailableError("hub-model-unavailable", source=source, reason=error) from error


def backbone_shape(folder: Path) -> Any:
    """Return the T5 of a folder's config.json without weights (on the meta device), for sizes and names.

    Raises:
        InputError: not a T5.
        OSError: config.json cannot be read.
    """
    kind, config = _kind_of(folder, None)
    with torch.device("meta"):
        return kind(config)


def _kind_of(source: str | Path, revision: str | None) -> tuple[Any, Any]:
    """Return the class of a model, and its configuration."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(source, revision=revision)
    if config.model_type not in SUPPORTED:
        raise InputError("not-a-t5", source=source, model_type=config.model_type)
    return getattr(transformers, SUPPORTED[config.model_type]), config


def _read(source: str | Path, revision: str | None, dtype: torch.dtype) -> Any:
    kind, config = _kind_of(source, revision)
    if (Path(source) / QUANTISED_FILE).is_file():
        return read_quantised_backbone(source, kind, config, dtype)
    return kind.from_pretrained(source, revision=revision, config=config, dtype=dtype, use_safetensors=True)


def freeze(backbone: Any) -> Any:
    """Set a backbone to eval mode, disable all gradients, and return it."""
    return backbone.requires_grad_(False).eval()


def norm_parameters(backbone: nn.Module) -> list[nn.Parameter]:
    """Return the weights of every T5 RMSNorm, including cross-attention and final ones: (5L + 2)h for L + L layers."""
    return [norm.get_parameter("weight") for norm in norms_of(backbone).values()]


def output_scale(backbone: Any) -> float:
    """Return the factor that the stock model applies to the decoder's output before the head: d_model^-0.5 or 1."""
    config = backbone.config
    return float(config.d_model**-0.5) if getattr(config, "scale_decoder_outputs", False) else 1.0
