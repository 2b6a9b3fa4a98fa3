"""The bytes of a version without an embedding: `weights.safetensors`, its own tensors with its facts as metadata.

The metadata says `format`, `method` and `settings`, too, which make a task's module again (`onboard.model.task_files`);
of a readout alone (`linear`) they are read here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onboard.domain.methods import LINEAR, WEIGHTS_FORMAT, require_weights_format
from onboard.domain.safetensors_header import with_sorted_header
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError
from onboard.statistics.readout import Readout
from onboard.storage.embedding import as_strings
from onboard.storage.novelty import TENSOR
from onboard.storage.readout import readout_of_tensors

Tensors = Mapping[str, np.ndarray]


def weights_digest(tensors: Tensors) -> str:
    """`sha256:…` over names, shapes and numbers alone: equal tensors, equal digest."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return "sha256:" + digest.hexdigest()


def pack_weights(tensors: Tensors, facts: Mapping[str, Any]) -> bytes:
    """`weights.safetensors` of tensors, with each fact as a string (JSON where it is none)."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    return with_sorted_header(save(whole, metadata=as_strings(facts)))


def unpack_weights(content: bytes) -> dict[str, np.ndarray]:
    """Tensors by name, without what it knows of texts. Raises DamagedError: the bytes are no safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return {name: tensor for name, tensor in load(content).items() if name != TENSOR}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedError("weights-unreadable") from error


def verified_weights(content: bytes, version: EmbeddingVersion) -> dict[str, np.ndarray]:
    """Tensors of that version. Raises DamagedError: the bytes hold none, or others."""
    tensors = unpack_weights(content)
    if weights_digest(tensors) != version.embedding_digest:
        raise DamagedError("weights-digest-differs", version=version.reference)
    return tensors


def described_readout(readout: Readout) -> dict[str, str]:
    """The metadata beside them."""
    return {"format": WEIGHTS_FORMAT, "method": LINEAR, "settings": json.dumps({"scale": readout.scale})}


def readout_alone(tensors: Tensors, facts: Mapping[str, Any]) -> Readout:
    """The readout that answers alone, of what a version stores.

    Args:
        tensors: as `onboard.storage.readout.readout_tensors` gives them.
        facts: the file's, read by `onboard.storage.embedding.read_facts`.

    Raises:
        InputError: of another format than this release writes.
        DamagedError: it holds no readout, or numbers that are not finite.
    """
    require_weights_format(facts)
    try:
        return readout_of_tensors(tensors, float(facts["settings"]["scale"]), share=1.0)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError("readout-unreadable") from error
