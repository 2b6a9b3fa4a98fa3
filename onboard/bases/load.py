"""A base as a model: loaded once a process, shared by all jobs and predictions on it."""

from __future__ import annotations

import re
from functools import lru_cache

import torch

from onboard.bases import Base, find_base
from onboard.errors import InputError, UnavailableError
from onboard.model.backbone import load_backbone
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.weights import load_hypernetwork

_DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,2})?")
_KEPT = 2  # bases that stay in memory


def resolve_device(device: str) -> torch.device:
    """`auto` is CUDA when there is one, else the CPU.

    Raises:
        InputError: not the name of a device.
        UnavailableError: the device is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not _DEVICE.fullmatch(device):
        raise InputError(f"{device!r} is not a device.", "ONBOARD_DEVICE (or --device): auto, cpu, cuda or cuda:N")
    chosen = torch.device(device)
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise UnavailableError(f"There is no device {device}.", "ONBOARD_DEVICE=cpu, or see: onboard doctor")
    return chosen


def load_engine(base: Base, device: str = "auto") -> Engine:
    """Backbone and first hypernetwork of a base, frozen, on a device; the same object when asked for again."""
    return _shared(base.digest, str(base.folder), str(resolve_device(device)))


@lru_cache(_KEPT)
def _shared(digest: str, folder: str, device: str) -> Engine:
    del digest  # part of the key: a base that was made anew is loaded anew
    engine = fresh_engine(find_base(folder))
    engine.hypernetwork.requires_grad_(False)
    return engine.to(device)


def fresh_engine(base: Base) -> Engine:
    """The same on the CPU, of the caller's own, who may train it: the hypernetwork is not frozen."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # a bar per load says nothing to whoever waits for a prediction
    backbone = base.folder / "backbone"
    encoder = TextEncoder(
        AutoTokenizer.from_pretrained(backbone), base.document["pair_separator"], base.document["max_tokens"]
    )
    return Engine(load_backbone(backbone), load_hypernetwork(base.folder / "hypernetwork.safetensors"), encoder)
