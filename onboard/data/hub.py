"""Datasets of the Hugging Face hub: `hf://NAME[/CONFIG]` → Parquet files on this machine, by split."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from onboard.data.hub_deadline import ANSWER_SECONDS, unreachable, within_deadline
from onboard.data.limits import MAX_FILE_BYTES
from onboard.domain.hub_terms import HubTerms
from onboard.errors import InputError, NotAllowedError, NotFoundError, UnavailableError

if TYPE_CHECKING:
    from huggingface_hub import DatasetInfo

_Token = Literal[False] | None  # of the hub's client: none at all, or the one that it finds

SCHEME: Final = "hf://"

_CONVERTED: Final = "refs/convert/parquet"
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_SPLIT_NAMES: Final = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev", "validation_matched"),
    "test": ("test", "test_matched"),
}
_OFFLINE: Final = (
    "Where the hub can be reached, download the dataset as Parquet or JSONL; "
    "then pass the file: onboard check FILE.parquet"
)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """A dataset of the hub on this machine: repository, configuration, commit, and Parquet files by split."""

    repository: str
    config: str
    revision: str
    splits: dict[str, tuple[Path, ...]]


@dataclass(frozen=True, slots=True)
class _Listed:
    path: str
    config: str
    split: str
    size_bytes: int


def fetch(
    source: str, endpoint: str | None = None, cache_folder: Path | None = None, terms: HubTerms | None = None
) -> HubFiles:
    """Download the dataset's Parquet files (its own, or those that the hub converts every dataset to).

    Args:
        source: `hf://NAME[/CONFIG]`.
        endpoint: another hub than the default.
        cache_folder: where the files go; None is the hub client's own cache, which keeps them.
        terms: whose datasets are read and with whose token; None is for whoever runs this process: anybody's, with
            the token that the hub's client finds.

    Raises:
        InputError: not such a name, an unknown or ambiguous configuration, too large, or without Parquet files.
        NotFoundError: the hub has no such dataset.
        NotAllowedError: the dataset is gated, or the terms do not allow its owner.
        UnavailableError: the hub cannot be reached; this takes seconds, never minutes.
    """
    candidates = _allowed(_candidates(source), terms)
    with _translated(source):
        info, config, token = within_deadline(lambda: _find(source, candidates, endpoint))
        if terms is not None:
            terms.lends_token(info.id)  # a name may lead to a repository of somebody else
        files = _of_config(source, list(_listed(info)), config)
        _require_size(source, files)
        splits = {
            split: tuple(_download(info, file, endpoint, cache_folder, token) for file in files if file.split in names)
            for split, names in _SPLIT_NAMES.items()
        }
    if not splits["train"]:
        raise InputError(f"{source} has no training split that can be read as Parquet.", _OFFLINE, source=source)
    present = {split: paths for split, paths in splits.items() if paths}
    return HubFiles(info.id, files[0].config, info.sha or "", present)


def default_name(source: str) -> str:
    """What a task of this dataset is called unless told otherwise: the name's last part."""
    return source.removeprefix(SCHEME).rstrip("/").rpartition("/")[2]


def _candidates(source: str) -> list[tuple[str, str | None]]:
    """Repository and configuration that the name may mean, in the order in which they are tried."""
    parts = source.removeprefix(SCHEME).rstrip("/").split("/")
    if not 1 <= len(parts) <= 3 or not all(_PART.fullmatch(part) for part in parts):
        raise InputError(
            f"{source!r} is not a dataset of the hub.", "Write hf://NAME or hf://NAME/CONFIG.", source=source
        )
    if len(parts) == 1:
        return [(parts[0], None)]
    owned = "/".join(parts[:2])
    return [(owned, parts[2])] if len(parts) == 3 else [(owned, None), (parts[0], parts[1])]


def _allowed(
    candidates: Iterable[tuple[str, str | None]], terms: HubTerms | None
) -> list[tuple[str, str | None, _Token]]:
    """Those that the terms allow, with the token that they are read with. Raises NotAllowedError where it is none."""
    if terms is None:
        return [(repository, config, None) for repository, config in candidates]
    allowed: list[tuple[str, str | None, _Token]] = []
    refusals: list[NotAllowedError] = []
    for repository, config in candidates:
        try:
            allowed.append((repository, config, None if terms.lends_token(repository) else False))
        except NotAllowedError as error:
            refusals.append(error)
    if not allowed:
        raise refusals[0]
    return allowed


def _find(
    source: str, candidates: Iterable[tuple[str, str | None, _Token]], endpoint: str | None
) -> tuple[DatasetInfo, str | None, _Token]:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    for repository, config, token in candidates:
        api = HfApi(endpoint=endpoint, token=token)
        for revision in (_CONVERTED, None):
            try:
                info = api.dataset_info(repository, revision=revision, files_metadata=True, timeout=ANSWER_SECONDS)
            except RevisionNotFoundError:
                continue
            except GatedRepoError as error:
                remedy = "Accept its terms on the hub and sign in: hf auth login"
                raise NotAllowedError(f"{source} is gated.", remedy, source=source) from error
            except RepositoryNotFoundError:
                break
            return info, config, token
    raise NotFoundError(f"The hub has no dataset {source}.", "Check the name: hf://OWNER/NAME.", source=source)


def _listed(info: DatasetInfo) -> Iterator[_Listed]:
    """The Parquet files, placed by their path: `CONFIG/SPLIT/0.parquet` or `[CONFIG]/SPLIT-0-of-1.parquet`."""
    for file in info.siblings or []:
        path = PurePosixPath(file.rfilename)
        if path.suffix != ".parquet":
            continue
        folders = [part for part in path.parts[:-1] if part != "data"]
        split = path.stem.partition("-")[0]
        if folders and not any(split in names for names in _SPLIT_NAMES.values()):
            split = folders.pop().removeprefix("partial-")
        yield _Listed(file.rfilename, "/".join(folders) or "default", split, file.size or 0)


def _of_config(source: str, files: list[_Listed], asked: str | None) -> list[_Listed]:
    configs = sorted({file.config for file in files})
    if not configs:
        raise InputError(f"{source} has no Parquet files.", _OFFLINE, source=source)
    config = asked or (configs[0] if len(configs) == 1 else "default")
    if config not in configs:
        reason = f"has no configuration {asked!r}" if asked else "has several configurations"
        remedy = (
            f"Name one: {source.rstrip('/').removesuffix(f'/{asked}')}/CONFIG with one of {', '.join(configs[:20])}."
        )
        raise InputError(f"{source} {reason}.", remedy, source=source, configurations=configs)
    return sorted((file for file in files if file.config == config), key=lambda file: file.path)


def _require_size(source: str, files: Iterable[_Listed]) -> None:
    size = sum(file.size_bytes for file in files)
    if size > MAX_FILE_BYTES:
        message = f"{source} has {size >> 20:,} MiB; the limit is {MAX_FILE_BYTES >> 20:,} MiB."
        raise InputError(message, "Download it, draw a few thousand rows, and pass that file.", source=source)


def _download(info: DatasetInfo, file: _Listed, endpoint: str | None, cache_folder: Path | None, token: _Token) -> Path:
    from huggingface_hub import constants, hf_hub_download

    if cache_folder is not None:
        constants.HF_HUB_DISABLE_XET = True  # it would keep parts of the file in a cache of its own
    return Path(
        hf_hub_download(
            info.id,
            file.path,
            repo_type="dataset",
            revision=info.sha,
            endpoint=endpoint,
            cache_dir=cache_folder,
            token=token,
            etag_timeout=ANSWER_SECONDS,
        )
    )


@contextmanager
def _translated(source: str) -> Iterator[None]:
    from huggingface_hub.errors import HFValidationError

    try:
        yield
    except HFValidationError as error:
        raise InputError(f"{source!r} is not a dataset of the hub: {error}", source=source) from error
    except unreachable() as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UnavailableError(f"The hub cannot be reached for {source}: {reason}.", _OFFLINE, source=source) from error
