"""Use case: the files of a version, verified, written to a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from onboard.bases import Base, find_base, folder_digest
from onboard.card import render_card
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import embedding_digest, unpack_embedding
from onboard.errors import ConflictError, DamagedError, NotAllowedError, PinMismatchError, StorageError
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
    content = services.artifacts.get(version.artifact)
    if embedding_digest(unpack_embedding(content)) != version.embedding_digest:
        raise DamagedError(
            f"The embedding of {version.reference} does not match its digest.", "restore it from a backup"
        )
    base = _require_base(services, version) if bundle else None
    files = [output / "embedding.safetensors", output / "card.md"]
    try:
        output.mkdir(parents=True, exist_ok=True)
        _write(files[0], content)
        _write(files[1], render_card(version).encode())
        if base is not None:
            files.append(_copy(base, output / "base"))
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise NotAllowedError(
            f"{output} cannot be written: {error.strerror}.", "--output a folder that you can write to"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{output} cannot be written: {error.strerror or error}.", "free some space, or --output elsewhere"
        ) from error
    return Fetched(version, tuple(files))


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _copy(base: Base, target: Path) -> Path:
    """The base's files and no others; what lies there already stays, and has to be this base."""
    if target.exists():
        if folder_digest(target) != base.digest:
            raise ConflictError(f"{target} holds something else than base {base.name}.", "--output a new folder")
        return target
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(base.folder, part)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _require_base(services: Services, version: EmbeddingVersion) -> Base:
    base = find_base(services.settings.base)
    if base.digest != version.base_digest:
        raise PinMismatchError(
            f"{version.reference} belongs to base {version.base_digest[:19]}…, "
            f"ONBOARD_BASE is {base.name} ({base.digest[:19]}…).",
            "set ONBOARD_BASE to the base that it was trained on",
        )
    return base
