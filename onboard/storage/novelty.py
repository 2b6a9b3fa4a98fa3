"""Novelty data of a version: class means as a tensor in the version's file, and the limit as metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onboard.errors import DamagedError
from onboard.statistics.novelty import Novelty
from onboard.storage.artifacts import digest_of
from onboard.storage.embedding import read_facts

TENSOR: Final = "known"  # name of the tensor of means; no method uses it
FACT: Final = "unknown"


def novelty_facts(novelty: Novelty | None) -> dict[str, Any]:
    """Return the metadata for a version's file; empty without novelty data."""
    if novelty is None:
        return {}
    return {
        FACT: {
            "limit": novelty.limit, "false_alarms": novelty.false_alarms, "rows": novelty.rows,
            "misses": novelty.misses, "texts": novelty.texts, "digest": _digest(novelty.means),
        }
    }  # fmt: skip


def novelty_tensors(novelty: Novelty | None) -> Mapping[str, np.ndarray]:
    """Return the tensors to add to a version's file."""
    return {} if novelty is None else {TENSOR: _stored(novelty.means)}


def _stored(means: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(means, dtype="<f2")


def _digest(means: np.ndarray) -> str:
    return digest_of(_stored(means).tobytes())


def novelty_in(content: bytes) -> Novelty | None:
    """Return the novelty data in the file of a version; None in files of earlier releases.

    Raises:
        DamagedError: it cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    facts = read_facts(content).get(FACT)
    if facts is None:
        return None
    try:
        digest = facts.pop("digest")
        means = load(content)[TENSOR]
        novelty = Novelty(means, **facts)
        if means.ndim != 2 or not means.size or not np.isfinite(means).all() or not np.isfinite(novelty.limit):
            raise ValueError("no means, or not finite")
    except (SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError("novelty-unreadable") from error
    if _digest(novelty.means) != digest:
        raise DamagedError("novelty-digest-differs")
    return novelty
