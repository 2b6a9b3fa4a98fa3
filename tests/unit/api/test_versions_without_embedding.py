"""Versions of other methods over HTTP: their file, their document, and the list of embeddings that they are not in."""

from __future__ import annotations

import hashlib

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from support.other_methods import add_of_method

from onboard.bases import Base
from onboard.domain.methods import LINEAR
from onboard.domain.task import EmbeddingVersion
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.storage.weights import unpack_weights, weights_digest

_IS_MOOD = EmbeddingVersionRow.task == "mood"


@pytest.fixture
def linear(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    """mood@v1, a readout alone; mood-embedded@v1 is an embedding."""
    return add_of_method(tiny_services, tiny_base, "mood", LINEAR)


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
    assert "mood-embedded" in [embedding["task"] for embedding in listed]
    assert all(len(embedding["z"]) == 16 for embedding in listed)


def test_a_provisional_version_says_so_until_it_is_confirmed(
    door: TestClient, linear: EmbeddingVersion, tiny_services: Services
) -> None:
    def mark(*, provisional: bool) -> None:
        with tiny_services.database.write() as session:
            session.execute(update(EmbeddingVersionRow).values(provisional=provisional).where(_IS_MOOD))

    mark(provisional=True)
    first = door.get("/v1/tasks/mood/embeddings/v1")
    assert first.json()["provisional"]
    assert (first.headers["etag"], first.headers["cache-control"]) == (
        f'"{linear.artifact}-provisional"', "private, no-cache",
    )  # fmt: skip
    has = {"If-None-Match": first.headers["etag"]}
    assert door.get("/v1/tasks/mood/embeddings/v1", headers=has).status_code == 304
    assert door.get("/v1/tasks/mood/versions").json()["versions"][0]["provisional"]
    mark(provisional=False)
    confirmed = door.get("/v1/tasks/mood/embeddings/v1", headers=has)
    assert (confirmed.status_code, confirmed.json()["provisional"]) == (200, False)
    assert confirmed.headers["etag"] == f'"{linear.artifact}"'
    assert "immutable" in confirmed.headers["cache-control"]
    assert not door.get("/v1/tasks/mood/versions").json()["versions"][0]["provisional"]
