"""Use case: the Hugging Face hub as a shelf: a version's files put there, and taken from there, verified by digest.

What lies there is what `onboard fetch` writes: the embedding (or weights of a task's own), its readout, with a bundle
the base and a later hypernetwork; `README.md`, its card; `onboard.json`, the version's document with the digest of
every file; and `model.sig` where they were signed. Nothing that is executed when it is loaded is put there, or taken
from there.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from onboard.bases import file_digest
from onboard.bases.placing import whole_folder
from onboard.data.hub import SCHEME
from onboard.data.hub_deadline import ANSWER_SECONDS, within_deadline
from onboard.domain.names import require_name
from onboard.domain.task import EmbeddingVersion
from onboard.domain.untrusted_json import parse_json
from onboard.errors import ConflictError, DamagedError, InputError, NotFoundError
from onboard.storage.readout import READOUT
from onboard.storage.weights import WEIGHTS
from onboard.versions.card import render_card
from onboard.versions.fetch import BASE, EMBEDDING, HYPERNETWORK, file_name, verify, write_files, write_whole
from onboard.versions.hub_place import Place, translated
from onboard.versions.signature import MOST_BYTES as MOST_SIGNATURE_BYTES
from onboard.versions.signature import SIGNATURE, require_public_key, sign, verify_signature

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MANIFEST, CARD = "onboard.json", "README.md"

_FORMAT: Final = 1
_DOWNLOADING: Final = ".cache"  # where the hub's library notes what it downloads
_CARD_HERE: Final = "card.md"  # what `onboard fetch` calls the card
_PLAIN: Final = (".safetensors", ".json", ".jsonl", ".md", ".txt", ".model")  # none is executed when it is loaded
_MOST_MANIFEST_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 16 << 30


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was put on the hub.

    Args:
        commit: of the repository; `place` with it always means these files.
        files: digest of each by its name there.
        has_base: whether the base lies there too.
        signed: whether the signature of all of it does.
    """

    place: Place
    commit: str
    files: Mapping[str, str]
    has_base: bool
    signed: bool = False

    def to_json(self) -> dict[str, Any]:
        """A JSON-compatible document."""
        return {
            "place": str(self.place), "commit": self.commit, "files": dict(self.files), "base": self.has_base,
            "signed": self.signed,
        }  # fmt: skip


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


def push(
    version: EmbeddingVersion, folder: Path, place: Place, *, licence: str = "", private: bool = False,
    key: Path | None = None, endpoint: str | None = None,
) -> Pushed:  # fmt: skip
    """Put the files of a version on the hub, in one commit, in the place of those of a version that lie there.

    Args:
        folder: what `onboard.versions.fetch.fetch` wrote of it.
        licence: identifier that the hub knows, such as apache-2.0, for the card.
        private: whether a repository that is made for it is shown to nobody else.
        key: file with the private key that signs them; None leaves them unsigned.
        endpoint: another hub than the default.

    Raises:
        InputError: a revision was named, a file of the folder is of a kind that is not put there, the version is of a
            method that this release does not know, or the key is none.
        NotFoundError: there is no such key, or what signs is not installed.
        DamagedError: the file is not that of the version.
        NotAllowedError: nobody is signed in at the hub, or may not write there.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    if place.revision is not None:
        raise InputError("What is pushed becomes a new revision.", f"{SCHEME}{place.repository}", place=str(place))
    verify((folder / file_name(version)).read_bytes(), version)
    api = HfApi(endpoint=endpoint)
    with tempfile.TemporaryDirectory(prefix="onboard-push-") as temporary:
        staged = Path(temporary) / f"{version.task}-v{version.version}"
        digests = _stage(version, folder, staged, licence)
        if key is not None:
            sign(staged, key)
        with translated(place):
            within_deadline(lambda: api.create_repo(place.repository, private=private, exist_ok=True))
            commit = _committed(api, place, staged, f"onboard push {version.reference}")
    has_base = any(name.startswith(f"{BASE}/") for name in digests)
    return Pushed(Place(place.repository, commit), commit, digests, has_base, key is not None)


def pull(
    place: Place, output: Callable[[EmbeddingVersion], Path], *, key: Path | None = None, endpoint: str | None = None
) -> Pulled:
    """Take a version from the hub and write it as `onboard fetch` does, once every file is what it should be.

    Args:
        output: the folder, by the version that it turns out to be.
        key: file with the public key of whoever must have signed it; None takes what is signed by anybody, or nobody.
        endpoint: another hub than the default.

    Raises:
        NotFoundError: there is no such repository, revision or key, no version in it, or the extra `sign` is missing.
        DamagedError: a file is missing or differs from its digest, the version's own is not what it says, or the
            signature does not hold under the key.
        InputError: it has files of a kind that is not taken, was pushed by a later release, is of a method that this
            one does not know, or the key is none.
        ConflictError: the folder holds another base.
        NotAllowedError: it is gated, not signed though a key is given, or the folder cannot be written.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    if key is not None:
        require_public_key(key)  # before anything is downloaded
    api = HfApi(endpoint=endpoint)
    with tempfile.TemporaryDirectory(prefix="onboard-pull-") as temporary, translated(place):
        folder = Path(temporary)
        sizes, commit = within_deadline(lambda: _listed(api, place))

        def download(name: str) -> Path:
            return Path(api.hf_hub_download(place.repository, name, revision=commit, local_dir=folder))

        version, digests = _manifest(place, sizes, download)
        files = _downloaded(place, digests, sizes, download)
        if key is not None:
            _require_signature(folder, key, sizes, download)
        content = files.pop(file_name(version)).read_bytes()
        verify(content, version)
        written = write_files(version, content, output(version), _parts(files))
        return Pulled(version, commit, written, SIGNATURE in sizes, key is not None)


def model_card(version: EmbeddingVersion, licence: str = "") -> str:
    """`README.md`: the card with the facts on top that the hub reads (metrics, tags, licence)."""
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
    pins = f"It answers with the base `{version.base_digest}` only."
    return f"---\n{data.to_yaml()}\n---\n{render_card(version)}\n## Use\n\n{how}\n\n{pins}\n"


def _names(folder: Path) -> Iterator[str]:
    """The files to push; the card is made anew. Raises InputError."""
    for name in _below(folder):
        if name == _CARD_HERE:
            continue
        if PurePosixPath(name).suffix not in _PLAIN:
            message = f"{name} is of a kind that is not pushed."
            raise InputError(message, f"Kinds that are: {', '.join(_PLAIN)}.", file=name)
        yield name


def _below(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _stage(version: EmbeddingVersion, folder: Path, staged: Path, licence: str) -> dict[str, str]:
    """Lay out in `staged` what is to lie on the hub; returns the digest of each file of the version."""
    digests = {name: file_digest(folder / name) for name in sorted(_names(folder))}
    for name in digests:
        _link(folder / name, staged / name)
    manifest = {"format": _FORMAT, "reference": version.reference, "version": version.to_json(), "files": digests}
    (staged / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (staged / CARD).write_text(model_card(version, licence), encoding="utf-8")
    return digests


def _link(file: Path, target: Path) -> None:
    """The same file under another name, copied where the two folders are not on one file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(file.resolve())
    except OSError:
        shutil.copyfile(file, target)


def _of_a_version(name: str) -> bool:
    """Whether a file on the hub is one that pushing puts there; whatever else people keep there stays."""
    return name in (EMBEDDING, WEIGHTS, READOUT, HYPERNETWORK, SIGNATURE) or name.startswith(f"{BASE}/")


def _listed(api: HfApi, place: Place) -> tuple[dict[str, int], str]:
    info = api.model_info(place.repository, revision=place.revision, files_metadata=True, timeout=ANSWER_SECONDS)
    return {file.rfilename: file.size or 0 for file in info.siblings or []}, info.sha or ""


def _committed(api: HfApi, place: Place, staged: Path, message: str) -> str:
    """Put all files of a folder there, in the place of a version's files that lie there; returns the commit's id."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    sizes, _ = within_deadline(lambda: _listed(api, place))
    names = set(_below(staged))
    earlier = filter(_of_a_version, sizes.keys() - names)
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(name, str(staged / name)) for name in sorted(names)),
        *(CommitOperationDelete(name) for name in sorted(earlier)),
    ]
    return str(api.create_commit(place.repository, operations, commit_message=message).oid)


def _manifest(
    place: Place, sizes: Mapping[str, int], download: Callable[[str], Path]
) -> tuple[EmbeddingVersion, dict[str, str]]:
    """The version that lies there, and the digest of each of its files."""
    if sizes.get(MANIFEST, _MOST_MANIFEST_BYTES + 1) > _MOST_MANIFEST_BYTES:
        raise NotFoundError(f"{place} holds no version of Onboard.", "Push one: onboard push TASK hf://OWNER/NAME")
    content = download(MANIFEST).read_bytes()
    try:
        document = parse_json(content)
        if document["format"] > _FORMAT:
            raise InputError(f"{place} was pushed by a later release.", "Install that: pip install -U onboard")
        version = EmbeddingVersion.from_json(document["version"])
        require_name(version.task)  # of which a folder's name is made
        digests = {str(name): str(digest) for name, digest in document["files"].items()}
        if type(version.version) is not int or file_name(version) not in digests:
            raise ValueError("it names no version with its file")
        return version, digests
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"{MANIFEST} of {place} cannot be read: {error}."
        raise DamagedError(message, "Have it pushed again.", file=MANIFEST) from error


def _require_plain(place: Place, digests: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Raise where a file is missing, lies outside, is too large, or is executed when it is loaded."""
    for name in digests:
        path = PurePosixPath(name)
        hidden = any(part.startswith(".") for part in path.parts)  # `..` among them
        if path.is_absolute() or hidden or "\\" in name or path.suffix not in _PLAIN:
            message = f"{place} lists {name!r}, which is not taken."
            raise InputError(message, f"Kinds that are: {', '.join(_PLAIN)}.", file=name)
        if name not in sizes:
            raise DamagedError(f"{place} lacks {name}.", "Have it pushed again.", file=name)
    if sum(sizes[name] for name in digests) > _MOST_BYTES:
        raise InputError(f"{place} has more than {_MOST_BYTES >> 30} GiB.", "Pull it without the base.")


def _require_signature(folder: Path, key: Path, sizes: Mapping[str, int], download: Callable[[str], Path]) -> None:
    """Raise where what was downloaded, and the card, are not what the key signed."""
    for name in (CARD, SIGNATURE):
        if 0 < sizes.get(name, 0) <= MOST_SIGNATURE_BYTES:
            download(name)
    verify_signature(folder, key, (_DOWNLOADING,))


def _downloaded(
    place: Place, digests: Mapping[str, str], sizes: Mapping[str, int], download: Callable[[str], Path]
) -> dict[str, Path]:
    """The files of a version by their names. Raises where one is not taken, or differs from its digest."""
    _require_plain(place, digests, sizes)
    files = {name: download(name) for name in digests}
    for name, path in files.items():
        if file_digest(path) != digests[name]:
            message = f"{name} of {place} differs from its digest."
            raise DamagedError(message, "Pull another revision, or have it pushed again.", file=name)
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
                message = f"{target} holds something else."
                raise ConflictError(message, "--output another folder", folder=str(target))
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
