"""Use case: the files of a version, verified, written to a folder."""

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
    """Write every part of a version: `embedding.safetensors`, `card.md`, and what answers beside the embedding.

    These are its readout, where it has one, as `readout.safetensors`, and a later hypernetwork than the base's as
    `hypernetwork.safetensors`. With the base itself they answer texts: see `onboard.serving.Predictor`. A version
    without an embedding is written as `weights.safetensors` instead.

    Args:
        services: where the version is.
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, made when missing.
        bundle: add the base's folder as `base/`, for machines that do not have it.

    Raises:
        NotFoundError: no such version.
        InputError: it is of a method that this release does not know.
        DamagedError: stored bytes do not match their digest, or are gone.
        PinMismatchError: the base at hand is not the one that the version is pinned to.
        ConflictError: the folder holds another base.
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
        InputError: the version is of a method that this release does not know.
    """
    if version.content == "embedding":
        verified_embedding(content, version)
    else:
        verified_weights(content, version)
