"""The bytes of an embedding version: `embedding.safetensors`, the tensor `z` with its facts as string metadata.

What the version knows of texts stands beside it (`onboard.storage.novelty`).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.domain.task import EmbeddingVersion
from onboard.domain.untrusted_json import parse_json
from onboard.errors import DamagedError

_STRINGS = {
    "task", "kind", "backbone", "base", "hypernetwork", "embedding", "readout", "dataset", "init", "onboard", "format",
    "method", "prior",
}  # fmt: skip


def embedding_digest(z: np.ndarray) -> str:
    """`sha256:…` over the float32 numbers alone: equal numbers, equal digest."""
    return "sha256:" + hashlib.sha256(np.ascontiguousarray(z, dtype="<f4").tobytes()).hexdigest()


def pack_embedding(z: np.ndarray, facts: Mapping[str, Any], beside: Mapping[str, np.ndarray] | None = None) -> bytes:
    """`embedding.safetensors` of z (t,) and tensors beside it, with each fact as a string (JSON where it is none)."""
    from safetensors.numpy import save

    tensors = {"z": np.ascontiguousarray(z, dtype=np.float32), **(beside or {})}
    return with_sorted_header(save(tensors, metadata=as_strings(facts)))


def as_strings(facts: Mapping[str, Any]) -> dict[str, str]:
    """Facts as the metadata of a safetensors file: JSON of what is no string."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in facts.items()
    }


def embedding_facts(version: EmbeddingVersion, hypernetwork_digest: str) -> dict[str, Any]:
    """What `pack_embedding` writes beside the numbers of a version."""
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


def unpack_embedding(content: bytes) -> np.ndarray:
    """z (t,) float32, read without the safetensors library: clients of a service need none.

    Raises:
        DamagedError: the bytes hold no embedding, or numbers that are not finite.
    """
    try:
        (length,) = struct.unpack("<Q", content[:8])
        entry = parse_json(content[8 : 8 + length])["z"]
        start, end = entry["data_offsets"]
        if entry["dtype"] != "F32" or entry["shape"] != [(end - start) // 4] or start < 0 or start % 4:
            raise ValueError("it is no vector of float32")
        z = np.frombuffer(content[8 + length :], dtype="<f4")[start // 4 : end // 4].astype(np.float32)
        if len(z) != (end - start) // 4:
            raise ValueError("it ends before its numbers do")
    except (struct.error, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedError("embedding-unreadable") from error
    if not np.isfinite(z).all():
        raise DamagedError("embedding-not-finite")
    return z


def verified_embedding(content: bytes, version: EmbeddingVersion) -> np.ndarray:
    """z (t,) float32 of that version.

    Raises:
        DamagedError: the bytes hold no embedding, or another one.
    """
    z = unpack_embedding(content)
    if embedding_digest(z) != version.embedding_digest:
        raise DamagedError("embedding-digest-differs", version=version.reference)
    return z


def read_facts(content: bytes) -> dict[str, Any]:
    """The metadata of `embedding.safetensors`: strings as they are, everything else from its JSON.

    Raises:
        DamagedError: the bytes are no safetensors file.
    """
    return {key: _fact(key, value) for key, value in read_metadata(content).items()}


def read_metadata(content: bytes) -> dict[str, str]:
    """The same as the strings that it is. Raises as `read_facts`."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        metadata = dict(parse_json(content[8 : 8 + length]).get("__metadata__", {}))
        if not all(isinstance(value, str) for value in metadata.values()):
            raise TypeError("metadata are strings")
        return metadata
    except (struct.error, ValueError, AttributeError, TypeError, OverflowError) as error:
        raise DamagedError("embedding-unreadable") from error


def _fact(key: str, value: str) -> Any:
    if key in _STRINGS:
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value
