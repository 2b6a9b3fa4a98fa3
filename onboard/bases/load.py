"""Load a base as a model, once per process, shared by all jobs and predictions."""

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

KEPT_BASES: Final = 2  # kept in memory; the least recently used one is evicted first

# an engine and the hooks on its backbone form a cycle, so only the garbage collector frees them
loaded_engines: Final = Cache[tuple[str, torch.device], Engine](KEPT_BASES, give_memory_back)


def resolve_device(device: str) -> torch.device:
    """Resolve a device name; `auto` is CUDA if available, else the CPU.

    Raises:
        InputError: it is not the name of a device.
        UnavailableError: the device does not exist.
    """
    require_device_name(device)
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    resolved = torch.device(device)
    if resolved.type == "cuda":
        _require_gpu(resolved.index or 0)
    return resolved


def _require_gpu(index: int) -> None:
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]  # torch leaves it untyped
        raise UnavailableError("torch-without-cuda", index=index, version=torch.__version__)
    count = torch.cuda.device_count()
    if index >= count:
        available = {0: "no GPU", 1: "one GPU, cuda:0"}.get(count, f"{count} GPUs, cuda:0 to cuda:{count - 1}")
        raise UnavailableError("unknown-cuda-device", devices=count, index=index, seen=available)


def load_engine(base: Base, device: str = "auto") -> Engine:
    """Return backbone and first hypernetwork of a base, frozen, on a device. Repeated calls return the same object.

    Raises:
        BaseDamagedError: its files cannot be loaded.
        OutOfMemoryError: it does not fit into the GPU's memory.
    """
    place = resolve_device(device)
    return loaded_engines.get_alone((base.digest, place), lambda: frozen_engine(base, place))


@torch.inference_mode(False)  # tensors loaded for a prediction are later used in training
def frozen_engine(base: Base, device: torch.device) -> Engine:
    """Read backbone and hypernetwork from the base's files, frozen. Raises as `load_engine`."""
    engine = fresh_engine(base)
    engine.hypernetwork.requires_grad_(False)
    with memory_trouble_told(f"base {base.name}"):
        return engine.to(device)


def fresh_engine(base: Base) -> Engine:
    """Return a new engine on the CPU that the caller may train: the hypernetwork is not frozen."""
    backbone, encoder = fresh_backbone(base)
    with _whole(base):
        return Engine(backbone, load_hypernetwork(base.folder / "hypernetwork.safetensors"), encoder)


def fresh_backbone(base: Base) -> tuple[Any, TextEncoder]:
    """Return a new copy of a base's bare T5 on the CPU, and its text encoder.

    Raises:
        BaseDamagedError: its files are not those of a T5 and its tokenizer.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()  # progress bars are not useful during predictions
    folder = base.folder / "backbone"
    with _whole(base):
        backbone, tokenizer = load_backbone(folder), load_tokenizer(folder)
        return backbone, TextEncoder(tokenizer, base.document["pair_separator"], base.document["max_tokens"])


@contextmanager
def _whole(base: Base) -> Iterator[None]:
    """Convert errors about a base's files, which users did not submit, to a problem of this machine."""
    try:
        yield
    except (DamagedError, InputError, NotFoundError) as error:
        raise BaseDamagedError.like(error, RESTORE) from error
    except (KeyError, TypeError, ValueError, OSError, RuntimeError) as error:  # hypernetwork and backbone do not match
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise BaseDamagedError("base-not-loadable", base=base.name, folder=base.folder, reason=error) from error


def require_fitting(base: Base, method: str, settings: Mapping[str, Any]) -> None:
    """Check that a task can be learned on a base with task-specific weights, without reading the base's weights.

    Args:
        base: the base.
        method: one of `onboard.domain.methods.OWN_WEIGHTS`.
        settings: of the method.

    Raises:
        InputError: an unknown setting, an unsuitable size, or a base that the method does not support.
        BaseDamagedError: the base's config.json cannot be read.
    """
    try:
        backbone = backbone_shape(base.folder / "backbone")
    except (OSError, ValueError) as error:
        raise BaseDamagedError("base-backbone-unreadable", base=base.name, reason=error) from error
    new_task(method, backbone, settings)
