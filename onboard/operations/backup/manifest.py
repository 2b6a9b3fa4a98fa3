"""The manifest of a backup: JSON that lists all its contents, with a digest of itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from onboard.errors import ConflictError, DamagedError
from onboard.storage.artifacts import digest_of, is_digest

FORMAT: Final = "onboard-backup"
VERSION: Final = 1
NAME: Final = "manifest.json"


@dataclass(frozen=True)
class TableParts:
    """A table in the backup.

    Args:
        rows: number of rows.
        last: the last number that the database assigned to a row; 0 for tables without numbering.
        parts: digests of gzipped JSON lines, in the order of the rows.
    """

    rows: int
    last: int
    parts: list[str]


@dataclass(frozen=True)
class Manifest:
    """The contents of a backup.

    Args:
        database: URL of the database, without the password. A folder accepts backups of one service only.
        finished: false while the first backup is being written.
        created_at: ISO 8601; the moment of the database snapshot.
        onboard: version and digest of the code that made it.
        revision: schema revision of the rows.
        tables: by name, in an order in which rows can be inserted.
        artifacts: number of artifacts, and their total bytes.
        absent: artifacts that were missing or damaged in the service and are not in the backup.
        bases: name and digest of each base, and how many learned versions need it. Bases are not part of the backup.
    """

    database: str
    finished: bool = False
    created_at: str = ""
    onboard: str = ""
    revision: str = ""
    tables: dict[str, TableParts] = field(default_factory=dict)
    artifacts: dict[str, int] = field(default_factory=dict)
    absent: list[dict[str, Any]] = field(default_factory=list)
    bases: list[dict[str, Any]] = field(default_factory=list)

    def pack(self) -> bytes:
        """Return the manifest as bytes."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps({**document, "digest": document_digest(document)}, indent=1).encode()

    @classmethod
    def unpack(cls, data: bytes, place: str) -> Manifest:
        """Read bytes that `pack` wrote.

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
            return cls(**{**document, **_of_right_form(document)})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DamagedError("backup-manifest-damaged", place=place) from error


def _of_right_form(document: dict[str, Any]) -> dict[str, Any]:
    """Validate the values that are read later, because whoever modifies a manifest can also modify its digest."""
    return {
        "revision": str(document["revision"]),
        "created_at": str(document["created_at"]),
        "tables": {
            str(name): TableParts(int(facts["rows"]), int(facts["last"]), [_digest_in(part) for part in facts["parts"]])
            for name, facts in document["tables"].items()
        },
        "artifacts": {str(name): int(number) for name, number in document["artifacts"].items()},
        "absent": [{**artifact, "digest": _digest_in(artifact["digest"])} for artifact in document["absent"]],
        "bases": [
            {"name": str(base["name"]), "digest": str(base["digest"]), "versions": int(base["versions"])}
            for base in document["bases"]
        ],
    }


def _digest_in(text: object) -> str:
    if not is_digest(text):
        raise ValueError(f"{text!r} is not a digest")
    return str(text)


def document_digest(document: dict[str, Any]) -> str:
    """Return the digest of a manifest's document, including format and version."""
    return digest_of(json.dumps(document, sort_keys=True).encode())
