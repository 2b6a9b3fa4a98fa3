"""The manifest of a backup as JSON that lists all its contents, with a digest of itself."""

from __future__ import annotations

import json
from typing import Any, Final

from onboard.contract.upkeep import BackupManifest
from onboard.errors import ConflictError, DamagedError
from onboard.storage.artifacts import digest_of

FORMAT: Final = "onboard-backup"
VERSION: Final = 1
NAME: Final = "manifest.json"


def pack_manifest(manifest: BackupManifest) -> bytes:
    """Return the manifest as bytes."""
    document = {"format": FORMAT, "version": VERSION, **manifest.to_json()}
    return json.dumps({**document, "digest": document_digest(document)}, indent=1).encode()


def unpack_manifest(data: bytes, place: str) -> BackupManifest:
    """Read bytes that `pack_manifest` wrote.

    All values are validated, because whoever modifies a manifest can also modify its digest.

    Args:
        place: location of the manifest, for errors.

    Raises:
        DamagedError: it is not a manifest, or it was modified.
        ConflictError: a later version of Onboard wrote it in another format.
    """
    try:
        document = dict(json.loads(data))
        digest, form, version = document.pop("digest"), document.pop("format"), document.pop("version")
        if form == FORMAT and version != VERSION:
            raise ConflictError("backup-format-unknown", place=place, version=version, known=VERSION)
        if form != FORMAT or digest != document_digest({"format": form, "version": version, **document}):
            raise ValueError("it is not as it was written")
        return BackupManifest.model_validate(document)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError("backup-manifest-damaged", place=place) from error


def document_digest(document: dict[str, Any]) -> str:
    """Return the digest of a manifest's document, including format and version."""
    return digest_of(json.dumps(document, sort_keys=True).encode())
