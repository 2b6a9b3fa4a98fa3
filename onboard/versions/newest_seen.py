"""The newest version of each task that was pulled from a repository, so that older ones are refused.

A signature proves who signed a version, but not when. Anybody with write access to a repository could restore an old
signed version that was replaced for a reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from onboard.contract.version_files import output_in_our_words, write_whole
from onboard.domain.task import EmbeddingVersion
from onboard.domain.untrusted_json import parse_json
from onboard.errors import ConflictError, DamagedError

_FILE: Final = "pulled.json"
_LOCK_SECONDS: Final = 30.0


class NewestSeen:
    """The versions pulled to this machine, stored in a file in the home folder.

    Args:
        home: folder of the installation; created if missing.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE

    def require_not_older(self, repository: str, version: EmbeddingVersion, *, verified: bool) -> None:
        """Check that a version is at least as new as those that were pulled before.

        Args:
            verified: whether its signature was checked. If so, only versions with a checked signature count, because
                anybody can push unsigned ones.

        Raises:
            ConflictError: a newer version was pulled, or a different one with the same number.
            DamagedError: the file cannot be read.
        """
        for entry in self._read().get(_key(repository, version), {}).items():
            kind, (number, artifact) = entry
            if verified and kind != _kind(verified):
                continue
            data: dict[str, Any] = {"task": version.task, "version": version.version, "newest": number}
            if version.version < number:
                raise ConflictError(
                    "pull-older-than-before", repository=repository, reference=version.reference, **data
                )
            if version.version == number and version.artifact != artifact:
                raise ConflictError("pull-bytes-differ", repository=repository, reference=version.reference, **data)

    def note(self, repository: str, version: EmbeddingVersion, *, verified: bool) -> None:
        """Record that a version was pulled. Raises NotAllowedError, StorageError if the home cannot be written."""
        with output_in_our_words(self._path.parent, "free some space, or set ONBOARD_HOME"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self._path.with_suffix(".lock"), timeout=_LOCK_SECONDS):
                document = self._read()
                entry = document.setdefault(_key(repository, version), {})
                if version.version >= entry.get(_kind(verified), (0, ""))[0]:
                    entry[_kind(verified)] = (version.version, version.artifact)
                write_whole(self._path, json.dumps(document, indent=1, sort_keys=True).encode())

    def _read(self) -> dict[str, dict[str, tuple[int, str]]]:
        if not self._path.exists():
            return {}
        try:
            document: dict[str, Any] = parse_json(self._path.read_bytes())
            return {
                key: {kind: (int(number), str(artifact)) for kind, (number, artifact) in kinds.items()}
                for key, kinds in document.items()
            }
        except (ValueError, TypeError, AttributeError) as error:
            raise DamagedError("pull-record-damaged", path=self._path, reason=error) from error


def _key(repository: str, version: EmbeddingVersion) -> str:
    return f"{repository.lower()} {version.task}"


def _kind(verified: bool) -> str:
    return "verified" if verified else "unverified"
