"""Datasets that a program holds, as files: `datasets.Dataset` and `DatasetDict`, frames of pandas and polars.

Each is written by its own library, for as long as it is read; neither is imported here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from onboard.errors import InputError

_FILES: Final = ("dataset", "validation", "test", "unlabelled")  # fields of a submission that frames may stand for
_SPLITS: Final = {"train": "dataset", "validation": "validation", "valid": "validation", "dev": "validation",
                  "test": "test"}  # fmt: skip
_LIBRARIES: Final = ("datasets", "pandas", "polars")
_UNWRITABLE: Final = (
    ValueError,  # pandas: columns of one name, half a surrogate pair, an object within itself
    TypeError,  # pandas: an array of no dimension around an object
    OverflowError,  # older pandas, and datasets allows any: an object within itself
    NotImplementedError,  # pyarrow, under datasets: an object without fields
)  # errors of polars share no class with these; they are told by their library


@contextmanager
def as_files(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is asked, with a file in the place of each frame; the files are gone when the block ends.

    Args:
        asked: fields of `onboard.domain.submission.Submission`.

    Raises:
        InputError: a frame without a task's name, a split that is none, or a frame that cannot be written as rows.
    """
    if not any(_library(asked.get(name)) for name in _FILES):
        yield dict(asked)
        return
    task = asked.get("task")
    if task is None and _library(asked.get("dataset")):
        raise InputError("A dataset of a program has no name of its own.", 'Name the task: task="paws"')
    with tempfile.TemporaryDirectory(prefix="onboard-frames-") as folder:
        frames = _by_field(asked)
        files = {name: _written(value, Path(folder) / name, name) for name, value in frames.items()}
        try:
            yield {**asked, **files}
        except InputError as error:
            _forget(error, folder)
            raise


def _by_field(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Every frame by the field that it stands for; the splits of a DatasetDict stand for several."""
    frames = {name: asked[name] for name in _FILES if _library(asked.get(name))}
    dataset = frames.get("dataset")
    if not isinstance(dataset, Mapping):
        return frames
    unknown = [str(split) for split in dataset if split not in _SPLITS]
    if unknown or "train" not in dataset:
        known = ", ".join(map(str, dataset))
        message = f"The DatasetDict has the splits {known}: " + (
            f"{unknown[0]} is neither train, validation nor test." if unknown else "train is missing."
        )
        raise InputError(message, 'Pass one of them: dataset=splits["NAME"], validation=…, test=…', field="dataset")
    splits = {_SPLITS[str(split)]: part for split, part in dataset.items()}
    return {**splits, **{name: frame for name, frame in frames.items() if name != "dataset"}}


def _library(value: object) -> str | None:
    """Which library a value is of, by its class or what that derives from; None for files and names."""
    roots = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((root for root in roots if root in _LIBRARIES), None)


def _written(frame: Any, path: Path, field: str) -> Path:
    """The file that a frame was written to. Raises InputError."""
    writers = {
        "datasets": ("to_parquet", ".parquet", {}),  # which keeps the names of a ClassLabel
        "pandas": ("to_json", ".jsonl", {"orient": "records", "lines": True, "force_ascii": False,
                                         "double_precision": 15, "index": False}),
        "polars": ("write_ndjson", ".jsonl", {}),
    }  # fmt: skip
    method, suffix, options = writers[_library(frame) or "datasets"]
    write = getattr(frame, method, None)
    kind = type(frame).__name__
    if write is None or not hasattr(frame, "num_rows" if method == "to_parquet" else "columns"):
        remedy = "Pass a Dataset or a DataFrame: collect() a lazy one, Dataset.from_list(list(rows)) of a streamed one."
        raise InputError(f"{field}: a {kind} is no table of rows.", remedy, field=field)
    target = path.with_suffix(suffix)
    try:
        write(str(target), **options)
    except Exception as error:
        if not isinstance(error, _UNWRITABLE) and _library(error) is None:
            raise
        reason = str(error).partition("\n")[0].rstrip(".")
        message = f"{field}: the {kind} cannot be written as rows: {reason}."
        raise InputError(message, "Keep the columns of text and label only.", field=field) from error
    return target


def _forget(error: InputError, folder: str) -> None:
    """Let an error name the field of a frame where it names a file that nobody knows of."""

    def named(text: str) -> str:
        for suffix in (".parquet", ".jsonl"):
            for name in _FILES:
                text = text.replace(f"{folder}/{name}{suffix}", name).replace(f"{name}{suffix}", name)
        return text

    error.message, error.remedy = named(error.message), named(error.remedy)
    error.args = (error.message,)  # which a traceback shows
    for problem in error.data.get("problems", ()):
        problem.update({key: named(value) for key, value in problem.items() if isinstance(value, str)})
