"""Use case: the Hugging Face hub as a shelf: a version's files put there, and taken from there, verified by digest.

What lies there is what `onboard fetch` writes: the embedding (or weights of a task's own), its readout, with a bundle
the base and a later hypernetwork; `README.md`, its card; and `onboard.json`, the version's document with the digest of
every file. Nothing that is executed when it is loaded is put there, or taken from there.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from onboard.bases import file_digest
from onboard.bases.placing import whole_folder
from onboard.data.hub import SCHEME
from onboard.data.hub_deadline import ANSWER_SECONDS, unreachable, within_deadline
from onboard.domain.names import require_name
from onboard.domain.task import EmbeddingVersion
from onboard.domain.untrusted_json import parse_json
from onboard.errors import ConflictError, DamagedError, InputError, NotAllowedError, NotFoundError, UnavailableError
from onboard.versions.card import render_card
from onboard.versions.fetch import BASE, file_name, verify, write_files, write_whole

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MANIFEST, CARD = "onboard.json", "README.md"

_PLACE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})(?:@([A-Za-z0-9._-]+))?")
_FORMAT: Final = 1
_CARD_HERE: Final = "card.md"  # what `onboard fetch` calls the card
_PLAIN: Final = (".safetensors", ".json", ".jsonl", ".md", ".txt", ".model")  # none is executed when it is loaded
_MOST_MANIFEST_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 16 << 30


@dataclass(frozen=True, slots=True)
class Place:
    """A repository of the hub, and a revision of it."""

    repository: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read `hf://OWNER/NAME[@REVISION]`. Raises InputError."""
        named = _PLACE.fullmatch(text.removeprefix(SCHEME)) if text.startswith(SCHEME) else None
        if named is None or ".." in text:
            raise InputError(f"{text!r} is no place on the hub.", "Write hf://OWNER/NAME", place=text)
        return cls(named[1], named[2])

    def __str__(self) -> str:
        return f"{SCHEME}{self.repository}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was put on the hub.

    Args:
        commit: of the repository; `place` with it always means these files.
        files: digest of each by its name there.
        has_base: whether the base lies there too.
    """

    place: Place
    commit: str
    files: Mapping[str, str]
    has_base: bool

    def to_json(self) -> dict[str, Any]:
        """A JSON-compatible document."""
        return {
            "place": str(self.place), "commit": self.commit, "files": dict(self.files), "base": self.has_base,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pulled:
    """A version that was taken from the hub, and the files that were written."""

    version: EmbeddingVersion
    commit: str
    files: tuple[Path, ...]


def push(
    version: EmbeddingVersion, folder: Path, place: Place, *, licence: str = "", private: bool = False,
    endpoint: str | None = None,
) -> Pushed:  # fmt: skip
    """Put the files of a version on the hub, in one commit.

    Args:
        folder: what `onboard.versions.fetch.fetch` wrote of it.
        licence: identifier that the hub knows, such as apache-2.0, for the card.
        private: whether a repository that is made for it is shown to nobody else.
        endpoint: another hub than the default.

    Raises:
        InputError: a revision was named, a file of the folder is of a kind that is not put there, or the version of a
            method that this release does not know.
        DamagedError: the file is not that of the version.
        NotAllowedError: nobody is signed in at the hub, or may not write there.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    if place.revision is not None:
        raise InputError("What is pushed becomes a new revision.", f"{SCHEME}{place.repository}", place=str(place))
    verify((folder / file_name(version)).read_bytes(), version)
    names = sorted(_names(folder))
    digests = {name: file_digest(folder / name) for name in names}
    manifest = {"format": _FORMAT, "reference": version.reference, "version": version.to_json(), "files": digests}
    made = {
        MANIFEST: json.dumps(manifest, ensure_ascii=False, indent=1).encode() + b"\n",
        CARD: model_card(version, licence).encode(),
    }
    operations = [CommitOperationAdd(name, str(folder / name)) for name in names]
    operations += [CommitOperationAdd(name, content) for name, content in made.items()]
    api = HfApi(endpoint=endpoint)
    with _translated(place):
        within_deadline(lambda: api.create_repo(place.repository, private=private, exist_ok=True))
        commit = api.create_commit(place.repository, operations, commit_message=f"onboard push {version.reference}")
    has_base = any(name.startswith(f"{BASE}/") for name in names)
    return Pushed(Place(place.repository, commit.oid), commit.oid, digests, has_base)


def pull(place: Place, output: Callable[[EmbeddingVersion], Path], *, endpoint: str | None = None) -> Pulled:
    """Take a version from the hub and write it as `onboard fetch` does, once every file is what it should be.

    Args:
        output: the folder, by the version that it turns out to be.
        endpoint: another hub than the default.

    Raises:
        NotFoundError: there is no such repository or revision, or no version in it.
        DamagedError: a file is missing or differs from its digest, or the version's own is not what it says.
        InputError: it has files of a kind that is not taken, was pushed by a later release, or is of a
            method that this one does not know.
        ConflictError: the folder holds another base.
        NotAllowedError: it is gated, or the folder cannot be written.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint)
    with tempfile.TemporaryDirectory(prefix="onboard-pull-") as cache, _translated(place):
        sizes, commit = within_deadline(lambda: _listed(api, place))
        if sizes.get(MANIFEST, _MOST_MANIFEST_BYTES + 1) > _MOST_MANIFEST_BYTES:
            raise NotFoundError(f"{place} holds no version of Onboard.", "Push one: onboard push TASK hf://OWNER/NAME")

        def download(name: str) -> Path:
            return Path(api.hf_hub_download(place.repository, name, revision=commit, cache_dir=cache))

        version, digests = _manifest(place, download(MANIFEST).read_bytes())
        _require_plain(place, digests, sizes)
        files = {name: download(name) for name in digests}
        for name, path in files.items():
            if file_digest(path) != digests[name]:
                message = f"{name} of {place} differs from its digest."
                raise DamagedError(message, "Pull another revision, or have it pushed again.", file=name)
        content = files.pop(file_name(version)).read_bytes()
        verify(content, version)
        parts = {top: _placing({name: files[name] for name in files if name.split("/")[0] == top}, top)
                 for top in sorted({name.split("/")[0] for name in files})}  # fmt: skip
        return Pulled(version, commit, write_files(version, content, output(version), parts))


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
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name == _CARD_HERE:
            continue
        if path.suffix not in _PLAIN:
            message = f"{name} is of a kind that is not pushed."
            raise InputError(message, f"Kinds that are: {', '.join(_PLAIN)}.", file=name)
        yield name


def _listed(api: HfApi, place: Place) -> tuple[dict[str, int], str]:
    info = api.model_info(place.repository, revision=place.revision, files_metadata=True, timeout=ANSWER_SECONDS)
    return {file.rfilename: file.size or 0 for file in info.siblings or []}, info.sha or ""


def _manifest(place: Place, content: bytes) -> tuple[EmbeddingVersion, dict[str, str]]:
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
        if path.is_absolute() or ".." in path.parts or "\\" in name or path.suffix not in _PLAIN:
            message = f"{place} lists {name!r}, which is not taken."
            raise InputError(message, f"Kinds that are: {', '.join(_PLAIN)}.", file=name)
        if name not in sizes:
            raise DamagedError(f"{place} lacks {name}.", "Have it pushed again.", file=name)
    if sum(sizes[name] for name in digests) > _MOST_BYTES:
        raise InputError(f"{place} has more than {_MOST_BYTES >> 30} GiB.", "Pull it without the base.")


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


@contextmanager
def _translated(place: Place) -> Iterator[None]:
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalTokenNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )  # fmt: skip

    sign_in = "Sign in at the hub with a token that may write: hf auth login"
    try:
        yield
    except LocalTokenNotFoundError as error:
        raise NotAllowedError("Nobody is signed in at the hub.", sign_in, place=str(place)) from error
    except GatedRepoError as error:
        remedy = "Accept its terms on the hub and sign in: hf auth login"
        raise NotAllowedError(f"{place} is gated.", remedy, place=str(place)) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        message = f"There is no {place} on the hub, or it is private."
        raise NotFoundError(message, "Check the name; private ones need a token: hf auth login") from error
    except HfHubHTTPError as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403):
            raise NotAllowedError(f"The hub does not let you write to {place}.", sign_in, place=str(place)) from error
        raise _unavailable(place, error) from error
    except unreachable() as error:
        if isinstance(error, OSError) and error.filename is not None:  # of this machine's files
            raise
        raise _unavailable(place, error) from error


def _unavailable(place: Place, error: Exception) -> UnavailableError:
    reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
    return UnavailableError(f"The hub cannot be reached for {place}: {reason}.", "Try again later.", place=str(place))
