"""Read and write `weights.safetensors` of versions without an embedding: tensors, with facts as metadata.

The metadata includes `format`, `method` and `settings`, from which `onboard.model.task_files` rebuilds the module. A
readout-only version (`linear`) is read here.
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
    """Return a digest (`sha256:…`) of names, shapes and numbers. Equal tensors have equal digests."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return "sha256:" + digest.hexdigest()


def pack_weights(tensors: Tensors, facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of `weights.safetensors`. Facts other than strings are stored as JSON."""
    from safetensors.numpy import save

    whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    return with_sorted_header(save(whole, metadata=as_strings(facts)))


def unpack_weights(content: bytes) -> dict[str, np.ndarray]:
    """Return tensors by name, without novelty data. Raises DamagedError if the bytes are not a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return {name: tensor for name, tensor in load(content).items() if name != TENSOR}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedError("weights-unreadable") from error


def verified_weights(content: bytes, version: EmbeddingVersion) -> dict[str, np.ndarray]:
    """Return the tensors of the version. Raises DamagedError if they are missing or different."""
    tensors = unpack_weights(content)
    if weights_digest(tensors) != version.embedding_digest:
        raise DamagedError("weights-digest-differs", version=version.reference)
    return tensors


def described_readout(readout: Readout) -> dict[str, str]:
    """Return the metadata of a readout-only version."""
    return {"format": WEIGHTS_FORMAT, "method": LINEAR, "settings": json.dumps({"scale": readout.scale})}


def readout_alone(tensors: Tensors, facts: Mapping[str, Any]) -> Readout:
    """Return the readout of a readout-only version.

    Args:
        tensors: from `onboard.storage.readout.readout_tensors`.
        facts: metadata of the file, from `onboard.storage.embedding.read_facts`.

    Raises:
        InputError: the format is not the one of this release.
        DamagedError: it contains no readout, or numbers that are not finite.
    """
    require_weights_format(facts)
    try:
        return readout_of_tensors(tensors, float(facts["settings"]["scale"]), share=1.0)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError("readout-unreadable") from error
