"""Read and write `embedding.safetensors`: the tensor `z`, with facts as string metadata.

The same file contains the version's novelty data (`onboard.storage.novelty`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onboard.contract.embedding_file import embedding_digest, read_facts, read_metadata, unpack_embedding
from onboard.domain.safetensors_header import with_sorted_header
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError

__all__ = [
    "as_strings",
    "embedding_digest",
    "embedding_facts",
    "pack_embedding",
    "read_facts",
    "read_metadata",
    "unpack_embedding",
    "verified_embedding",
]


def pack_embedding(z: np.ndarray, facts: Mapping[str, Any], beside: Mapping[str, np.ndarray] | None = None) -> bytes:
    """Return the bytes of `embedding.safetensors`.

    Args:
        z: the embedding (t,).
        facts: metadata; values other than strings are stored as JSON.
        beside: additional tensors by name.
    """
    from safetensors.numpy import save

    tensors = {"z": np.ascontiguousarray(z, dtype=np.float32), **(beside or {})}
    return with_sorted_header(save(tensors, metadata=as_strings(facts)))


def as_strings(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return facts as metadata for a safetensors file; values other than strings become JSON."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in facts.items()
    }


def embedding_facts(version: EmbeddingVersion, hypernetwork_digest: str) -> dict[str, Any]:
    """Return the facts that `pack_embedding` writes as metadata of a version."""
    return {
        "task": version.task,
        "version": version.version,
        "kind": version.task_kind,
        "low": version.low,
        "high": version.high,
        **({} if version.pairs is None else {"pairs": version.pairs}),
        "backbone": version.backbone_digest,
        "base": version.base_digest,
        "hypernetwork_version": version.hypernetwork_version,
        "hypernetwork": hypernetwork_digest,
        "embedding": version.embedding_digest,
        **({} if version.readout is None else {"readout": version.readout}),
        **(
            {}
            if version.prior_digest is None
            else {"prior_version": version.prior_version, "prior": version.prior_digest}
        ),
        **({} if version.temperature == 1.0 else {"temperature": version.temperature}),
        **({} if version.learned_under is None else {"learned_under": version.learned_under}),
        "labels": list(version.labels),
        "words": list(version.words),
        "dataset": version.dataset_digest,
        "metrics": version.metrics,
        "weak": version.weak,
        "init": version.parent,
        **({"mixed_from": version.mixed_from} if version.mixed_from else {}),
        "seeds": list(version.seeds),
        "onboard": version.code_version,
    }


def verified_embedding(content: bytes, version: EmbeddingVersion) -> np.ndarray:
    """Return z (t,) float32 of the version.

    Raises:
        DamagedError: the bytes contain no embedding, or a different one.
    """
    z = unpack_embedding(content)
    if embedding_digest(z) != version.embedding_digest:
        raise DamagedError("embedding-digest-differs", version=version.reference)
    return z
