"""Download datasets of the Hugging Face hub: `hf://NAME[/CONFIG][@REVISION]` → local files, by split.

The `datasets` library determines the files of a configuration's splits and the names of ClassLabels. It gets a folder
with the dataset's card and empty files with the right names, so that it does not contact the hub. This module controls
the requests to the hub, with their tokens and time limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from onboard.data.cards import MAX_CARD_BYTES, card_too_large
from onboard.data.folders import CARD, SPLIT_NAMES, SUFFIXES, FolderFiles, chosen_config, files_of
from onboard.data.hub_deadline import ANSWER_SECONDS, unreachable, within_deadline
from onboard.data.limits import MAX_FILE_BYTES
from onboard.data.problems import Finding
from onboard.domain.hub_terms import HubTerms
from onboard.errors import InputError, NotAllowedError, NotFoundError, UnavailableError

if TYPE_CHECKING:
    from huggingface_hub import DatasetInfo

_Token = Literal[False] | None  # token for the hub's client: none, or the one that it finds

SCHEME: Final = "hf://"
FILES: Final = "files"  # subfolder of a download with the dataset's own file names

_CONVERTED: Final = "refs/convert/parquet"
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_MOST_FILES: Final = 10_000
_OFFLINE: Final = (
    "On a machine that reaches the hub, download the dataset as Parquet or JSONL; "
    "then pass the file: onboard check FILE.parquet"
)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """A downloaded dataset: repository, configuration, commit, and files by split.

    Args:
        class_names: see `FolderFiles`.
        findings: warnings about files that are too large to read, and a renamed repository.
    """

    repository: str
    config: str
    revision: str
    splits: dict[str, tuple[Path, ...]]
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class _Name(NamedTuple):
    """A possible meaning of a source."""

    repository: str
    config: str | None
    token: _Token = None


@dataclass(frozen=True, slots=True)
class _Hub:
    """A hub, and the folder for downloads; None uses the cache of the hub's client, which keeps them."""

    endpoint: str | None
    cache: Path | None

    def download(self, info: DatasetInfo, path: str, token: _Token) -> Path:
        from huggingface_hub import constants, hf_hub_download

        if self.cache is not None:
            constants.HF_HUB_DISABLE_XET = True  # it would keep parts of files in a separate cache
        return Path(
            hf_hub_download(
                info.id, path, repo_type="dataset", revision=info.sha, endpoint=self.endpoint, cache_dir=self.cache,
                token=token, etag_timeout=ANSWER_SECONDS,
            )
        )  # fmt: skip


class _Listed(NamedTuple):
    path: str
    config: str
    split: str


def fetch(
    source: str, endpoint: str | None, folder: Path, terms: HubTerms | None = None, *, keep: bool = False
) -> HubFiles:
    """Download the files of a dataset: its own, else the Parquet files that the hub converted it to.

    Args:
        source: `hf://NAME[/CONFIG][@REVISION]`.
        endpoint: URL of a hub other than the default.
        folder: where the files go; links to them if the hub client's cache keeps them.
        terms: owners whose datasets may be read, with which token; None allows all owners and uses the token that the
            hub's client finds, for the local user.
        keep: whether to keep the files in the hub client's cache.

    Raises:
        InputError: the name is invalid, the configuration is unknown or ambiguous, or the dataset is too large or has
            no files with rows.
        NotFoundError: the hub does not have this dataset or revision.
        NotAllowedError: the dataset is gated, or the terms do not allow its owner.
        UnavailableError: the hub cannot be reached; raised within seconds.
    """
    name, revision = _revision(source)
    candidates = _allowed(_candidates(source, name), terms)
    hub = _Hub(endpoint, None if keep else folder / "downloads")
    with _translated(source):
        info, asked = within_deadline(lambda: _find(source, candidates, revision, endpoint))
        if terms is not None:
            terms.lends_token(info.id)  # a name may redirect to another owner's repository
        plan = folder / FILES
        card = within_deadline(lambda: _card(info, hub, asked.token))
        listed = _planned(source, info, asked.config, card, plan)
        chosen, findings = _within_limit(source, info, listed, plan)
        splits = {
            split: tuple(_placed(hub.download(info, path, asked.token), plan / path) for path in paths)
            for split, paths in chosen.items()
        }
    findings += _renamed(asked.repository, info.id)
    return HubFiles(info.id, listed.config, info.sha or "", splits, listed.class_names, findings)


def default_name(source: str) -> str:
    """Return the default task name of a dataset: the last part of its name."""
    return source.removeprefix(SCHEME).partition("@")[0].rstrip("/").rpartition("/")[2]


def _renamed(asked: str, present: str) -> tuple[Finding, ...]:
    """Warn if the hub redirects to a repository of another name."""
    if asked.lower() == present.lower():
        return ()
    return (Finding("renamed_dataset", f"{asked} is called {present} on the hub now.", 1, f"Write {SCHEME}{present}"),)


def _revision(source: str) -> tuple[str, str | None]:
    name, mark, revision = source.removeprefix(SCHEME).partition("@")
    if mark and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise InputError("hub-revision-invalid", source=source, revision=revision)
    return name.rstrip("/"), revision or None


def _candidates(source: str, name: str) -> list[_Name]:
    """Return repositories and configurations that the name may mean, in the order to try."""
    parts = name.split("/")
    if not 1 <= len(parts) <= 3 or not all(_PART.fullmatch(part) for part in parts):
        raise InputError("hub-name-invalid", source=source)
    if len(parts) == 1:
        return [_Name(parts[0], None)]
    owned = "/".join(parts[:2])
    return [_Name(owned, parts[2])] if len(parts) == 3 else [_Name(owned, None), _Name(parts[0], parts[1])]


def _allowed(candidates: Iterable[_Name], terms: HubTerms | None) -> list[_Name]:
    """Return those that the terms allow, with their token. Raises NotAllowedError if there are none."""
    if terms is None:
        return list(candidates)
    allowed: list[_Name] = []
    refusals: list[NotAllowedError] = []
    for name in candidates:
        try:
            allowed.append(name if terms.lends_token(name.repository) else name._replace(token=False))
        except NotAllowedError as error:
            refusals.append(error)
    if not allowed:
        raise refusals[0]
    return allowed


def _find(
    source: str, candidates: Iterable[_Name], revision: str | None, endpoint: str | None
) -> tuple[DatasetInfo, _Name]:
    """Find the commit to read: the dataset's own if it has files with rows, else the hub's conversion."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    for name in candidates:
        api = HfApi(endpoint=endpoint, token=name.token)
        own: DatasetInfo | None = None
        for commit in (revision,) if revision else (None, _CONVERTED):
            try:
                info = api.dataset_info(name.repository, revision=commit, files_metadata=True, timeout=ANSWER_SECONDS)
            except RevisionNotFoundError as error:
                if revision:
                    raise NotFoundError(
                        "unknown-hub-revision", source=source, repository=name.repository, revision=revision
                    ) from error
                continue
            except GatedRepoError as error:
                raise NotAllowedError("hub-dataset-gated", source=source) from error
            except RepositoryNotFoundError:
                break
            if commit == _CONVERTED or any(_sizes(info)):
                return info, name
            own = info
        if own is not None:
            return own, name
    raise NotFoundError("unknown-hub-dataset", source=source)


def _sizes(info: DatasetInfo) -> dict[str, int]:
    """Return the files with rows, and their sizes in bytes."""
    names = ((file.rfilename, file.size or 0) for file in info.siblings or [])
    return {name: size for name, size in names if name.lower().removesuffix(".gz").endswith(SUFFIXES)}


def _card(info: DatasetInfo, hub: _Hub, token: _Token) -> bytes | None:
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    if CARD not in sizes:
        return None
    if sizes[CARD] > MAX_CARD_BYTES:
        raise card_too_large(sizes[CARD], info.id)
    card = hub.download(info, CARD, token)
    if card.stat().st_size > MAX_CARD_BYTES:  # it differs from the hub's listing
        raise card_too_large(card.stat().st_size, info.id)
    return card.read_bytes()


def _planned(source: str, info: DatasetInfo, config: str | None, card: bytes | None, plan: Path) -> FolderFiles:
    """Return the files to download; `plan` contains an empty file for each."""
    sizes = _sizes(info)
    if not sizes:
        raise InputError("hub-dataset-without-files", source=source)
    if len(sizes) > _MOST_FILES:
        raise InputError("hub-dataset-too-many-files", source=source, files=len(sizes), limit=_MOST_FILES)
    plan.mkdir()
    shown = source.partition("@")[0].rstrip("/")
    for path in sizes:
        _require_inside(source, path)
        (plan / path).parent.mkdir(parents=True, exist_ok=True)
        (plan / path).touch()
    if all(_converted(path) for path in sizes):
        listed = _of_config(shown, [_place(path) for path in sizes], config)
    else:
        if card is not None:
            (plan / CARD).write_bytes(card)
        listed = files_of(plan, shown, config, _OFFLINE)
    if "train" not in listed.splits:
        raise InputError("hub-dataset-without-training-split", source=source)
    return listed


def _require_inside(source: str, path: str) -> None:
    parts = PurePosixPath(path).parts
    if PurePosixPath(path).is_absolute() or ".." in parts:
        raise InputError("hub-file-outside", source=source, path=path)


def _converted(path: str) -> bool:
    """Return whether it is the path of a conversion by the hub: `CONFIG/SPLIT/0000.parquet`."""
    return re.fullmatch(r"[^/]+/(?:partial-)?[^/]+/\d{4,}\.parquet", path) is not None


def _place(path: str) -> _Listed:
    config, split, _ = path.split("/")
    return _Listed(path, config, split.removeprefix("partial-"))


def _of_config(shown: str, files: list[_Listed], asked: str | None) -> FolderFiles:
    config = chosen_config(sorted({file.config for file in files}), shown, asked)
    splits = {
        split: tuple(Path(file.path) for file in sorted(files) if file.config == config and file.split in names)
        for split, names in SPLIT_NAMES.items()
    }
    return FolderFiles(config, {split: paths for split, paths in splits.items() if paths})


def _within_limit(
    source: str, info: DatasetInfo, listed: FolderFiles, plan: Path
) -> tuple[dict[str, list[str]], tuple[Finding, ...]]:
    """Return the files to download within the limit: whole splits, but the training split last and possibly in part.

    Raises:
        InputError: not even one file of the training split is within the limit.
    """
    sizes = _sizes(info)
    names = {
        split: [_relative(path, plan) for path in paths] for split, paths in sorted(listed.splits.items(), reverse=True)
    }
    left = MAX_FILE_BYTES - sum(sizes[path] for split, paths in names.items() if split != "train" for path in paths)
    train: list[str] = []
    for path in names["train"]:
        left -= sizes[path]
        if left < 0:
            break
        train.append(path)
    if not train:
        size = sum(sizes[path] for paths in names.values() for path in paths)
        raise InputError(
            "hub-file-too-large", source=source, mebibytes=size >> 20, limit_mebibytes=MAX_FILE_BYTES >> 20
        )
    missing = len(names["train"]) - len(train)
    if not missing:
        return names, ()
    message = (
        f"{len(train):,} of the {len(names['train']):,} files of the train split are read: "
        f"the limit is {MAX_FILE_BYTES >> 20:,} MiB."
    )
    remedy = "If labels may be in the others, sample rows of all of them, and pass that file."
    return names | {"train": train}, (Finding("capped_split", message, missing, remedy),)


def _relative(path: Path, plan: Path) -> str:
    root = plan.resolve()
    absolute = path if path.is_absolute() else root / path
    return absolute.resolve().relative_to(root).as_posix()


def _placed(downloaded: Path, place: Path) -> Path:
    """Give a file its own name: the hub client's cache uses meaningless names."""
    place.unlink(missing_ok=True)
    place.symlink_to(downloaded.resolve())
    return place


@contextmanager
def _translated(source: str) -> Iterator[None]:
    from huggingface_hub.errors import HFValidationError

    try:
        yield
    except HFValidationError as error:
        raise InputError("hub-name-refused", source=source, reason=error) from error
    except unreachable() as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UnavailableError("hub-unreachable", source=source, reason=reason) from error
