"""Use case: the files of a version, verified, written to a folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from onboard.bases import find_base
from onboard.card import render_card
from onboard.domain.task import EmbeddingVersion
from onboard.embedding import embedding_digest, unpack_embedding
from onboard.errors import DamagedError, NotAllowedError, PinMismatchError, StorageError
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
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    content = services.artifacts.get(version.artifact)
    if embedding_digest(unpack_embedding(content)) != version.embedding_digest:
        raise DamagedError(
            f"The embedding of {version.reference} does not match its digest.", "restore it from a backup"
        )
    files = [output / "embedding.safetensors", output / "card.md"]
    try:
        output.mkdir(parents=True, exist_ok=True)
        files[0].write_bytes(content)
        files[1].write_text(render_card(version), encoding="utf-8")
        if bundle:
            files.append(_copy_base(services, version, output / "base"))
    except PermissionError as error:
        raise NotAllowedError(
            f"{output} cannot be written: {error.strerror}.", "--output a folder that you can write to"
        ) from error
    except OSError as error:
        raise StorageError(
            f"{output} cannot be written: {error.strerror}.", "free some space, or --output elsewhere"
        ) from error
    return Fetched(version, tuple(files))


def _copy_base(services: Services, version: EmbeddingVersion, folder: Path) -> Path:
    base = find_base(services.settings.base)
    if base.digest != version.base_digest:
        raise PinMismatchError(
            f"{version.reference} belongs to base {version.base_digest[:19]}…, "
            f"ONBOARD_BASE is {base.name} ({base.digest[:19]}…).",
            "set ONBOARD_BASE to the base that it was trained on",
        )
    shutil.copytree(base.folder, folder, dirs_exist_ok=True)
    return folder
