"""The source tasks of a recipe: rows from the hub or from folders, validated, with three disjoint splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from onboard.data.hub import SCHEME
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.regression import Buckets
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Dataset, Example, example_key, in_canonical_rows
from onboard.domain.names import require_name
from onboard.errors import InputError, NotFoundError, UnavailableError
from onboard.evaluate.evaluation import headline_metric
from onboard.making.curriculum.source import NOTHING_TOLD, About, Source
from onboard.making.multitask.recipe import SourceEntry, read_toml, selecting_metrics, validated
from onboard.making.multitask.validation import drawn
from onboard.model.encoding import TextEncoder

ABOUT: Final = "source.toml"  # next to the rows in a folder: title, family, license, publisher, weight
_ENDINGS = (".jsonl.gz", ".jsonl", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


@dataclass(frozen=True)
class SourceRows:
    """A source as read.

    Args:
        dataset: its three splits, none empty.
        about: further information from the recipe.
    """

    name: str
    dataset: Dataset
    metric: str
    about: About = NOTHING_TOLD

    def worded(self, encoder: TextEncoder) -> Source:
        """Return the source with label words that the base's tokenizer can distinguish."""
        dataset = self.dataset
        if dataset.low is not None and dataset.high is not None:
            words = Buckets(dataset.low, dataset.high).words
        else:
            words = verbalise(dataset.labels, encoder.word_ids, encoder.tokenizer.unk_token_id)
        return Source(
            self.name, dataset.kind, dataset.labels, words, dataset.low, dataset.high,
            dataset.train, dataset.validation, dataset.test, self.metric, self.about,
        )  # fmt: skip


def folder_entries(folder: Path) -> dict[str, SourceEntry]:
    """Return the entries of `--sources DIR`: one source per subfolder, with the facts of its source.toml, if any.

    Raises:
        InputError: there is no subfolder, a name is not a task name, or a source.toml is invalid.
    """
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    if not folders:
        raise InputError("sources-folder-empty", folder=folder)
    return {require_name(path.name): _entry(path) for path in folders}


def _entry(folder: Path) -> SourceEntry:
    path = folder / ABOUT
    facts = read_toml(path) if path.is_file() else {}
    return validated(SourceEntry, {**facts, "from": str(folder)}, path)


def read_sources(entries: Mapping[str, SourceEntry], seed: int) -> list[SourceRows]:
    """Read all sources of a recipe, in its order.

    Raises:
        InputError: no source, an unsuitable metric, a regression with a single value, or invalid rows.
        NotFoundError: a split is missing; the error names it and how to create it.
        UnavailableError: the hub cannot be reached within seconds; the error suggests an alternative.
    """
    if not entries:
        raise InputError("recipe-without-sources")
    sources = [_read(name, entry, seed) for name, entry in entries.items()]
    _require_own_rows(sources)
    return sources


def _require_own_rows(sources: Sequence[SourceRows]) -> None:
    """Raise an error for a source that was copied under a second name: it would count twice and leak test rows.

    Raises:
        InputError: most training rows of a source also belong to another one, with the same labels.
    """
    owner: dict[str, str] = {}
    for source in sources:
        keys = {example_key(row) for row in source.dataset.train}
        shared = Counter(owner[key] for key in keys if key in owner)
        for copied_from, rows in shared.most_common(1):
            if rows > len(keys) / 2:
                raise InputError(
                    "sources-share-rows", source=source.name, other=copied_from, rows=rows, source_rows=len(keys)
                )
        owner.update(dict.fromkeys(keys, source.name))


def _read(name: str, entry: SourceEntry, seed: int) -> SourceRows:
    whole = _dataset(name, entry)
    if whole.several_labels:
        raise InputError("source-with-sets", field=f"sources.{name}.source", name=name)
    dataset = _split(name, entry, whole, seed)
    dataset = replace(dataset, train=in_canonical_rows(drawn(dataset.train, entry.rows, seed)))
    if entry.metric is not None and entry.metric not in selecting_metrics(dataset.kind):
        allowed = ", ".join(selecting_metrics(dataset.kind))
        raise InputError(
            "source-metric-unknown",
            field=f"sources.{name}.metric",
            name=name,
            metric=entry.metric,
            kind=dataset.kind,
            allowed=allowed,
        )
    about = About(entry.title, entry.family, entry.licence, entry.publisher, entry.weight)
    return SourceRows(name, dataset, headline_metric(dataset.kind, entry.metric), about)


def _dataset(name: str, entry: SourceEntry) -> Dataset:
    if entry.source.startswith(SCHEME):
        try:
            return read_dataset(entry.source, _options(entry)).dataset
        except UnavailableError as error:
            raise UnavailableError.like(
                error,
                f"Without the hub: put train, validation and test .jsonl.gz of {name} into a folder and write "
                f'[sources.{name}] from = "FOLDER", or give --sources DIR with one folder per task.',
                source=entry.source,
            ) from error
    folder = Path(entry.source).expanduser()
    files = {split: _file(folder, split) for split in ("train", "validation", "test")}
    if files["train"] is None:
        raise NotFoundError(
            "source-train-split-missing", split="train", source=name, file=folder / "train.jsonl.gz", folder=folder
        )
    return read_dataset(files["train"], _options(entry, files["validation"], files["test"])).dataset


def _file(folder: Path, split: str) -> Path | None:
    return next((path for ending in _ENDINGS if (path := folder / f"{split}{ending}").is_file()), None)


def _options(entry: SourceEntry, validation: Path | None = None, test: Path | None = None) -> ReadOptions:
    return ReadOptions(
        keep_downloads=True,
        validation=validation, test=test, kind=entry.kind, text_fields=entry.text_fields,
        label_field=entry.label_field, suspects=False,
    )  # fmt: skip


def _split(name: str, entry: SourceEntry, dataset: Dataset, seed: int) -> Dataset:
    """Return the dataset with three splits, as the recipe specifies."""
    if entry.splits == "halve" and dataset.validation:
        first, second = _parted(dataset.validation, len(dataset.validation) // 2, seed)
        dataset = replace(dataset, validation=first, test=second)
    if entry.splits == "hold-out":
        validation, rest = _parted(dataset.train, min(entry.held_out_rows, len(dataset.train) // 2), seed)
        dataset = replace(dataset, train=rest, validation=validation, test=dataset.test or dataset.validation)
    for split in ("validation", "test"):
        if not getattr(dataset, split):
            raise _missing(name, entry, split)
    return dataset


def _parted(rows: tuple[Example, ...], first: int, seed: int) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    order = np.random.default_rng((seed, 17)).permutation(len(rows))
    parts = (order[:first], order[first:])
    one, other = (in_canonical_rows([rows[index] for index in part]) for part in parts)
    return one, other


def _missing(name: str, entry: SourceEntry, split: str) -> NotFoundError:
    ways = {
        "validation": f'[sources.{name}] splits = "hold-out" takes {entry.held_out_rows:,} training rows for it',
        "test": f'[sources.{name}] splits = "halve" takes half of the validation for it, "hold-out" all of it',
    }
    put = "" if entry.source.startswith(SCHEME) else f"Put {split}.jsonl.gz into {entry.source}; or "
    return NotFoundError("source-split-missing", split=split, source=name, put=put, way=ways[split])
