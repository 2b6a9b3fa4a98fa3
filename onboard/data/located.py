"""Where the rows of a dataset lie: a file, a folder, or the hub, and the files of each split."""

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
    """A source as reports name it, and the files of each split.

    Args:
        revision: the commit of a hub dataset.
        class_names: see `onboard.data.folders.FolderFiles`.
        together: splits that come with the dataset, from the hub or in a folder; others were named one by one.
        findings: what of it is not read.
        root: folder that errors name files without.
    """

    source: str
    splits: Mapping[str, tuple[Path, ...]]
    revision: str | None = None
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    root: Path | None = None

    def name_of(self, path: Path, hide_folders: bool) -> str:
        """What a file is called in errors."""
        if self.root is not None and path.is_relative_to(self.root):
            return path.relative_to(self.root).as_posix()
        return path.name if hide_folders else str(path)


@dataclass(frozen=True, slots=True)
class FromHub:
    """How the hub is read: see `onboard.data.read.ReadOptions`."""

    terms: HubTerms | None
    folder: Path | None
    keep: bool


@contextmanager
def located(source: Path | str, shown: str, named: Mapping[str, Path], from_hub: FromHub) -> Iterator[Located]:
    """Find the files. What the hub sent is gone afterwards: a job has its own copy, which goes with its task.

    Args:
        shown: what a file or folder is called in reports.
        named: files of other splits, which take the place of the dataset's own.

    Raises:
        InputError, NotFoundError, NotAllowedError, UnavailableError: as `onboard.data.hub.fetch` and `files_of`.
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
