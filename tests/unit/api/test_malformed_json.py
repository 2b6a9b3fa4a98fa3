"""A body that is not JSON is said to be that; the place is a character, not a field."""

from __future__ import annotations

from fastapi.testclient import TestClient
from support.callers import bearer

from onboard.registry.services import Services


def test_malformed_json_names_no_field(client: TestClient, tiny_services: Services) -> None:
    headers = {**bearer(tiny_services.database, "read"), "Content-Type": "application/json"}
    answer = client.post("/v1/predict", content='{"inputs": [{"task": "sst2", "text": "Fine."}', headers=headers)
    problem = answer.json()
    assert (answer.status_code, problem["field"]) == (422, "")
    assert problem["detail"].startswith("body: it is not JSON at character 45: Expecting")
    assert problem["errors"][0]["kind"] == "json_invalid"
