"""The readout of a published version, verified against its pins."""

from __future__ import annotations

from collections.abc import Sequence

from onboard.domain.dataset import Label
from onboard.domain.task import EmbeddingVersion, label_order
from onboard.errors import DamagedError
from onboard.registry.services import Services
from onboard.statistics.readout import Readout
from onboard.storage.embedding import read_facts
from onboard.storage.readout import unpack_readout
from onboard.storage.weights import readout_alone, verified_weights


def readout_of(
    services: Services, version: EmbeddingVersion, labels: Sequence[Label] | None = None, content: bytes | None = None
) -> Readout | None:
    """Return the version's readout, ordered by `labels` if given; None if it has none.

    The file of a readout-only version contains the readout.

    Args:
        content: the version's file, if already read.

    Raises:
        InputError: this release does not support its method or format.
        DamagedError: the bytes are missing, or contain no readout of this version.
        PinMismatchError: it belongs to another base.
    """
    if version.content == "readout":
        content = services.read(version.artifact) if content is None else content
        readout = readout_alone(verified_weights(content, version), read_facts(content))
    elif version.readout is not None:
        readout = unpack_readout(services.read(version.readout), version.base_digest)
    else:
        return None
    if len(readout.bias) != len(version.words):
        raise DamagedError("readout-labels-differ", version=version.reference)
    return readout if labels is None else readout.of_labels(label_order(version, labels))
