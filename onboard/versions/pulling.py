"""Use case: a version that lies on the Hugging Face hub, taken from there, once every file is what it should be.

See `onboard.versions.shelf` for what lies there.
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

_DOWNLOADING: Final = ".cache"  # where the hub's library notes what it downloads
_MOST_MANIFEST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Pulled:
    """A version that was taken from the hub, and the files that were written.

    Args:
        signed: whether a signature lies beside it.
        verified: whether it was checked.
    """

    version: EmbeddingVersion
    commit: str
    files: tuple[Path, ...]
    signed: bool = False
    verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTerms:
    """What is demanded of a version before it is taken from the hub.

    Args:
        key: file with the public key of whoever must have signed it; None takes what is signed by anybody, or nobody.
        expected: the task that it must be of, and with vN the oldest version that is taken; None takes any.
        allow_older: take one that is older than what was pulled from there before.
        overwrite: replace files of the folder that hold something else.
        home: where what was pulled is remembered; None remembers nothing.
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
    """Take a version from the hub and write it as `onboard fetch` does, once every file is what it should be.

    Args:
        output: the folder, by the version that it turns out to be.
        endpoint: another hub than the default.

    Raises:
        NotFoundError: there is no such repository, revision or key, no version in it, or the extra `sign` is missing.
        DamagedError: a file is missing or damaged, or the signature does not hold under the key.
        InputError: it lists files that are not taken, or this release does not know its format or method.
        ConflictError: another task or an older version than expected; a file of the folder holds something else.
        NotAllowedError: gated, unsigned though a key is given, signed for another repository; a folder not writable.
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
    """Write the files, unless a newer version was pulled before or something else would be overwritten."""
    seen, verified = None if terms.home is None else NewestSeen(terms.home), terms.key is not None
    if seen is not None and not terms.allow_older:
        seen.require_not_older(place.repository, version, verified=verified)
    content = files.pop(file_name(version)).read_bytes()
    verify(content, version)
    if not terms.overwrite:
        single = {name: path.read_bytes() for name, path in files.items() if "/" not in name}
        card = {CARD_HERE: render_card(version).encode()}
        require_free(output, {file_name(version): content, **single, **card})
    written = write_files(version, content, output, _parts(files))
    if seen is not None:
        seen.note(place.repository, version, verified=verified)
    return written


class _Manifest(NamedTuple):
    """What `onboard.json` says: the version, the digest of each of its files, and for which repository it was made."""

    version: EmbeddingVersion
    digests: dict[str, str]
    repository: str | None


def _manifest(place: HubPlace, sizes: Mapping[str, int], download: Callable[[str], Path]) -> _Manifest:
    """The version that lies there."""
    if sizes.get(MANIFEST, _MOST_MANIFEST_BYTES + 1) > _MOST_MANIFEST_BYTES:
        raise NotFoundError("hub-without-version", place=place)
    content = download(MANIFEST).read_bytes()
    try:
        document = parse_json(content)
        if document["format"] > FORMAT:
            raise InputError("pull-of-later-release", place=place)
        version = EmbeddingVersion.from_json(document["version"])
        require_name(version.task)  # of which a folder's name is made
        digests = {str(name): str(digest) for name, digest in document["files"].items()}
        if type(version.version) is not int or version.version < 1 or file_name(version) not in digests:
            raise ValueError("it does not name a version and its file")
        render_card(version)  # its facts may be of any type
        return _Manifest(version, digests, document.get("repository"))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise DamagedError("pull-manifest-damaged", file=MANIFEST, place=place, reason=error) from error


def _require_expected(place: HubPlace, version: EmbeddingVersion, expected: Reference | None) -> None:
    """Raise ConflictError where it is not the task that is expected, or an older version."""
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
    """Raise NotAllowedError where what was signed says that it was made for another repository, or does not say."""
    if signed_for is None:
        raise NotAllowedError("signature-of-other-revision", place=str(place))
    if str(signed_for).lower() != place.repository.lower():
        raise NotAllowedError("signature-of-other-place", place=place, signed_for=str(signed_for))


def _require_signature(folder: Path, key: Path, sizes: Mapping[str, int], download: Callable[[str], Path]) -> None:
    """Raise where what was downloaded, and the card, are not what the key signed."""
    for name in (CARD, SIGNATURE):
        if 0 < sizes.get(name, 0) <= MOST_SIGNATURE_BYTES:
            download(name)
    verify_signature(folder, key, (_DOWNLOADING,))


def _downloaded(
    place: HubPlace, digests: Mapping[str, str], sizes: Mapping[str, int], download: Callable[[str], Path]
) -> dict[str, Path]:
    """The files of a version by their names. Raises where one is not taken, or differs from its digest."""
    require_taken(place, digests, sizes)
    files = {name: download(name) for name in digests}
    for name, path in files.items():
        if file_digest(path) != digests[name]:
            raise DamagedError("pull-file-damaged", file=name, place=place)
    return files


def _parts(files: Mapping[str, Path]) -> dict[str, Callable[[Path], object]]:
    """By the name of a file or folder, what writes it to a path."""
    tops = sorted({name.split("/")[0] for name in files})
    return {top: _placing({name: files[name] for name in files if name.split("/")[0] == top}, top) for top in tops}


def _placing(files: Mapping[str, Path], top: str) -> Callable[[Path], object]:
    """What writes a file, or a folder of files, to a path. A folder that is there must hold the same."""

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
    there = {f"{top}/{path.relative_to(target).as_posix()}": path for path in target.rglob("*") if path.is_file()}
    return there.keys() == files.keys() and all(
        file_digest(there[name]) == file_digest(path) for name, path in files.items()
    )
