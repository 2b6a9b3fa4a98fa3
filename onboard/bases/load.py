"""A base as a model: loaded once a process, shared by all jobs and predictions on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from onboard.bases import RESTORE, Base
from onboard.domain.names import require_device_name
from onboard.errors import (
    BaseDamagedError,
    DamagedError,
    InputError,
    NotFoundError,
    UnavailableError,
)
from onboard.model.backbone import backbone_shape, load_backbone
from onboard.model.encoding import TextEncoder
from onboard.model.engine import Engine
from onboard.model.memory import give_memory_back, memory_trouble_told
from onboard.model.methods import new_task
from onboard.model.tokenizer import load_tokenizer
from onboard.model.weights import load_hypernetwork
from onboard.storage.cache import Cache

KEPT_BASES: Final = 2  # stay in memory; the one that was not used for longest goes first

# an engine and the hooks on its backbone hold one another: only the collector frees them
loaded_engines: Final = Cache[tuple[str, torch.device], Engine](KEPT_BASES, give_memory_back)


def resolve_device(device: str) -> torch.device:
    """`auto` is CUDA when there is one, else the CPU.

    Raises:
        InputError: not the name of a device.
        UnavailableError: the device is not there.
    """
    require_device_name(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = torch.device(device)
    if chosen.type == "cuda":
        _require_gpu(chosen.index or 0)
    return chosen


def _require_gpu(index: int) -> None:
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]  # torch leaves it untyped
        raise UnavailableError("torch-without-cuda", index=index, version=torch.__version__)
    count = torch.cuda.device_count()
    if index >= count:
        seen = {0: "no GPU", 1: "one GPU, cuda:0"}.get(count, f"{count} GPUs, cuda:0 to cuda:{count - 1}")
        raise UnavailableError("unknown-cuda-device", devices=count, index=index, seen=seen)


def load_engine(base: Base, device: str = "auto") -> Engine:
    """Backbone and first hypernetwork of a base, frozen, on a device; the same object when asked for again.

    Raises:
        BaseDamagedError: its files cannot be loaded.
        OutOfMemoryError: the GPU has no room for it.
    """
    place = resolve_device(device)
    return loaded_engines.get_alone((base.digest, place), lambda: frozen_engine(base, place))


@torch.inference_mode(False)  # what is loaded for a prediction is later used in training
def frozen_engine(base: Base, device: torch.device) -> Engine:
    """Both read from the base's files, for nobody to train. Raises as `load_engine`."""
    engine = fresh_engine(base)
    engine.hypernetwork.requires_grad_(False)
    with memory_trouble_told(f"base {base.name}"):
        return engine.to(device)


def fresh_engine(base: Base) -> Engine:
    """The same on the CPU, of the caller's own, who may train it: the hypernetwork is not frozen."""
    backbone, encoder = fresh_backbone(base)
    with _whole(base):
        return Engine(backbone, load_hypernetwork(base.folder / "hypernetwork.safetensors"), encoder)


def fresh_backbone(base: Base) -> tuple[Any, TextEncoder]:
    """The bare T5 of a base on the CPU, of the caller's own, and what makes token ids for it.

    Raises:
        BaseDamagedError: its files are not those of a T5 and its tokenizer.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # a bar per load says nothing to whoever waits for a prediction
    folder = base.folder / "backbone"
    with _whole(base):
        backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
        return backbone, TextEncoder(tokenizer, base.document["pair_separator"], base.document["max_tokens"])


@contextmanager
def _whole(base: Base) -> Iterator[None]:
    """Nobody who asks for a task gave these files: whatever is wrong with them is wrong with this machine."""
    try:
        yield
    except (DamagedError, InputError, NotFoundError) as error:
        raise BaseDamagedError.like(error, RESTORE) from error
    except (KeyError, TypeError, ValueError, OSError, RuntimeError) as error:  # hypernetwork and backbone do not fit
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise BaseDamagedError("base-not-loadable", base=base.name, folder=base.folder, reason=error) from error


def require_fitting(base: Base, method: str, settings: Mapping[str, Any]) -> None:
    """Whether a task can be learned on a base with weights of its own; no weights of the base are read.

    Args:
        base: that it would be learned on.
        method: one of `onboard.domain.methods.OWN_WEIGHTS`.
        settings: of the method.

    Raises:
        InputError: a setting that the method has not, a size that does not fit, or a base that it does not support.
        BaseDamagedError: the base's config.json cannot be read.
    """
    try:
        backbone = backbone_shape(base.folder / "backbone")
    except (OSError, ValueError) as error:
        raise BaseDamagedError("base-backbone-unreadable", base=base.name, reason=error) from error
    new_task(method, backbone, settings)
