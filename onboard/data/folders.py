"""Folders of the `datasets` library: the output of `save_to_disk`, or files by split for its builders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from onboard.data.cards import require_bounded_card
from onboard.domain.temporary import temporary_folder
from onboard.errors import InputError

SPLIT_NAMES: Final = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev", "validation_matched"),
    "test": ("test", "test_matched"),
}
CARD: Final = "README.md"
SUFFIXES: Final = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".arrow")  # of files with rows

_STATE, _DICT = "state.json", "dataset_dict.json"  # of one dataset, and of several splits
_ELSEWHERE: Final = re.compile(r"://|^[/~]|(?:^|/)\.\.(?:/|$)")
_REMEDY: Final = "Pass a folder with train.jsonl (or train-*.parquet), or what Dataset.save_to_disk wrote."


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """Files of a dataset by split.

    Args:
        config: their configuration, if there are several.
        splits: train, validation and test, if they exist.
        class_names: columns of integers that represent names, from the card; Parquet and Arrow files contain their own.
    """

    config: str
    splits: dict[str, tuple[Path, ...]]
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def is_folder(source: Path | str) -> bool:
    """Return whether the source is a folder; errors are reported later, when it is read as a file."""
    try:
        return Path(source).is_dir()
    except OSError:  # such as a name that is too long
        return False


def is_saved(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote it."""
    return any((folder / name).is_file() for name in (_STATE, _DICT))


def files_of(folder: Path, shown: str, config: str | None = None, remedy: str = _REMEDY) -> FolderFiles:
    """Return the files of a folder.

    Args:
        shown: name of the folder in errors.
        config: a configuration of its card.
        remedy: remedy if it has no supported files.

    Raises:
        InputError: the configuration does not exist or is ambiguous, there are no supported files or no training split,
            or the card names files elsewhere.
    """
    listed = _saved(folder) if is_saved(folder) else _built(folder, shown, config, remedy)
    splits = {
        split: paths
        for split, names in SPLIT_NAMES.items()
        if (paths := next((listed.splits[name] for name in names if listed.splits.get(name)), ()))
    }
    if "train" not in splits:
        present = ", ".join(listed.splits) or "none"
        raise InputError("folder-without-training-split", source=shown, present=present, remedy=remedy)
    return FolderFiles(listed.config, splits, listed.class_names)


def _saved(folder: Path) -> FolderFiles:
    """A dataset is a folder of Arrow files; several splits are a folder of such folders."""
    names = _json(folder / _DICT).get("splits", []) if (folder / _DICT).is_file() else None
    places = {"train": folder} if names is None else {str(name): folder / _plain(str(name)) for name in names}
    return FolderFiles("default", {split: tuple(_arrow_files(place)) for split, place in places.items()})


def _arrow_files(folder: Path) -> Iterator[Path]:
    for entry in _json(folder / _STATE).get("_data_files", []):
        yield folder / _plain(str(entry.get("filename")))


def _plain(name: str) -> str:
    if PurePosixPath(name).name != name or name in ("", ".", ".."):
        raise InputError("folder-file-name-invalid", name=name)
    return name


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError("folder-file-unreadable", source=str(path), reason=error) from error
    return document if isinstance(document, dict) else {}


def _built(folder: Path, shown: str, config: str | None, remedy: str) -> FolderFiles:
    """Return the files that the matching builder of `datasets` would read, without reading them or
    contacting the hub.
    """
    import datasets
    from datasets.exceptions import DatasetsError

    require_own_files(folder, shown)
    if not any(path.suffix.lower() in SUFFIXES or path.suffix == ".gz" for path in folder.rglob("*")):
        raise InputError("folder-without-rows", source=shown, remedy=remedy)
    try:
        with temporary_folder("onboard-builder-") as cache:
            configs = datasets.get_dataset_config_names(str(folder))
            chosen = chosen_config(configs, shown, config)
            name = chosen if len(configs) > 1 else None  # a single one is built without its name
            builder = datasets.load_dataset_builder(str(folder), name=name, cache_dir=str(cache))
    except (DatasetsError, ValueError, FileNotFoundError, TypeError, RuntimeError) as error:  # scripts: RuntimeError
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError("folder-not-a-dataset", source=shown, reason=reason, remedy=remedy) from error
    root = folder.resolve()
    splits = {
        str(split): tuple(_inside(Path(path), root, shown) for path in paths)
        for split, paths in (builder.config.data_files or {}).items()
    }
    features = builder.info.features or {}
    parts = {column: getattr(kind, "feature", kind) for column, kind in features.items()}
    names = {column: tuple(kind.names) for column, kind in parts.items() if isinstance(kind, datasets.ClassLabel)}
    return FolderFiles(name or "default", splits, names)


def chosen_config(names: Sequence[str], shown: str, asked: str | None) -> str:
    """Return the requested configuration, else the only one, else the one called default.

    Args:
        shown: name of the dataset in errors, with the requested configuration and without a revision.

    Raises:
        InputError: the configuration does not exist, or there are several and none was requested.
    """
    config = asked or (names[0] if len(names) == 1 else "default")
    if config in names:
        return config
    reason = f"has no configuration {asked!r}" if asked else "has several configurations"
    base = shown.removesuffix(f"/{asked}") if asked else shown
    raise InputError(
        "configuration-unclear",
        source=shown,
        configurations=list(names),
        reason=reason,
        base=base,
        names=list(names[:20]),
    )


def require_own_files(folder: Path, shown: str) -> None:
    """Raise InputError if the card of a folder names files elsewhere: on other machines, or outside the folder."""
    card = folder / CARD
    if not card.is_file():
        return
    require_bounded_card(card, shown)
    from huggingface_hub import DatasetCard

    try:
        configs = DatasetCard.load(card, ignore_metadata_errors=True).data.to_dict().get("configs")
    except (ValueError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError("card-unreadable", shown=shown, reason=error) from error
    named = [config.get(key) for config in configs or [] for key in ("data_files", "data_dir") if key in config]
    for name in _texts(named):
        if _ELSEWHERE.search(name):
            raise InputError("folder-files-remote", source=shown, name=name)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def _inside(path: Path, root: Path, shown: str) -> Path:
    if not path.resolve().is_relative_to(root) and not path.is_relative_to(root):
        raise InputError("folder-file-outside", shown=shown, path=path)
    return path
