"""Snapshots: a dataset as canonical bytes. The same rows in another order or file format have the same digest.

The canonical form is JSON lines: a header (kind, labels, range, rows per split), then the rows of train, validation and
test as `[text_a, text_b, label]`, sorted within each split. The digest covers these lines. They are stored with gzip,
without a timestamp, so that equal snapshots are equal bytes. No pickle.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import zlib
from collections.abc import Iterator
from typing import Any, Final

from onboard.domain.dataset import Dataset, Example, example_key
from onboard.errors import DamagedError, DatasetError

_FORMAT: Final = "onboard-dataset"
_VERSION: Final = 1
_SPLITS: Final = ("train", "validation", "test")
_COMPRESSION: Final = 6


def digest(dataset: Dataset) -> str:
    """Return the dataset's identity: "sha256:" and the hash of its canonical form.

    Raises:
        DatasetError: a text contains half a surrogate pair, which UTF-8 cannot store.
    """
    hashed = hashlib.sha256()
    for line in _canonical_lines(dataset):
        hashed.update(line)
    return f"sha256:{hashed.hexdigest()}"


def save(dataset: Dataset) -> bytes:
    """Return the dataset as gzipped canonical JSON lines.

    Raises:
        DatasetError: a text contains half a surrogate pair, which UTF-8 cannot store.
    """
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=_COMPRESSION, mtime=0, filename="") as stream:
        stream.writelines(_canonical_lines(dataset))
    return buffer.getvalue()


def load(data: bytes) -> Dataset:
    """Read the output of `save`; rows are in canonical order.

    Raises:
        DamagedError: the bytes are not a complete snapshot.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            header = json.loads(stream.readline())
            if (header["format"], header["version"]) != (_FORMAT, _VERSION):
                raise DamagedError("snapshot-format-unknown", format=header["format"], version=header["version"])
            splits = {split: _rows(itertools.islice(stream, header["rows"][split])) for split in _SPLITS}
            whole = all(len(splits[split]) == header["rows"][split] for split in _SPLITS) and not stream.read(1)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise DamagedError("snapshot-unreadable", reason=error) from error
    if not whole:
        raise DamagedError("snapshot-incomplete")
    return Dataset(header["kind"], tuple(header["labels"]), **splits, low=header["low"], high=header["high"])


def _canonical_lines(dataset: Dataset) -> Iterator[bytes]:
    splits = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
    header: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": dataset.kind,
        "labels": list(dataset.labels),
        "low": dataset.low,
        "high": dataset.high,
        "rows": {split: len(rows) for split, rows in splits.items()},
    }
    yield _encoded(json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    for rows in splits.values():
        yield from (_encoded(key) for key in sorted(example_key(row) for row in rows))


def _encoded(line: str) -> bytes:
    try:
        return line.encode("utf-8") + b"\n"
    except UnicodeEncodeError as error:
        raise DatasetError("text-half-character", problems=[]) from error


def _rows(lines: Iterator[bytes]) -> tuple[Example, ...]:
    return tuple(Example(*json.loads(line)) for line in lines)
