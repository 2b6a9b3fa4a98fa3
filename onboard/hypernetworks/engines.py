"""The hypernetworks of a base, one per version, loaded once and cached.

Version 1 is in the base's folder and belongs to the base's engine. Later ones are artifacts, found by digest. All share
the base's backbone.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from onboard.bases import Base
from onboard.bases.load import load_engine, resolve_device
from onboard.domain.task import FIRST_HYPERNETWORK, HypernetworkVersion
from onboard.domain.temporary import temporary_folder
from onboard.hypernetworks.files import hypernetwork_bytes, hypernetwork_record
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.memory import memory_trouble_told
from onboard.model.weights import load_hypernetwork, save_hypernetwork
from onboard.registry.services import Services
from onboard.storage.cache import Cache

KEPT_HYPERNETWORKS: Final = 8  # later versions kept in memory; 20 MB each for T5-base

# by the digest of their file, so that all homes share them
loaded_hypernetworks: Final = Cache[tuple[str, torch.device], Hypernetwork](KEPT_HYPERNETWORKS)


def engine_at(services: Services, base: Base, version: int) -> Engine:
    """Return the base's engine with a version of its hypernetwork, frozen, on the device of `services`; cached.

    Raises:
        PinMismatchError: the base has no such version.
        DamagedError: its bytes are missing or changed.
        OutOfMemoryError: it does not fit into the GPU's memory.
    """
    engine = load_engine(base, services.device)
    if version == FIRST_HYPERNETWORK:
        return engine
    return engine.under(hypernetwork_at(services, base, version, engine.device))


def hypernetwork_at(services: Services, base: Base, version: int, device: torch.device | str) -> Hypernetwork:
    """Return a version of the base's hypernetwork, frozen; the same object while it is cached.

    Raises:
        as `engine_at`.
    """
    place = resolve_device(str(device))
    if version == FIRST_HYPERNETWORK:
        return load_engine(base, str(place)).hypernetwork
    record = hypernetwork_record(services, base, version)
    return loaded_hypernetworks.get_alone(
        (record.digest, place), lambda: frozen_hypernetwork(hypernetwork_bytes(services, record), place)
    )


@torch.inference_mode(False)  # tensors loaded for a prediction are later tuned from
def frozen_hypernetwork(content: bytes, device: torch.device) -> Hypernetwork:
    """Return the hypernetwork in the bytes of its file. Raises DamagedError, InputError, OutOfMemoryError."""
    with temporary_folder("onboard-hypernetwork-") as folder:
        path = folder / "hypernetwork.safetensors"
        path.write_bytes(content)
        hypernetwork = load_hypernetwork(path)
    with memory_trouble_told("a hypernetwork"):
        return hypernetwork.requires_grad_(False).to(device)


def store_hypernetwork(
    services: Services, base: Base, hypernetwork: Hypernetwork, job: str | None = None, **metrics: Any
) -> HypernetworkVersion:
    """Store a tuned hypernetwork exactly (float32), and draft its version for `BaseRepository.advance`.

    Args:
        base: its base.
        job: the job that tuned it.
        metrics: facts about it: guard={...}.

    Raises:
        StorageError, NotAllowedError: it cannot be stored.
    """
    with temporary_folder("onboard-hypernetwork-") as folder:
        path = folder / "hypernetwork.safetensors"
        save_hypernetwork(hypernetwork, path)
        artifact = services.store(path.read_bytes(), "hypernetwork")
    return HypernetworkVersion(base.digest, 0, artifact, artifact, job=job, metrics=metrics)
