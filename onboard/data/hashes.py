"""Hashes of the texts of rows, to detect shared rows of datasets without storing the texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from onboard.domain.dataset import Example

if TYPE_CHECKING:
    import numpy as np

_SEPARATOR: Final = "\x1f"  # the unit separator counts as whitespace, so no collapsed text contains it


def normalised(text: str) -> str:
    """Normalize case and whitespace."""
    return " ".join(text.casefold().split())


def text_hash(text_a: str, text_b: str | None) -> int:
    """Return a 64-bit hash (signed, to fit an SQL BIGINT) of the normalized text or pair, without the label."""
    joined = normalised(text_a) if text_b is None else f"{normalised(text_a)}{_SEPARATOR}{normalised(text_b)}"
    digest = hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def row_hashes(examples: Iterable[Example]) -> list[int]:
    """Return `text_hash` of every example, in order. Equal hashes in two datasets count as shared rows."""
    return [text_hash(example.text_a, example.text_b) for example in examples]


def rows_without(rows: Iterable[Example], known: Iterable[int]) -> tuple[Example, ...]:
    """Return the rows with hashes that are not known."""
    rows, hashes = tuple(rows), set(known)
    return tuple(row for row, hashed in zip(rows, row_hashes(rows), strict=True) if hashed not in hashes)


def pack_hashes(hashes: Iterable[int]) -> bytes:
    """Serialize hashes: a safetensors file with the int64 tensor `hashes`, sorted and distinct."""
    import numpy as np
    from safetensors.numpy import save

    packed: bytes = save({"hashes": np.unique(np.array(list(hashes), dtype=np.int64))})
    return packed


def unpack_hashes(content: bytes) -> np.ndarray:
    """Read the output of `pack_hashes`: sorted int64 (n,)."""
    from safetensors.numpy import load

    hashes: np.ndarray = load(content)["hashes"]
    return hashes


def unseen(rows: Sequence[Example], known: np.ndarray) -> list[Example]:
    """Return the rows with hashes that are not among the known ones (sorted), without repeated texts."""
    import numpy as np

    hashes = row_hashes(rows)
    seen = in_sorted(np.array(hashes, dtype=np.int64), known)
    fresh: dict[int, Example] = {}
    for row, hashed, is_known in zip(rows, hashes, seen, strict=True):
        if not is_known:
            fresh.setdefault(hashed, row)
    return list(fresh.values())


def in_sorted(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Return which values (n,) occur in a sorted array, as (n,) of bool, by binary search."""
    import numpy as np

    if not len(ascending):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    found: np.ndarray = ascending[places] == values
    return found


def merged(hashes: Iterable[np.ndarray]) -> np.ndarray:
    """Return the hashes of several sorted arrays, sorted and distinct.

    A stable sort merges such arrays; `np.unique` takes thirty times as long for the rows of a base.
    """
    import numpy as np

    every = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *hashes]), kind="stable")
    distinct: np.ndarray = every[np.flatnonzero(np.diff(every, prepend=every[:1] - 1))]
    return distinct
