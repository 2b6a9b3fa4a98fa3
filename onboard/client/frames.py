"""Write in-memory datasets to temporary files for an upload.

Supported are frames of pandas and polars, tables of pyarrow, `datasets.Dataset` and `DatasetDict`, lists of dicts,
dicts of columns and structured arrays. The libraries are only imported if the program has imported them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Final

from onboard.errors import InputError

_FILES: Final = ("dataset", "validation", "test", "unlabelled")  # fields of a submission that accept frames
_SPLITS: Final = {"train": "dataset", "validation": "validation", "valid": "validation", "dev": "validation",
                  "test": "test"}  # fmt: skip
_LIBRARIES: Final = ("datasets", "pandas", "polars", "pyarrow", "numpy")
_UNWRITABLE: Final = (
    ValueError,  # pandas, pyarrow: an object within itself
    TypeError,  # pyarrow: values of several types in one column
    OverflowError,  # datasets may raise any: an object within itself
    NotImplementedError,  # pyarrow, used by datasets: an object without fields
)


@contextmanager
def as_files(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the fields with a file in place of each frame. The files are deleted at the end of the block.

    Args:
        asked: fields of `onboard.domain.submission.Submission`.

    Raises:
        InputError: a frame without a task name, an unknown split, or a frame that cannot be written as rows.
    """
    if not any(_is_held(asked.get(name)) for name in _FILES):
        yield dict(asked)
        return
    task = asked.get("task")
    if task is None and _is_held(asked.get("dataset")):
        raise InputError("table-without-task-name")
    with tempfile.TemporaryDirectory(prefix="onboard-frames-") as folder:
        frames = _by_field(asked)
        files = {name: _written(value, Path(folder) / name, name) for name, value in frames.items()}
        try:
            yield {**asked, **files}
        except InputError as error:
            _forget(error, folder)
            raise


def _is_held(value: object) -> bool:
    """Return whether a value is rows rather than a file name."""
    return not isinstance(value, str | PathLike | NoneType)


def _by_field(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return every frame by its field. A DatasetDict provides several."""
    frames = {name: asked[name] for name in _FILES if _is_held(asked.get(name))}
    dataset = frames.get("dataset")
    if not isinstance(dataset, Mapping) or not _has_splits(dataset):
        return frames
    unknown = [str(split) for split in dataset if split not in _SPLITS]
    if unknown or "train" not in dataset:
        facts: dict[str, Any] = {"kind": type(dataset).__name__, "splits": list(map(str, dataset))}
        if unknown:
            raise InputError("unknown-split", field="dataset", split=unknown[0], **facts)
        raise InputError("training-split-missing", field="dataset", **facts)
    splits = {_SPLITS[str(split)]: part for split, part in dataset.items()}
    return {**splits, **{name: frame for name, frame in frames.items() if name != "dataset"}}


def _has_splits(dataset: Mapping[Any, Any]) -> bool:
    """Return whether a dict contains datasets by split rather than columns."""
    return _library(dataset) == "datasets" or any(
        _library(part) in ("datasets", "pyarrow") or isinstance(part, Mapping) or hasattr(type(part), "columns")
        for part in dataset.values()
    )


def _library(value: object) -> str | None:
    """Return the library of a value, by its class or base classes."""
    roots = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((root for root in roots if root in _LIBRARIES), None)


def _written(frame: Any, path: Path, field: str) -> Path:
    """Write a frame to a file and return its path. Raises InputError."""
    kind = type(frame).__name__
    if not _is_table(frame):
        raise InputError("not-a-table", field=field, kind=kind)
    from onboard.client.frame_rows import UnlikeRowsError  # imports numpy

    try:
        return _written_by_library(frame, path)
    except (UnlikeRowsError, *_UNWRITABLE) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError("table-column-unfit", field=field, kind=kind, reason=reason) from error


def _is_table(frame: Any) -> bool:
    """Return whether the value has rows with named columns."""
    library = _library(frame)
    if library == "datasets":
        return hasattr(frame, "num_rows") and hasattr(frame, "to_parquet")
    if library == "pyarrow":
        return hasattr(frame, "num_rows") and hasattr(frame, "schema")
    if library == "numpy":
        return bool(getattr(getattr(frame, "dtype", None), "names", None)) and getattr(frame, "ndim", 0) == 1
    if library in ("pandas", "polars"):
        return hasattr(frame, "shape") and hasattr(frame, "columns")
    if isinstance(frame, Mapping):
        return bool(frame)
    return isinstance(frame, list) and all(isinstance(row, Mapping) for row in frame)


def _written_by_library(frame: Any, path: Path) -> Path:
    """Write Parquet for Arrow-based data, which keeps the names of a ClassLabel, otherwise JSON lines."""
    library = _library(frame)
    target = path.with_suffix(".parquet" if library in ("datasets", "pyarrow") else ".jsonl")
    if library == "datasets":
        frame.to_parquet(str(target))
    elif library == "pyarrow":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame]), target)
    else:
        from onboard.client.frame_rows import write_rows

        with target.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as stream:
            write_rows(frame, stream)
    return target


def _forget(error: InputError, folder: str) -> None:
    """Replace the names of temporary files in an error by the fields of the frames."""

    def named(text: str) -> str:
        for suffix in (".parquet", ".jsonl"):
            for name in _FILES:
                text = text.replace(f"{folder}/{name}{suffix}", name).replace(f"{name}{suffix}", name)
        return text

    error.message, error.remedy = named(error.message), named(error.remedy)
    error.args = (error.message,)  # shown in tracebacks
    for problem in error.data.get("problems", ()):
        problem.update({key: named(value) for key, value in problem.items() if isinstance(value, str)})
