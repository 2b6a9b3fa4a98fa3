"""Compute a version's answers in the form that metrics compare."""

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
    """Return probabilities (n, K) in the order of the words, at the version's temperature.

    For sets of labels these are scores; for a regression the expected numbers (n,), on the version's scale.

    Args:
        engine: engine with the version's hypernetwork.
        version: decides whether it is a regression.
        task: its embedding (t,) or weights; None if the readout answers alone.
        words: its K label words; for a regression, of the buckets in order.
        rows: n rows.
        readout: the version's readout, in the order of the words; None without one.
        features: features of the rows from `bare_features`, if already computed.
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
    """Load and verify the parts of a published version that `answers` needs.

    Args:
        labels: order of the readout's labels; None keeps its own.

    Raises:
        InputError: this release does not support its method.
        DamagedError: stored files are missing or do not match their digest.
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
    """Return the parameters of a version with task-specific weights.

    Raises:
        InputError: this release does not support its method or settings.
        DamagedError: the file was changed or does not fit.
    """
    return module_in(content, verified_weights(content, version), engine)


@torch.inference_mode(False)  # loaded parameters are also used outside inference mode
def module_in(content: bytes, tensors: Tensors, engine: Engine) -> TaskModule:
    """Return the parameters in a file of weights, from its tensors and metadata. Raises like `module_of`."""
    parameters = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    return task_of(parameters, read_metadata(content), engine.backbone).requires_grad_(False)
