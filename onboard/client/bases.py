"""Download bases and hypernetworks, which local predictions need, and verify them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from onboard.client.answers import Pins, digest_of_file
from onboard.client.asking import download, get
from onboard.client.steps import Request, Steps
from onboard.contract.base_folder import holds_base, new_base
from onboard.domain.names import Reference
from onboard.domain.private import open_new, part_beside
from onboard.errors import DamagedError, StorageError


def download_base(digest: str, target: Path, attempts: int) -> Steps[Path]:
    """Download a base to a folder atomically. A folder that already contains this base is kept.

    Raises:
        NotFoundError: the service does not know the base, or does not have its files.
        ConflictError: the folder contains other files.
        DamagedError: the downloaded files are not the base.
        StorageError: it cannot be written.
    """
    address = f"/v1/bases/{quote(digest, safe=':')}"
    try:
        if holds_base(target, digest):
            return target
        with new_base(target, digest) as folder:
            for name, promised in _listed((yield from get(address))):
                yield from _download(address, name, promised, folder, attempts)
    except OSError as error:
        raise StorageError("base-not-storable", reason=error.strerror or error) from error
    return target


def download_hypernetwork(pins: Pins, target: Path, attempts: int) -> Steps[Path]:
    """Download the hypernetwork that an embedding is pinned to, atomically.

    Raises:
        NotFoundError: the service does not have it.
        DamagedError: the downloaded file is different.
        StorageError: it cannot be written.
    """
    address = f"/v1/hypernetworks/{pins.hypernetwork_version}.safetensors?base={quote(pins.base_digest, safe=':')}"
    part = part_beside(target)
    try:
        with open_new(part) as written:
            digest = yield from download(address, written, attempts)
        if digest != pins.hypernetwork_digest:
            raise _damaged(f"Hypernetwork version {pins.hypernetwork_version}")
        return part.replace(target)
    except OSError as error:
        raise StorageError("hypernetwork-not-storable", reason=error.strerror or error) from error
    finally:
        part.unlink(missing_ok=True)


def download_readout(reference: Reference, promised: str) -> Steps[bytes]:
    """Return the file of a version's readout.

    Raises:
        NotFoundError: the service does not have it.
        DamagedError: the downloaded file is different.
    """
    address = f"/v1/tasks/{reference.task}/readouts/{reference.ref}.safetensors"
    return _verified(address, promised, f"The readout of {reference}")


def download_weights(reference: Reference, promised: str) -> Steps[bytes]:
    """Return the file of a version without an embedding. Raises as `download_readout`."""
    address = f"/v1/tasks/{reference.task}/embeddings/{reference.ref}.safetensors"
    return _verified(address, promised, f"The weights of {reference}")


def _verified(address: str, promised: str, what: str) -> Steps[bytes]:
    """Return the bytes of a URL if they match the promised digest. Raises DamagedError."""
    response = yield Request("GET", address, repeatable=True)
    content: bytes = response.content
    if digest_of_file(content) != promised:
        raise _damaged(what)
    return content


def _listed(document: dict[str, Any]) -> list[tuple[PurePosixPath, str]]:
    """Return names and digests of the files. Raises DamagedError."""
    try:
        return [(_require_inside(str(file["name"])), str(file["digest"])) for file in document["files"]]
    except (KeyError, TypeError) as error:
        raise _damaged("The list of files") from error


def _download(address: str, name: PurePosixPath, promised: str, folder: Path, attempts: int) -> Steps[None]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        digest = yield from download(f"{address}/{quote(str(name))}", target, attempts)
    if digest != promised:
        raise _damaged(str(name))


def _require_inside(name: str) -> PurePosixPath:
    """Return a file name if it stays within the folder. Raises DamagedError."""
    path = PurePosixPath(name)
    odd = path.is_absolute() or not path.parts or ".." in path.parts or "\\" in name
    odd = odd or not name.isprintable()
    if odd:
        raise DamagedError("base-file-name-invalid", name=name)
    return path


def _damaged(what: str) -> DamagedError:
    return DamagedError("received-bytes-differ", part=what)
