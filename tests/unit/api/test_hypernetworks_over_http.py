"""Later hypernetworks over HTTP: what is pinned to them, going back, and weights that were collected."""

from __future__ import annotations

from fastapi.testclient import TestClient
from sqlalchemy import update
from support.callers import bearer
from support.published import add_version
from support.tuned_heads import head_of, tuned_head

from onboard.bases import Base
from onboard.errors import type_uri
from onboard.registry.services import Services
from onboard.registry.tables import HypernetworkRow

LABELS = ("sad", "glad"), ("bad", "good")


def test_a_version_of_a_task_says_what_it_is_served_with_and_what_it_was_learned_under(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base)
    pins = {"kind": "carried", "hypernetwork_version": 2, "learned_under": 1}
    add_version(tiny_services, tiny_base, "mood", *LABELS, **pins)
    document = door.get("/v1/tasks/mood/embeddings/latest").json()
    assert {name: document[name] for name in pins} == pins
    shown = door.get("/v1/hypernetworks/1").json()
    assert (shown["pinned"], shown["pinned_by"]["learned"]) == (len(tiny_base.sources), 1)
    assert door.get("/v1/hypernetworks/2").json()["pinned_by"]["in_use"] == ["mood@v1"]


def test_going_back_needs_the_scope_ops(door: TestClient, tiny_services: Services, tiny_base: Base) -> None:
    tuned_head(tiny_services, tiny_base)
    headers = bearer(tiny_services.database, "read", "submit", "promote", "admin")
    refused = door.post("/v1/hypernetworks/1/revert", headers=headers)
    assert (refused.status_code, head_of(tiny_services, tiny_base)) == (403, 2)
    done = door.post("/v1/hypernetworks/1/revert", params={"base": tiny_base.digest})
    assert (done.status_code, done.json()["version"], done.json()["previous"]) == (200, 1, 2)
    assert head_of(tiny_services, tiny_base) == 1
    assert [head["head"] for head in door.get("/v1/hypernetworks").json()["hypernetworks"]] == [True, False]


def test_a_collected_version_is_listed_and_can_neither_be_had_nor_be_the_head(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    for seed in range(2):
        tuned_head(tiny_services, tiny_base, seed=seed)
    with tiny_services.database.write() as session:
        statement = update(HypernetworkRow).where(HypernetworkRow.version == 2)
        session.execute(statement.values(artifact=None, collected_at=1.0))
    listed = door.get("/v1/hypernetworks").json()["hypernetworks"]
    assert [head["collected_at"] for head in listed] == [None, "1970-01-01T00:00:01.000Z", None]
    weights = door.get("/v1/hypernetworks/2.safetensors")
    assert (weights.status_code, weights.json()["type"]) == (404, type_uri("hypernetwork-collected"))
    refused = door.post("/v1/hypernetworks/2/revert")
    assert (refused.status_code, refused.json()["code"], head_of(tiny_services, tiny_base)) == (409, "conflict", 3)
    assert door.get("/v1/hypernetworks/3.safetensors").status_code == 200


def test_versions_of_several_hypernetworks_are_answered_in_one_request(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    add_version(tiny_services, tiny_base, "mood", *LABELS)
    tuned_head(tiny_services, tiny_base, 2.0)
    add_version(tiny_services, tiny_base, "mood", *LABELS, hypernetwork_version=2)
    inputs = [{"task": "mood", "ref": ref, "text": "good film"} for ref in ("v1", "v2", "v1")]
    first, second, again = door.post("/v1/predict", json={"inputs": inputs}).json()["predictions"]
    assert [prediction["version"] for prediction in (first, second, again)] == [1, 2, 1]
    assert abs(first["probability"] - again["probability"]) < 1e-5
    assert (first["label"], round(first["probability"], 3)) != (second["label"], round(second["probability"], 3))
