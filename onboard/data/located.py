"""Locate the rows of a dataset: a file, a folder, or the hub, with the files of each split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from onboard.data import hub
from onboard.data.folders import files_of, is_folder
from onboard.data.problems import Finding
from onboard.domain.hub_terms import HubTerms
from onboard.domain.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class Located:
    """A source with its name in reports, and the files of each split.

    Args:
        revision: the commit of a hub dataset.
        class_names: see `onboard.data.folders.FolderFiles`.
        together: splits that come with the dataset, from the hub or in a folder; others were named separately.
        findings: warnings about parts that are not read.
        root: folder that is omitted from names in errors.
    """

    source: str
    splits: Mapping[str, tuple[Path, ...]]
    revision: str | None = None
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    root: Path | None = None

    def name_of(self, path: Path, hide_folders: bool) -> str:
        """Return a file's name for errors."""
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        return path.name if hide_folders else str(path)


@dataclass(frozen=True, slots=True)
class FromHub:
    """How to read from the hub: see `onboard.data.read.ReadOptions`."""

    terms: HubTerms | None
    folder: Path | None
    keep: bool


@contextmanager
def located(source: Path | str, shown: str, named: Mapping[str, Path], from_hub: FromHub) -> Iterator[Located]:
    """Find the files. Downloads from the hub are deleted afterwards: a job has its own copy, which is deleted with its
    task.

    Args:
        shown: name of a file or folder in reports.
        named: files of other splits, which replace the dataset's own.

    Raises:
        InputError, NotFoundError, NotAllowedError, UnavailableError: see `onboard.data.hub.fetch` and `files_of`.
    """
    files = {split: (path,) for split, path in named.items()}
    if str(source).startswith(hub.SCHEME):
        with temporary_folder("onboard-hub-", from_hub.folder) as folder:
            fetched = hub.fetch(str(source), None, folder, from_hub.terms, keep=from_hub.keep)
            together = frozenset(fetched.splits) - files.keys()
            yield Located(
                str(source), fetched.splits | files, fetched.revision, fetched.class_names, together, fetched.findings,
                Path(folder) / hub.FILES,
            )  # fmt: skip
    elif is_folder(source):
        inside = files_of(Path(source), shown)
        together = frozenset(inside.splits) - files.keys()
        yield Located(shown, inside.splits | files, None, inside.class_names, together)
    else:
        yield Located(shown, {"train": (Path(source),), **files})
