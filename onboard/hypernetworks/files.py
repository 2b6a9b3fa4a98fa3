"""Use case: the files of a version's base and hypernetwork, found by digest, listed and verified.

Together with `embedding.safetensors` they suffice for predictions elsewhere (`onboard fetch --bundle`). Files are found
by their names in a list that is made here. Callers never supply a path.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onboard.bases import LESSONS, Base, digest_of_files, file_digest, find_base, named_bases
from onboard.contract.versions import BaseDocument, BaseFileDocument
from onboard.domain.task import EmbeddingVersion, HypernetworkVersion
from onboard.errors import (
    BaseDamagedError,
    DamagedError,
    NotFoundError,
    OnboardError,
    OtherBaseError,
    PinMismatchError,
)
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services


@dataclass(frozen=True)
class BaseFile:
    """One file of a base.

    Args:
        name: relative to the base's folder, with forward slashes.
        digest: `sha256:…` of its bytes.
        path: its local path.
        stamp: size and time of the last change when it was read; if they differ, it is read again.
    """

    name: str
    digest: str
    size_bytes: int
    path: Path
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Manifest:
    """A base's files. Its digest follows from their names and digests, as in `folder_digest`."""

    base: Base
    files: dict[str, BaseFile]

    @property
    def digest(self) -> str:
        """`sha256:…`: the base's identity."""
        files = sorted(self.files.values(), key=lambda file: file.path)
        return digest_of_files((file.name, file.digest) for file in files)

    def file(self, name: str) -> BaseFile:
        """Return the file with this name. Raises NotFoundError. The name is never used as a path."""
        if name not in self.files:
            raise NotFoundError("unknown-base-file", base=self.base.name)
        return self.files[name]

    def unchanged(self) -> bool:
        """Return whether every file is unchanged since it was read."""
        try:
            return all(_stamp(file.path) == file.stamp for file in self.files.values())
        except OSError:
            return False

    def to_document(self) -> BaseDocument:
        """Return the list of files for clients."""
        files = tuple(BaseFileDocument.of(file) for file in self.files.values())
        return BaseDocument(
            digest=self.digest, name=self.base.name, backbone_digest=self.base.backbone_digest, files=files
        )


class Manifests:
    """The manifests of bases, cached until one of the files changes. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, Manifest] = {}
        self._lock = threading.Lock()

    def of(self, services: Services, digest: str) -> Manifest:
        """Return the manifest of the base with this digest.

        Raises:
            NotFoundError: the base is not registered, or its files are not on this machine.
            DamagedError: its files have changed.
        """
        with self._lock:
            manifest = self._known.get(digest)
            if manifest is None or not manifest.unchanged():
                self._known.pop(digest, None)
                manifest = read_manifest(base_at_hand(services, digest))
                if manifest.digest != digest:
                    raise BaseDamagedError("base-files-changed", base=manifest.base.name)
                self._known[digest] = manifest
            return manifest


def read_manifest(base: Base) -> Manifest:
    """Read and hash every file of a base except its lessons, which predictions do not need."""
    paths = [path for path in sorted(base.folder.rglob("*")) if path.is_file() and path != base.folder / LESSONS]
    files = [_read(base, path) for path in paths]
    return Manifest(base, {file.name: file for file in files})


def _read(base: Base, path: Path) -> BaseFile:
    stamp = _stamp(path)
    return BaseFile(path.relative_to(base.folder).as_posix(), file_digest(path), stamp[0], path, stamp)


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def base_at_hand(services: Services, digest: str) -> Base:
    """Return the registered base with this digest, if this machine has it.

    Raises:
        NotFoundError: it is not registered, or not on this machine.
    """
    with services.database.read() as session:
        record = BaseRepository(session).get(digest)
    for base in _on_this_machine(services, record.location):
        if base.digest == record.digest:
            return base
    raise NotFoundError("base-files-missing", base=record.digest, record=record.name)


def _on_this_machine(services: Services, location: str) -> Iterator[Base]:
    for name in (services.settings.base, location):
        try:
            yield find_base(name, services.settings.resolved_home)
        except OnboardError:  # it is on another machine or was deleted; try other places
            continue
    yield from named_bases(services.settings.resolved_home)


def require_base(services: Services, version: EmbeddingVersion, manifests: Manifests | None = None) -> Base:
    """Return the base of a version, using manifests that were already read, if given.

    Raises:
        PinMismatchError: this machine does not have it.
        DamagedError: its files have changed.
    """
    try:
        if manifests is not None:
            return manifests.of(services, version.base_digest).base
        return base_at_hand(services, version.base_digest)
    except NotFoundError as error:
        base = find_base(services.settings.base, services.settings.resolved_home)
        raise OtherBaseError(
            "version-of-other-base",
            version=version.reference,
            pinned=version.base_digest,
            base=base.name,
            base_digest=base.digest,
        ) from error


def hypernetwork_record(services: Services, base: Base, version: int) -> HypernetworkVersion:
    """Return the row of a hypernetwork version. Raises PinMismatchError if the base has no such version."""
    with services.database.read() as session:
        try:
            return BaseRepository(session).hypernetwork(base.digest, version)
        except NotFoundError as error:
            raise PinMismatchError(
                "hypernetwork-version-missing", base=base.digest, version=version, name=base.name
            ) from error


def hypernetwork_bytes(services: Services, record: HypernetworkVersion) -> bytes:
    """Return the verified file of a hypernetwork version.

    Raises DamagedError if it was collected, is missing or changed.
    """
    if record.artifact is None:
        raise DamagedError("hypernetwork-collected-needed", version=record.version)
    return services.read(record.artifact)
