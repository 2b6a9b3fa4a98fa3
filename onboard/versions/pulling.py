"""Use case: pull a version from the Hugging Face hub after verifying every file.

See `onboard.versions.shelf` for the files in a repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from onboard.bases import file_digest
from onboard.bases.placing import whole_folder
from onboard.contract.card import render_card
from onboard.contract.version_files import file_name, write_files, write_whole
from onboard.data.hub_deadline import within_deadline
from onboard.domain.names import Reference, require_name
from onboard.domain.task import EmbeddingVersion
from onboard.domain.temporary import temporary_folder
from onboard.domain.untrusted_json import parse_json
from onboard.errors import ConflictError, DamagedError, InputError, NotAllowedError, NotFoundError
from onboard.versions.fetch import verify
from onboard.versions.hub_place import HubPlace, translated
from onboard.versions.newest_seen import NewestSeen
from onboard.versions.shelf import CARD, CARD_HERE, FORMAT, MANIFEST, listed
from onboard.versions.signature import MOST_BYTES as MOST_SIGNATURE_BYTES
from onboard.versions.signature import SIGNATURE, require_public_key, verify_signature
from onboard.versions.taken import require_free, require_taken

_DOWNLOADING: Final = ".cache"  # where the hub's library records its downloads
_MOST_MANIFEST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Pulled:
    """A version pulled from the hub, and the files that were written.

    Args:
        signed: whether the repository contains a signature.
    """

    version: EmbeddingVersion
    commit: str
    files: tuple[Path, ...]
    signed: bool = False
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTerms:
    """Requirements for a version to be pulled from the hub.

    Args:
        key: file with the public key that must have signed it; None accepts any signature, or none.
        expected: the required task, and with vN the oldest accepted version; None accepts any.
        allow_older: accept a version that is older than one pulled from there before.
        overwrite: replace existing files of the folder with other contents.
        home: where pulled versions are recorded; None records nothing.
    """

    key: Path | None = None
    expected: Reference | None = None
    allow_older: bool = False
    overwrite: bool = False
    home: Path | None = None


def pull(
    place: HubPlace,
    output: Callable[[EmbeddingVersion], Path],
    terms: PullTerms = PullTerms(),
    *,
    endpoint: str | None = None,
) -> Pulled:
    """Pull a version from the hub and write it like `onboard fetch`, after verifying every file.

    Args:
        output: returns the folder for the pulled version.
        endpoint: another hub than the default.

    Raises:
        NotFoundError: the repository, revision, version or key does not exist, or the extra `sign` is not installed.
        DamagedError: a file is missing or damaged, or the signature does not match the key.
        InputError: it lists files that are not allowed, or this release does not support its format or method.
        ConflictError: another task or an older version than expected, or an existing file with other contents.
        NotAllowedError: gated, unsigned although a key is given, signed for another repository, or a folder that is not
            writable.
    """
    from huggingface_hub import HfApi

    if terms.key is not None:
        require_public_key(terms.key)  # before anything is downloaded
    api = HfApi(endpoint=endpoint)
    with temporary_folder("onboard-pull-") as folder, translated(place):
        sizes, commit = within_deadline(lambda: listed(api, place))

        def download(name: str) -> Path:
            return Path(api.hf_hub_download(place.repository, name, revision=commit, local_dir=folder))

        manifest = _manifest(place, sizes, download)
        _require_expected(place, manifest.version, terms.expected)
        files = _downloaded(place, manifest.digests, sizes, download)
        if terms.key is not None:
            _require_signature(folder, terms.key, sizes, download)
            _require_repository(place, manifest.repository)
        written = _written(place, manifest.version, files, output(manifest.version), terms)
        return Pulled(manifest.version, commit, written, SIGNATURE in sizes, terms.key is not None)


def _written(
    place: HubPlace, version: EmbeddingVersion, files: dict[str, Path], output: Path, terms: PullTerms
) -> tuple[Path, ...]:
    """Write the files, unless a newer version was pulled before or other files would be overwritten."""
    newest, verified = None if terms.home is None else NewestSeen(terms.home), terms.key is not None
    if newest is not None and not terms.allow_older:
        newest.require_not_older(place.repository, version, verified=verified)
    content = files.pop(file_name(version)).read_bytes()
    verify(content, version)
    if not terms.overwrite:
        single = {name: path.read_bytes() for name, path in files.items() if "/" not in name}
        card = {CARD_HERE: render_card(version).encode()}
        require_free(output, {file_name(version): content, **single, **card})
    written = write_files(version, content, output, _parts(files))
    if newest is not None:
        newest.note(place.repository, version, verified=verified)
    return written


class _Manifest(NamedTuple):
    """The contents of `onboard.json`: the version, the digest of each of its files, and its repository."""

    version: EmbeddingVersion
    digests: dict[str, str]
    repository: str | None


def _manifest(place: HubPlace, sizes: Mapping[str, int], download: Callable[[str], Path]) -> _Manifest:
    """Return the manifest of a repository."""
    if sizes.get(MANIFEST, _MOST_MANIFEST_BYTES + 1) > _MOST_MANIFEST_BYTES:
        raise NotFoundError("hub-without-version", place=place)
    content = download(MANIFEST).read_bytes()
    try:
        document = parse_json(content)
        if document["format"] > FORMAT:
            raise InputError("pull-of-later-release", place=place)
        version = EmbeddingVersion.from_json(document["version"])
        require_name(version.task)  # it becomes the name of a folder
        digests = {str(name): str(digest) for name, digest in document["files"].items()}
        if type(version.version) is not int or version.version < 1 or file_name(version) not in digests:
            raise ValueError("it does not name a version and its file")
        render_card(version)  # fails if facts have unexpected types
        return _Manifest(version, digests, document.get("repository"))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DamagedError("pull-manifest-damaged", file=MANIFEST, place=place, reason=error) from error


def _require_expected(place: HubPlace, version: EmbeddingVersion, expected: Reference | None) -> None:
    """Raise ConflictError if it is not the expected task, or an older version."""
    if expected is None:
        return
    if version.task != expected.task:
        raise ConflictError(
            "pull-unexpected-task", task=version.task, place=place, version=version.reference, expected=expected.task
        )
    if version.version < (expected.version or 1):
        raise ConflictError(
            "pull-older-than-expected",
            version=version.version,
            lowest=expected.version,
            place=place,
            reference=version.reference,
        )


def _require_repository(place: HubPlace, signed_for: str | None) -> None:
    """Raise NotAllowedError if the signed manifest names another repository or none."""
    if signed_for is None:
        raise NotAllowedError("signature-of-other-revision", place=str(place))
    if str(signed_for).lower() != place.repository.lower():
        raise NotAllowedError("signature-of-other-place", place=place, signed_for=str(signed_for))


def _require_signature(folder: Path, key: Path, sizes: Mapping[str, int], download: Callable[[str], Path]) -> None:
    """Raise an error if the downloaded files and the card are not those that the key signed."""
    for name in (CARD, SIGNATURE):
        if 0 < sizes.get(name, 0) <= MOST_SIGNATURE_BYTES:
            download(name)
    verify_signature(folder, key, (_DOWNLOADING,))


def _downloaded(
    place: HubPlace, digests: Mapping[str, str], sizes: Mapping[str, int], download: Callable[[str], Path]
) -> dict[str, Path]:
    """Return the files of a version by name. Raises an error if one is not allowed or does not match its digest."""
    require_taken(place, digests, sizes)
    files = {name: download(name) for name in digests}
    for name, path in files.items():
        if file_digest(path) != digests[name]:
            raise DamagedError("pull-file-damaged", file=name, place=place)
    return files


def _parts(files: Mapping[str, Path]) -> dict[str, Callable[[Path], object]]:
    """Return functions that write each top-level file or folder to a path."""
    tops = sorted({name.split("/")[0] for name in files})
    return {top: _placing({name: files[name] for name in files if name.split("/")[0] == top}, top) for top in tops}


def _placing(files: Mapping[str, Path], top: str) -> Callable[[Path], object]:
    """Return a function that writes a file or folder to a path. An existing folder must have the same contents."""

    def place(target: Path) -> None:
        if top in files:
            write_whole(target, files[top].read_bytes())
            return
        if target.exists():
            if not _same(files, top, target):
                raise ConflictError("pull-folder-occupied", folder=str(target))
            return
        with whole_folder(target) as part:
            for name, path in files.items():
                copy = part / PurePosixPath(name).relative_to(top)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)

    return place


def _same(files: Mapping[str, Path], top: str, target: Path) -> bool:
    existing = {f"{top}/{path.relative_to(target).as_posix()}": path for path in target.rglob("*") if path.is_file()}
    return existing.keys() == files.keys() and all(
        file_digest(existing[name]) == file_digest(path) for name, path in files.items()
    )
