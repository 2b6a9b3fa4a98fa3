"""Convert a training to what answers at prediction and to what a version without an embedding stores."""

from __future__ import annotations

import torch

from onboard.model.engine import Engine
from onboard.model.task_weights import Answering
from onboard.pipeline.outputs import TrainOutput
from onboard.storage.embedding import read_metadata
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import Tensors, described_readout, unpack_weights
from onboard.versions.answers import module_in


def answering(engine: Engine, trained: TrainOutput) -> Answering:
    """Return what answers in addition to the readout: the embedding, task-specific weights, or nothing."""
    if trained.has_embedding:
        return trained.z
    if trained.weights is None:
        return None
    module = module_in(trained.weights, unpack_weights(trained.weights), engine)
    with torch.no_grad():
        return module.weights()


def stored(trained: TrainOutput) -> tuple[Tensors, dict[str, str]]:
    """Return the tensors and metadata that a version without an embedding stores."""
    if trained.weights is None:
        assert trained.readout is not None
        return readout_tensors(trained.readout), described_readout(trained.readout)
    return unpack_weights(trained.weights), read_metadata(trained.weights)
