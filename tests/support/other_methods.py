"""Versions without an embedding in a registry, as if jobs had published them: weights of their own, a readout alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.methods import LINEAR, OWN_START
from onboard.domain.task import EmbeddingVersion, Task
from onboard.model.methods import new_task
from onboard.model.task_files import described
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.statistics.readout import Readout
from onboard.storage.embedding import embedding_facts
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import described_readout, pack_weights, weights_digest
from support.published import add_version, embedding_of
from support.small_methods import SETTINGS

LABELS = ("sad", "happy", "film")


def add_of_method(services: Services, base: Base, task: str, method: str) -> EmbeddingVersion:
    """The first version of a task, of a method as it starts; of `linear` a readout of made-up numbers."""
    like = add_version(services, base, f"{task}-embedded", LABELS, LABELS, z=embedding_of(1), pairs=False)
    if method == LINEAR:
        weights = np.random.default_rng(0).normal(size=(len(LABELS), 16)).astype(np.float16)
        readout = Readout(weights, 0.5, np.zeros(len(LABELS), dtype=np.float32), share=1.0)
        tensors, facts = readout_tensors(readout), described_readout(readout)
    else:
        module = new_task(method, load_engine(base, "cpu").backbone, SETTINGS.get(method))
        tensors, facts = {name: part.numpy() for name, part in module.state().items()}, described(module)
    draft = replace(
        like, task=task, version=0, method=method, parent=OWN_START, embedding_digest=weights_digest(tensors)
    )
    packed = pack_weights(tensors, {**embedding_facts(draft, "sha256:0"), **facts})
    with services.database.write() as session:
        stored = replace(draft, artifact=services.store(packed, "weights"))
        return VersionRepository(session).add(stored, Task(task, "classification", LABELS, LABELS))
