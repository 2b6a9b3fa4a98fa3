"""Use case: the files of a version, verified, written to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onboard.bases.placing import place_base
from onboard.domain.private import open_new, part_beside
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
from onboard.hypernetworks.files import hypernetwork_bytes, hypernetwork_record, require_base
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import verified_embedding
from onboard.storage.files import output_in_our_words
from onboard.storage.readout import READOUT
from onboard.storage.weights import WEIGHTS, verified_weights
from onboard.versions.card import render_card

EMBEDDING: Final = "embedding.safetensors"
BASE: Final = "base"  # what a bundle calls the folder of the base
HYPERNETWORK: Final = "hypernetwork.safetensors"  # and a hypernetwork that the base does not bring


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
    parts: dict[str, Callable[[Path], object]] = {}
    if bundle and base is not None:
        whole = base
        parts[BASE] = lambda target: place_base(
            target, whole.digest, lambda folder: shutil.copytree(whole.folder, folder)
        )
    if base is not None and later:
        weights = hypernetwork_bytes(services, hypernetwork_record(services, base, version.hypernetwork_version))
        parts[HYPERNETWORK] = lambda target: write_whole(target, weights)
    if version.readout is not None:
        readout = services.read(version.readout)
        parts[READOUT] = lambda target: write_whole(target, readout)
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


def file_name(version: EmbeddingVersion) -> str:
    """What fetching calls the version's file. Raises InputError: of a method that this release does not know."""
    return EMBEDDING if version.content == "embedding" else WEIGHTS


def write_files(
    version: EmbeddingVersion, content: bytes, output: Path, parts: Mapping[str, Callable[[Path], object]] | None = None
) -> tuple[Path, ...]:
    """Write what was fetched, wherever it came from: `content` as the version's file, the card, parts of a bundle.

    Args:
        parts: by the name of a further file or folder, what writes it to a path, whole or not at all.

    Raises:
        NotAllowedError, StorageError: the folder cannot be written.
    """
    own: dict[str, Callable[[Path], object]] = {
        file_name(version): lambda path: write_whole(path, content),
        "card.md": lambda path: write_whole(path, render_card(version).encode()),
    }
    # further parts first, which may refuse or fail: what was there before stays whole
    written = write_parts(output, {**(parts or {}), **own})
    return *written[-len(own) :], *written[: -len(own)]


def write_parts(output: Path, parts: Mapping[str, Callable[[Path], object]]) -> tuple[Path, ...]:
    """Write files into a folder, made when missing, one after the other.

    Args:
        parts: by the name of a file or folder, what writes it to a path, whole or not at all.

    Returns:
        Their paths, in the same order.

    Raises:
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with output_in_our_words(output, "free some space, or --output elsewhere"):
        output.mkdir(parents=True, exist_ok=True)
        for name, write in parts.items():
            write(output / name)
    return tuple(output / name for name in parts)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises OSError."""
    part = part_beside(path)
    try:
        with open_new(part) as stream:
            stream.write(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
