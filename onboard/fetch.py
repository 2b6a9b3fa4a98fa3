"""Use case: the files of a version, verified, written to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from onboard.bases import Base
from onboard.bases.placing import place_base
from onboard.bundle import require_base
from onboard.card import render_card
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import verified_embedding
from onboard.errors import NotAllowedError, StorageError
from onboard.registry.versions import VersionRepository
from onboard.services import Services


@dataclass(frozen=True)
class Fetched:
    """A version and the files that were written."""

    version: EmbeddingVersion
    files: tuple[Path, ...]


def fetch(services: Services, reference: str, output: Path, bundle: bool = False) -> Fetched:
    """Write `embedding.safetensors` and `card.md`; with `bundle` also the base, all that predictions elsewhere need.

    Args:
        services: where the version is.
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, made when missing.
        bundle: add the base's folder as `base/`.

    Raises:
        NotFoundError: no such version.
        DamagedError: the stored bytes do not match their digest.
        PinMismatchError: the base at hand is not the one that the version is pinned to.
        ConflictError: the folder holds another base.
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    content = services.read(version.artifact)
    verified_embedding(content, version)
    if not bundle:
        return Fetched(version, write_files(version, content, output))
    base = require_base(services, version)
    return Fetched(version, write_files(version, content, output, lambda target: _copied(base, target)))


def _copied(base: Base, target: Path) -> Path:
    return place_base(target, base.digest, lambda folder: shutil.copytree(base.folder, folder))


def write_files(
    version: EmbeddingVersion, content: bytes, output: Path, add_base: Callable[[Path], Path] | None = None
) -> tuple[Path, ...]:
    """Write what was fetched, wherever it came from: `content` as `embedding.safetensors`, the card, the base.

    Args:
        add_base: puts the base into a folder, and returns that.

    Raises:
        NotAllowedError, StorageError: the folder cannot be written.
    """
    files = [output / "embedding.safetensors", output / "card.md"]
    try:
        output.mkdir(parents=True, exist_ok=True)
        _write(files[0], content)
        _write(files[1], render_card(version).encode())
        if add_base is not None:
            files.append(add_base(output / "base"))
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise NotAllowedError(
            f"{output} cannot be written: {error.strerror}.", "--output a folder that you can write to"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{output} cannot be written: {error.strerror or error}.", "free some space, or --output elsewhere"
        ) from error
    return tuple(files)


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
