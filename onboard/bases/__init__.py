"""A base: a folder with a frozen backbone, its first hypernetwork and the sources' embeddings, identified by a digest.

    base.json                its facts: template, sizes, license, sources with labels, words and metrics
    backbone/                config.json, model.int8.safetensors or model.safetensors, tokenizer files
    hypernetwork.safetensors version 1
    embeddings.safetensors   one `z` per source and per anchor
    trained_rows.safetensors hashes of the rows that trained it, per source fingerprints.safetensors fingerprint of
    every source and anchor, and their scale; optional
    spread.safetensors       directions in which texts of one label differ most; optional
    lessons.safetensors      its sources' lessons for its prior (`onboard.bases.lessons`); optional, and not part
                             of its digest
    card.md, LICENSE.md      the same facts for people

Backbone and hypernetwork are stored as int8 with a scale per row, or as float16 for an existing T5; `weights` in
base.json names the format. They were rounded to it before the base was measured.

An anchor is an embedding learned on a derived task of the curriculum: a candidate of the probe, but not a task.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.base_folder import LESSONS as LESSONS
from onboard.contract.base_folder import RESTORE as RESTORE
from onboard.contract.base_folder import digest_of_files as digest_of_files
from onboard.contract.base_folder import file_digest as file_digest
from onboard.contract.base_folder import folder_digest as folder_digest
from onboard.contract.base_folder import readable_base
from onboard.data.hashes import merged
from onboard.domain.dataset import Kind, Label
from onboard.domain.untrusted_json import parse_json
from onboard.errors import BaseDamagedError, BaseMissingError, InputError
from onboard.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from onboard.bases.fingerprints import Fingerprints
    from onboard.statistics.prior import Lesson

FORMAT = 1
_FILES = ("backbone/config.json", "hypernetwork.safetensors", "embeddings.safetensors", "trained_rows.safetensors")
_SHIPPED = Path(__file__).parent
# The tasks of `mini`. Its base.json does not contain this, and must not change because the digest identifies the base.
_PAIRS_OF_MINI: Final = {
    "cola": False, "sst2": False, "mnli": True, "mrpc": True, "qnli": True, "qqp": True, "rte": True, "stsb": True,
}  # fmt: skip


@dataclass(frozen=True)
class LabelledTask:
    """A task of a base by its labels, with their label words.

    Args:
        kind: classification or regression.
        labels: class labels in canonical order; empty for regression.
        words: word per label, or per bucket.
        low, high: range of a regression, else None.
    """

    name: str
    kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the entry for base.json."""
        labels, words = list(self.labels), list(self.words)
        return {"kind": self.kind, "labels": labels, "words": words, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class SourceTask(LabelledTask):
    """A task that is shipped with a base (or an anchor, which is not a task), and its metrics.

    Args:
        pairs: whether its rows are pairs of texts; None if the base does not say.
        title: the task in a few words; empty if the base does not say.
    """

    metrics: dict[str, Any]
    pairs: bool | None = None
    title: str = ""


@dataclass(frozen=True)
class Base:
    """A base in a folder. Files are read on demand."""

    folder: Path
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name for `--base`."""
        return str(self.document["name"])

    @property
    def method(self) -> str:
        """The method that generates its adapters: `hyperformer++` or `hyperformer`."""
        return str(self.document.get("method", "hyperformer++"))

    @cached_property
    def digest(self) -> str:
        """`sha256:…` over names and bytes of all its files: the base's identity."""
        return folder_digest(self.folder)

    def require_whole(self) -> None:
        """Read the headers of its weights: a copy that was cut short would count as another base.

        Raises BaseDamagedError.
        """
        from safetensors import SafetensorError, safe_open

        for path in sorted(self.folder.rglob("*.safetensors")):
            try:
                with safe_open(path, "numpy"):
                    pass
            except (SafetensorError, OSError) as error:
                raise BaseDamagedError("base-file-unreadable", path=path, reason=error) from error

    @cached_property
    def backbone_digest(self) -> str:
        """`sha256:…` over the backbone's files."""
        return folder_digest(self.folder / "backbone")

    @property
    def sources(self) -> list[SourceTask]:
        """The shipped source tasks."""
        return list(self._entries("sources"))

    @property
    def anchors(self) -> list[SourceTask]:
        """Candidates of the probe that are not tasks."""
        return list(self._entries("anchors"))

    @cached_property
    def embeddings(self) -> dict[str, np.ndarray]:
        """`z` (t,) float32 of every source and anchor. Raises BaseDamagedError."""
        arrays = _arrays(self.folder / "embeddings.safetensors")
        missing = [task.name for task in (*self.sources, *self.anchors) if task.name not in arrays]
        if missing:
            file = self.folder / "embeddings.safetensors"
            raise BaseDamagedError("base-embedding-missing", missing=missing, file=file, task=missing[0])
        return arrays

    @cached_property
    def trained_rows(self) -> dict[str, np.ndarray]:
        """Sorted 64-bit hashes of the rows that trained each source. Raises BaseDamagedError."""
        return _arrays(self.folder / "trained_rows.safetensors")

    @cached_property
    def known_rows(self) -> np.ndarray:
        """Sorted hashes of all rows that trained its hypernetwork, and so affect every embedding under it."""
        return merged(self.trained_rows.values())

    def knows(self, rows: np.ndarray) -> np.ndarray:
        """Return whether each of these row hashes (n,) trained its hypernetwork, without merging all rows as
        `known_rows`.
        """
        import numpy as np

        hits = np.zeros(len(rows), dtype=bool)
        for trained in self.trained_rows.values():
            places = np.searchsorted(trained, rows)
            within = places < len(trained)
            hits[within] |= trained[places[within]] == rows[within]
        return hits

    @cached_property
    def fingerprints(self) -> Fingerprints | None:
        """The fingerprints of its tasks; None if their embeddings did not start from fingerprints.

        Raises BaseDamagedError.
        """
        from safetensors import SafetensorError

        from onboard.bases.fingerprints import FINGERPRINTS, read_fingerprints

        path = self.folder / FINGERPRINTS
        if not path.is_file():
            return None
        try:
            return read_fingerprints(path)
        except (SafetensorError, OSError, KeyError) as error:
            raise BaseDamagedError("base-fingerprints-unreadable", path=path, reason=error) from error

    @property
    def lessons_digest(self) -> str | None:
        """`sha256:…` of its file of lessons; None without one.

        Raises DamagedError if base.json names another digest.
        """
        path = self.folder / LESSONS
        if not path.is_file():
            return None
        digest, pinned = file_digest(path), self.document.get("lessons")
        if pinned not in (None, digest):
            raise BaseDamagedError("base-file-changed", path=path, names=self.folder / "base.json")
        return digest

    @cached_property
    def lessons(self) -> dict[str, Lesson]:
        """The lessons of its sources for its prior, by task; empty without a file.

        Raises:
            DamagedError: the file is damaged, or not the one that base.json names.
            PinMismatchError: it belongs to another base.
        """
        from onboard.bases.lessons import read_lessons

        return {} if self.lessons_digest is None else read_lessons(self.folder / LESSONS, self.backbone_digest)

    def _entries(self, key: str) -> Iterator[SourceTask]:
        entries = self.document.get(key, {})
        mini = self.name == "mini" and entries.keys() == _PAIRS_OF_MINI.keys()
        for name, facts in entries.items():
            yield SourceTask(
                name=name,
                kind=facts["kind"],
                labels=tuple(facts["labels"]),
                words=tuple(facts["words"]),
                low=facts.get("low"),
                high=facts.get("high"),
                metrics=facts.get("metrics", {}),
                pairs=facts.get("pairs", _PAIRS_OF_MINI[name] if mini else None),
                title=facts.get("title", ""),
            )


def find_base(name: str, home: Path | None = None) -> Base:
    """Find a shipped base or one of `bases` in the home by name (in this order), or any base by its folder.

    Args:
        name: of the base, or its folder.
        home: None means `ONBOARD_HOME`.

    Raises:
        BaseMissingError: the base does not exist.
        InputError: the folder contains only a backbone, or a base of another format.
        BaseDamagedError: base.json cannot be read, or a file is missing.
        BaseForbiddenError: it cannot be read because of its permissions.
    """
    with readable_base(Path(name)):
        folder = next((place / name for place in _named(home) if _holds(place, name)), Path(name).expanduser())
    with readable_base(folder):
        return _open(name, folder)


def _open(name: str, folder: Path) -> Base:
    if not (folder / "base.json").is_file():
        if (folder / "config.json").is_file():
            raise InputError("bare-backbone", name=name)
        raise BaseMissingError("unknown-base", base=name)
    try:
        document = parse_json((folder / "base.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise BaseDamagedError("base-json-unreadable", file=folder / "base.json", reason=error) from error
    if not isinstance(document, dict):
        raise BaseDamagedError("base-json-not-object", file=folder / "base.json")
    if document.get("format") != FORMAT:
        raise InputError("base-format-unknown", name=name, format=document.get("format"), known=FORMAT)
    missing = [file for file in _FILES if not (folder / file).is_file()]
    if missing:
        raise BaseDamagedError("base-file-missing", files=missing, name=name, missing=missing[0])
    base = Base(folder.resolve(), document)
    try:
        _ = base.name, base.sources, base.anchors
    except (KeyError, TypeError, AttributeError) as error:
        raise BaseDamagedError("base-json-incomplete", file=folder / "base.json", reason=error) from error
    return base


def _arrays(path: Path) -> dict[str, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise BaseDamagedError("base-file-unreadable", path=path, reason=error) from error


def home_bases(home: Path | None = None) -> Path:
    """Return the folder of bases that were trained in a home, by default `ONBOARD_HOME`; they can be used by name."""
    return (home or Settings().resolved_home) / "bases"


def _named(home: Path | None) -> tuple[Path, ...]:
    return (_SHIPPED, home_bases(home))


def _holds(place: Path, name: str) -> bool:
    return "/" not in name and name not in ("", ".", "..") and (place / name / "base.json").is_file()


def named_bases(home: Path | None = None) -> list[Base]:
    """Return the bases that can be used by name: shipped ones, then those of the home, by default `ONBOARD_HOME`."""
    names = [path.parent.name for place in _named(home) for path in sorted(place.glob("*/base.json"))]
    return [find_base(name, home) for name in dict.fromkeys(names)]


def shipped_bases() -> list[Base]:
    """Return the shipped bases by name."""
    return [find_base(path.parent.name) for path in sorted(_SHIPPED.glob("*/base.json"))]


def is_shipped(base: Base) -> bool:
    """Return whether the base is shipped with the package."""
    return base.folder.parent == _SHIPPED.resolve()


def require_as_installed(base: Base) -> None:
    """Compare a shipped base with the digests that pip recorded at installation.

    Editable installations have no digests, so nothing is compared.

    Raises:
        BaseDamagedError: a file differs from the installed one.
    """
    if not is_shipped(base):
        return
    try:
        files = metadata.files("onboard") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        path = Path(str(file.locate())).resolve()
        if file.hash is None or file.hash.mode != "sha256" or not path.is_relative_to(base.folder):
            continue
        with readable_base(base.folder):
            noted = base64.urlsafe_b64decode(file.hash.value + "=" * (-len(file.hash.value) % 4)).hex()
            if file_digest(path) != f"sha256:{noted}":
                raise BaseDamagedError("base-file-not-installed", path=path)
