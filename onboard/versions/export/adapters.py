"""Use case: export the generated adapters of a version as plain weights for any T5 implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import torch

from onboard.contract.version_files import READOUT, write_parts
from onboard.domain.safetensors_header import with_sorted_header
from onboard.domain.task import EmbeddingVersion
from onboard.hypernetworks.engines import engine_at
from onboard.hypernetworks.files import require_base
from onboard.model.hypernetwork import GeneratedAdapters
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import as_strings, embedding_facts, verified_embedding
from onboard.versions.export.readmes import adapters_readme
from onboard.versions.fetch import Fetched

ADAPTERS: Final = "adapters.safetensors"
README: Final = "README.md"
_FACTS: Final = (
    "task", "version", "kind", "low", "high", "backbone", "base", "hypernetwork_version", "embedding", "labels",
    "words",
)  # fmt: skip
_POSITIONS: Final = ("feed_forward", "self_attention")  # in the order of the hypernetwork


def export_adapters(services: Services, reference: str, output: Path) -> Fetched:
    """Write `adapters.safetensors`, a README on their use, and the version's readout if it has one.

    Args:
        reference: TASK[@latest|@vN|@ALIAS].
        output: folder, created if missing.

    Raises:
        NotFoundError: the version does not exist.
        ConflictError: it has no embedding.
        DamagedError: stored bytes are missing or do not match their digest.
        PinMismatchError: the base or hypernetwork that the version is pinned to is not available.
        NotAllowedError, StorageError: the folder cannot be written.
    """
    with services.database.read() as session:
        version = VersionRepository(session).resolve(reference)
    version.require_embedding("to export", f"onboard fetch {version.reference}")
    base = require_base(services, version)
    z = verified_embedding(services.read(version.artifact), version)
    engine = engine_at(services, base, version.hypernetwork_version)
    with torch.inference_mode():
        adapters = engine.hypernetwork(torch.from_numpy(z)[None].to(engine.device))
    files: dict[str, bytes] = {
        ADAPTERS: _packed(adapters, version),
        README: adapters_readme(version, base, engine).encode(),
    }
    if version.readout is not None:
        files[READOUT] = services.read(version.readout)
    return Fetched(version, write_parts(output, files))


def tensors_of(adapters: GeneratedAdapters) -> dict[str, np.ndarray]:
    """Return the adapters of one task by name, such as `encoder.block.0.feed_forward.down`, float32."""
    tensors: dict[str, np.ndarray] = {}
    for stack, weights in (("encoder", adapters.encoder), ("decoder", adapters.decoder)):
        for place, adapter in enumerate(weights.places()):
            layer, position = divmod(place, len(_POSITIONS))
            for name, value in adapter._asdict().items():
                number = np.ascontiguousarray(value.float().cpu().numpy())
                tensors[f"{stack}.block.{layer}.{_POSITIONS[position]}.{name}"] = number
    return tensors


def _packed(adapters: GeneratedAdapters, version: EmbeddingVersion) -> bytes:
    from safetensors.numpy import save

    facts = embedding_facts(version, "")
    metadata = as_strings({name: facts[name] for name in _FACTS})
    return with_sorted_header(save(tensors_of(adapters), metadata=metadata))
