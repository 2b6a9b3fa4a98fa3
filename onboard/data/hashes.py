"""Hashes of the texts of rows: whether two datasets share rows can be told without keeping the texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from onboard.domain.dataset import Example

if TYPE_CHECKING:
    import numpy as np

_SEPARATOR: Final = "\x1f"  # the unit separator: white space, so no collapsed text holds it


def normalised(text: str) -> str:
    """The text without regard to case and to the kind and amount of white space."""
    return " ".join(text.casefold().split())


def text_hash(text_a: str, text_b: str | None) -> int:
    """64-bit hash (signed, to fit an SQL BIGINT) of the normalised text or pair; the label has no part in it."""
    joined = normalised(text_a) if text_b is None else f"{normalised(text_a)}{_SEPARATOR}{normalised(text_b)}"
    digest = hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def row_hashes(examples: Iterable[Example]) -> list[int]:
    """`text_hash` of every example, in order. Equal hashes in two datasets count as shared rows."""
    return [text_hash(example.text_a, example.text_b) for example in examples]


def rows_without(rows: Iterable[Example], known: Iterable[int]) -> tuple[Example, ...]:
    """The rows whose hashes are not among the known ones."""
    rows, hashes = tuple(rows), set(known)
    return tuple(row for row, hashed in zip(rows, row_hashes(rows), strict=True) if hashed not in hashes)


def pack_hashes(hashes: Iterable[int]) -> bytes:
    """Hashes as bytes: a safetensors file with the int64 tensor `hashes`, sorted and distinct."""
    import numpy as np
    from safetensors.numpy import save

    packed: bytes = save({"hashes": np.unique(np.array(list(hashes), dtype=np.int64))})
    return packed


def unpack_hashes(content: bytes) -> np.ndarray:
    """What `pack_hashes` made: sorted int64 (n,)."""
    from safetensors.numpy import load

    hashes: np.ndarray = load(content)["hashes"]
    return hashes


def unseen(rows: Sequence[Example], known: np.ndarray) -> list[Example]:
    """The rows whose hashes are not among the known ones, each text once."""
    seen = set(known.tolist())
    fresh: dict[int, Example] = {}
    for row, hashed in zip(rows, row_hashes(rows), strict=True):
        if hashed not in seen:
            fresh.setdefault(hashed, row)
    return list(fresh.values())
