"""Versions of other methods over HTTP: their file, their document, and the list of embeddings that they are not in."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.domain.methods import OWN_START
from onboard.domain.task import EmbeddingVersion, Task
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.statistics.readout import Readout
from onboard.storage.embedding import embedding_facts
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import described_readout, pack_weights, unpack_weights, weights_digest

LABELS = ("sad", "glad")


@pytest.fixture
def linear(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    """mood@v1, a readout alone; other@v1 is an embedding."""
    like = add_version(tiny_services, tiny_base, "other", LABELS, LABELS, z=embedding_of(1))
    readout = Readout(np.ones((2, 16), dtype=np.float16), 0.5, np.zeros(2, dtype=np.float32), share=1.0)
    tensors = readout_tensors(readout)
    draft = replace(
        like, task="mood", method="linear", parent=OWN_START, embedding_digest=weights_digest(tensors), artifact=""
    )
    packed = pack_weights(tensors, {**embedding_facts(draft, "sha256:0"), **described_readout(readout)})
    with tiny_services.database.write() as session:
        stored = replace(draft, artifact=tiny_services.store(packed, "weights"))
        return VersionRepository(session).add(stored, Task("mood", "classification", LABELS, LABELS))


def test_its_file_is_served_and_its_document_has_no_numbers(door: TestClient, linear: EmbeddingVersion) -> None:
    file = door.get("/v1/tasks/mood/embeddings/latest.safetensors")
    assert file.headers["etag"] == f'"{linear.artifact}"' == f'"sha256:{hashlib.sha256(file.content).hexdigest()}"'
    assert weights_digest(unpack_weights(file.content)) == linear.embedding_digest
    document = door.get("/v1/tasks/mood/embeddings/latest").json()
    assert (document["method"], document["z"], document["parent"]) == ("linear", None, "(own)")
    assert document["stored_bytes"] == linear.stored_bytes == len(file.content)
    assert door.get("/v1/tasks/mood").json()["latest"]["method"] == "linear"


def test_the_list_of_embeddings_is_of_embeddings(door: TestClient, linear: EmbeddingVersion) -> None:
    listed = door.get("/v1/embeddings?ref=latest&files=true").json()["embeddings"]
    assert linear.task not in [embedding["task"] for embedding in listed]
    assert "other" in [embedding["task"] for embedding in listed]
    assert all(len(embedding["z"]) == 16 for embedding in listed)
