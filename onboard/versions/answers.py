"""What a version answers to rows, as metrics compare it, and what answers it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, Label
from onboard.domain.task import EmbeddingVersion
from onboard.model.engine import Engine
from onboard.model.readout import probabilities_of
from onboard.model.task_files import task_of
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import Answering
from onboard.registry.services import Services
from onboard.statistics.readout import Readout
from onboard.statistics.temperature import tempered
from onboard.storage.embedding import read_metadata, verified_embedding
from onboard.storage.weights import Tensors, verified_weights
from onboard.versions.readouts import readout_of


def answers(
    engine: Engine,
    version: EmbeddingVersion,
    task: Answering,
    words: Sequence[str],
    rows: Sequence[Example],
    readout: Readout | None,
    features: np.ndarray | None = None,
) -> np.ndarray:
    """Probabilities (n, K) in the order of the words, at the version's temperature; scores of sets of labels; of a
    regression the expected numbers (n,), on its own scale.

    Args:
        engine: under the hypernetwork that is to be asked.
        version: of a task; says whether it is a regression.
        task: its embedding (t,) or weights; None where the readout answers alone.
        words: its K label words; of a regression those of the buckets, in their order.
        rows: n rows.
        readout: of the version, in the order of the words; None where it has none.
        features: of the rows, as `bare_features` gives them, where they were read before.
    """
    ids = engine.encoder.encode([(row.text_a, row.text_b) for row in rows])
    probabilities = probabilities_of(engine, ids, task, engine.trie(words), readout, features=features)
    if version.low is None or version.high is None:
        return tempered(probabilities, version.temperature)
    numbers: np.ndarray = probabilities @ np.array(Buckets(version.low, version.high).values)
    return numbers


def task_of_version(
    services: Services, engine: Engine, version: EmbeddingVersion, labels: Sequence[Label] | None = None
) -> tuple[Answering, Readout | None]:
    """What answers for a published version, verified, for `answers`.

    Args:
        services: where it lies.
        engine: of its base.
        version: a published version.
        labels: the order that the readout's labels are to have; None is its own.

    Raises:
        InputError: of a method that this release does not know.
        DamagedError: stored bytes are gone, or do not match their digest.
        PinMismatchError: its readout belongs to another base.
    """
    content, readout = version.content, readout_of(services, version, labels)
    if content == "readout":
        return None, readout
    if content == "embedding":
        return verified_embedding(services.read(version.artifact), version), readout
    module = module_of(services.read(version.artifact), version, engine)
    with torch.no_grad():
        return module.weights(), readout


def module_of(content: bytes, version: EmbeddingVersion, engine: Engine) -> TaskModule:
    """The parameters of a version with weights of its own.

    Args:
        content: its file.
        version: which.
        engine: of its base.

    Raises:
        InputError: of a method or settings that this release does not know.
        DamagedError: the bytes are others, or do not fit.
    """
    return module_in(content, verified_weights(content, version), engine)


@torch.inference_mode(False)  # what is loaded for a prediction stays, and is asked outside of it too
def module_in(content: bytes, tensors: Tensors, engine: Engine) -> TaskModule:
    """The parameters in a file of weights, of its tensors and what it says of them. Raises as `module_of`."""
    own = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    return task_of(own, read_metadata(content), engine.backbone).requires_grad_(False)
