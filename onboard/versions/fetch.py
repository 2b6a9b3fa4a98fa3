"""Use case: write the verified files of a version to a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from onboard.bases.placing import place_base
from onboard.contract.version_files import BASE, HYPERNETWORK, READOUT, Part, write_files
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
from onboard.hypernetworks.files import hypernetwork_bytes, hypernetwork_record, require_base
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import verified_embedding
from onboard.storage.weights import verified_weights


@dataclass(frozen=True)
class Fetched:
    """A version and the files that were written."""

    version: EmbeddingVersion
    files: tuple[Path, ...]


def fetch(services: Services, reference: str, output: Path, bundle: bool = False) -> Fetched:
    """Write every part of a version: `embedding.safetensors`, `card.md`, and parts that it is used with.

    These are its readout, if it has one, as `readout.safetensors`, and a hypernetwork other than the base's first as
    `hypernetwork.safetensors`. Together with the base they can predict: see `onboard.serving.Predictor`. A version
    without an embedding is written as `weights.safetensors` instead.

    Args:
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, created if missing.
        bundle: add the base's folder as `base/`, for machines without it.

    Raises:
        NotFoundError: the version does not exist.
        InputError: this release does not support its method.
        DamagedError: stored bytes are missing or do not match their digest.
        PinMismatchError: the available base is not the one that the version is pinned to.
        ConflictError: the folder contains another base.
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    content = services.read(version.artifact)
    verify(content, version)
    later = version.hypernetwork_version != FIRST_HYPERNETWORK
    base = require_base(services, version) if bundle or later else None
    parts: dict[str, Part] = {}
    if bundle and base is not None:
        whole = base
        parts[BASE] = lambda target: place_base(
            target, whole.digest, lambda folder: shutil.copytree(whole.folder, folder)
        )
    if base is not None and later:
        record = hypernetwork_record(services, base, version.hypernetwork_version)
        parts[HYPERNETWORK] = hypernetwork_bytes(services, record)
    if version.readout is not None:
        parts[READOUT] = services.read(version.readout)
    return Fetched(version, write_files(version, content, output, parts))


def verify(content: bytes, version: EmbeddingVersion) -> None:
    """Raise DamagedError unless the bytes are the version's file.

    Raises:
        InputError: this release does not support the version's method.
    """
    if version.content == "embedding":
        verified_embedding(content, version)
    else:
        verified_weights(content, version)
