"""Use case: push the files of a version to the Hugging Face hub.

A repository contains the files that `onboard fetch` writes: the embedding (or task-specific weights), its readout, and
with a bundle the base and a later hypernetwork. In addition: `README.md`, its card; `onboard.json`, the version's
document with the digest of every file and the name of the repository; and `model.sig` if they were signed. Only files
with known names are pushed, or pulled (`onboard.versions.pulling`); none contains code.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onboard.bases import file_digest
from onboard.contract.card import render_card
from onboard.contract.version_files import BASE, file_name
from onboard.contract.versions import PushedFiles, VersionDocument
from onboard.data.hub import SCHEME
from onboard.data.hub_deadline import ANSWER_SECONDS, within_deadline
from onboard.domain.task import EmbeddingVersion
from onboard.domain.temporary import temporary_folder
from onboard.errors import InputError
from onboard.versions.fetch import verify
from onboard.versions.hub_place import HubPlace, translated
from onboard.versions.signature import SIGNATURE, sign
from onboard.versions.taken import OWN_FILES, is_taken

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MANIFEST, CARD = "onboard.json", "README.md"

FORMAT: Final = 1
CARD_HERE: Final = "card.md"  # name of the card in `onboard fetch`


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result of a push.

    Args:
        commit: of the repository; together with `place` it identifies these files.
        has_base: whether the base is included.
        signed: whether a signature is included.
    """

    place: HubPlace
    commit: str
    files: Mapping[str, str]
    has_base: bool
    signed: bool = False

    def to_document(self) -> PushedFiles:
        """Return what `push --json` prints besides the version."""
        return PushedFiles.of(self, place=str(self.place), base=self.has_base)


def push(
    version: EmbeddingVersion, folder: Path, place: HubPlace, *, licence: str = "", private: bool = False,
    key: Path | None = None, endpoint: str | None = None,
) -> Pushed:  # fmt: skip
    """Push the files of a version to the hub in one commit, replacing the files of an earlier version.

    Args:
        folder: written by `onboard.versions.fetch.fetch`.
        licence: license identifier of the hub, such as apache-2.0, for the card.
        private: whether a newly created repository is private.
        key: file with the private key that signs the files; None leaves them unsigned.
        endpoint: another hub than the default.

    Raises:
        InputError: a revision is given, the folder contains a file that cannot be pushed, this release does not support
            the version's method, or the key is invalid.
        NotFoundError: the key does not exist, or the signing package is not installed.
        DamagedError: the file does not match the version.
        NotAllowedError: nobody is signed in at the hub, or writing is not allowed.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    if place.revision is not None:
        raise InputError("push-with-revision", place=str(place), repository=place.repository)
    verify((folder / file_name(version)).read_bytes(), version)
    api = HfApi(endpoint=endpoint)
    with temporary_folder("onboard-push-") as temporary:
        staged = temporary / f"{version.task}-v{version.version}"
        digests = _stage(version, folder, staged, place, licence)
        if key is not None:
            sign(staged, key)
        with translated(place):
            within_deadline(lambda: api.create_repo(place.repository, private=private, exist_ok=True))
            commit = _committed(api, place, staged, f"onboard push {version.reference}")
    has_base = any(name.startswith(f"{BASE}/") for name in digests)
    return Pushed(HubPlace(place.repository, commit), commit, digests, has_base, key is not None)


def model_card(version: EmbeddingVersion, licence: str = "") -> str:
    """Return `README.md`: the card with the metadata of the hub (metrics, tags, license)."""
    from huggingface_hub import EvalResult, ModelCardData

    kind = "text-classification"
    results = [
        EvalResult(
            task_type=kind, dataset_type=version.task, dataset_name=version.task, dataset_split=split,
            metric_type=name, metric_name=name, metric_value=metric["value"],
        )
        for split in ("test", "validation")
        for name, metric in (version.metrics.get(split) or {}).items()
    ]  # fmt: skip
    data = ModelCardData(
        license=licence or None, library_name="onboard", pipeline_tag=kind, tags=["onboard", version.method],
        model_name=version.reference, eval_results=results or None,
    )  # fmt: skip
    how = f"    onboard pull {SCHEME}OWNER/NAME"
    pins = f"It only works with the base `{version.base_digest}` only."
    return f"---\n{data.to_yaml()}\n---\n{render_card(version)}\n## Use\n\n{how}\n\n{pins}\n"


def _names(folder: Path) -> Iterator[str]:
    """Yield the files to push, without the card, which is generated. Raises InputError."""
    for name in _below(folder):
        if name == CARD_HERE:
            continue
        if not is_taken(name):
            raise InputError("push-file-foreign", name=name, own_files=list(OWN_FILES))
        yield name


def _below(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _stage(version: EmbeddingVersion, folder: Path, staged: Path, place: HubPlace, licence: str) -> dict[str, str]:
    """Lay out the files for the hub in `staged`. Returns the digest of each file of the version."""
    digests = {name: file_digest(folder / name) for name in sorted(_names(folder))}
    for name in digests:
        _link(folder / name, staged / name)
    manifest = {
        "format": FORMAT, "repository": place.repository, "reference": version.reference,
        "version": VersionDocument.of(version).to_json(), "files": digests,
    }  # fmt: skip
    (staged / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (staged / CARD).write_text(model_card(version, licence), encoding="utf-8")
    return digests


def _link(file: Path, target: Path) -> None:
    """Link a file, or copy it if the folders are on different file systems."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(file.resolve())
    except OSError:
        shutil.copyfile(file, target)


def _of_a_version(name: str) -> bool:
    """Return whether a file on the hub is one that a push writes. Other files are kept."""
    return name in (*OWN_FILES, SIGNATURE) or name.startswith(f"{BASE}/")


def listed(api: HfApi, place: HubPlace) -> tuple[dict[str, int], str]:
    """Return the size in bytes of each file of a repository, and the commit. Raises errors of the hub's library."""
    info = api.model_info(place.repository, revision=place.revision, files_metadata=True, timeout=ANSWER_SECONDS)
    return {file.rfilename: file.size or 0 for file in info.siblings or []}, info.sha or ""


def _committed(api: HfApi, place: HubPlace, staged: Path, message: str) -> str:
    """Commit all files of a folder, replacing the files of an earlier version. Returns the commit's id."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    sizes, _ = within_deadline(lambda: listed(api, place))
    names = set(_below(staged))
    earlier = filter(_of_a_version, sizes.keys() - names)
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(name, str(staged / name)) for name in sorted(names)),
        *(CommitOperationDelete(name) for name in sorted(earlier)),
    ]
    return str(api.create_commit(place.repository, operations, commit_message=message).oid)
