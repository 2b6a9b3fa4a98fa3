"""Owners over HTTP: limits of tokens, refusals with what is left, and everything that counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from submitting import submit
from support.browsing import signed_in
from support.refusals import require
from support.registry_samples import claim_job

from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token, quota_of, set_quota
from onboard.pipeline import run as pipeline
from onboard.registry.services import Services
from onboard.testing import RecordedProgress

FREE = {"max_jobs": None, "max_bytes": None}


def limit(services: Services, **limits: int | None) -> None:
    """Limits of the door's token."""
    set_quota(services.database, "tester", limits)


def refused(answer: Any, type_: str, **facts: object) -> None:
    assert answer.status_code == 429, answer.text
    assert "retry-after" not in answer.headers  # it does not pass by itself
    require(answer.json(), type_, code="quota", owner="tester", **facts)


def form(**fields: str) -> dict[str, Any]:
    """A form without a file."""
    return {name: (None, value) for name, value in fields.items()}


def stored(services: Services) -> int:
    store = services.artifacts
    return sum(entry.size_bytes for shard in store.shards() for entry in store.in_shard(shard).values())


def test_a_submission_beyond_the_limit_is_refused_with_what_is_left(
    door: TestClient, tiny_services: Services, rows: bytes
) -> None:
    limit(tiny_services, max_jobs=1)
    assert submit(door, rows).status_code == 202
    refused(submit(door, rows), "quota-jobs", max_jobs=1, jobs=1, jobs_left=0, bytes_left=None)
    (job,) = door.get("/v1/jobs").json()["jobs"]
    assert door.post(f"/v1/jobs/{job['job']}/cancel").status_code == 200
    assert submit(door, rows).status_code == 202
    refused(door.post(f"/v1/jobs/{job['job']}/retry"), "quota-jobs", jobs=1)


def test_a_quota_of_zero_allows_nothing_and_no_upload_is_read(
    door: TestClient, tiny_services: Services, rows: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("The upload was read.")

    monkeypatch.setattr("onboard.api.receiving.received", read)
    for limits in ({"max_jobs": 0}, {"max_jobs": None, "max_bytes": 0}):
        limit(tiny_services, **limits)
        kind = "quota-jobs" if limits["max_jobs"] == 0 else "quota-bytes"
        refused(submit(door, rows), kind)
        refused(door.post("/v1/tasks/weather/rows", files={"dataset": ("more.jsonl", rows)}), kind)


def test_the_same_key_again_gives_the_job_although_no_place_is_left(
    door: TestClient, tiny_services: Services, rows: bytes
) -> None:
    limit(tiny_services, max_jobs=1)
    first = submit(door, rows, key="once")
    again = submit(door, rows, key="once")
    assert (again.status_code, again.json()["job"]) == (202, first.json()["job"])


def test_of_two_submissions_at_the_last_place_one_is_queued(
    door: TestClient, tiny_services: Services, rows: bytes
) -> None:
    limit(tiny_services, max_jobs=1)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: submit(door, rows), range(2)))
    assert sorted(answer.status_code for answer in answers) == [202, 429]
    assert len(door.get("/v1/jobs").json()["jobs"]) == 1


def test_every_way_to_store_rows_counts_their_bytes_and_leaves_nothing_where_they_do_not_fit(
    door: TestClient, tiny_services: Services, rows: bytes
) -> None:
    limit(tiny_services, max_bytes=10**9)
    used = [0]

    def grown() -> bool:
        use = quota_of(tiny_services.database, "tester")
        assert use is not None
        assert use.bytes is not None
        used.append(use.bytes)
        return used[-1] > used[-2]

    def ways() -> list[Any]:
        more = b'{"text": "a new day of hail", "label": "bad"}\n{"text": "dry and warm", "label": "good"}\n'
        return [
            lambda: submit(door, rows),
            lambda: door.post("/v1/jobs", files=form(task="tone", labels="praise,blame")),  # no row at all
            lambda: door.post(
                "/v1/jobs", files={"dataset": ("w.jsonl", rows), "unlabelled": ("t.jsonl", b'{"text": "which?"}\n')},
                data={"task": "pool"},
            ),
            lambda: door.post("/v1/tasks/weather/rows", files={"dataset": ("more.jsonl", more)}),
        ]  # fmt: skip

    for way in ways():
        answer = way()
        assert answer.status_code == 202, answer.text
        assert grown()
    limit(tiny_services, max_bytes=used[-1] + 1)
    before = stored(tiny_services)
    other = rows.replace(b"day", b"night")
    refused(submit(door, other), "quota-bytes", bytes=used[-1], bytes_left=1, max_bytes=used[-1] + 1)
    refused(door.post("/v1/jobs", files=form(task="tone", labels="yes,no,perhaps")), "quota-bytes")
    fewer = {"files": {"dataset": ("more.jsonl", other)}}
    refused(door.post("/v1/tasks/weather/rows", **fewer), "quota-bytes")
    assert stored(tiny_services) == before
    assert not grown()


def test_where_the_quota_fills_up_in_between_the_transaction_refuses(
    door: TestClient, tiny_services: Services, rows: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(tiny_services, max_jobs=1, max_bytes=10)
    monkeypatch.setattr("onboard.api.quotas.require_room", lambda *_, **__: None)
    monkeypatch.setattr("onboard.jobs.submit.require_room", lambda *_, **__: None)
    refused(submit(door, rows), "quota-bytes")
    assert door.get("/v1/jobs").json()["jobs"] == []


def test_limits_are_given_with_a_token_changed_lifted_and_shown(door: TestClient) -> None:
    made = door.post("/v1/tokens", json={"name": "shop", "scopes": ["submit"], "max_jobs": 20, "max_bytes": 10**9})
    assert (made.status_code, made.json()["max_jobs"], made.json()["max_bytes"]) == (201, 20, 10**9)
    changed = door.patch("/v1/quotas/shop", json={"max_jobs": 3})
    assert changed.json() == {
        "owner": "shop", "queued": 0, "running": 0, "max_jobs": 3, "jobs_left": 3, "bytes": 0, "max_bytes": 10**9,
        "bytes_left": 10**9,
    }  # fmt: skip
    assert door.get("/v1/queue").json()["owners"] == [changed.json()]
    shop = {"Authorization": f"Bearer {made.json()['secret']}"}
    assert door.get("/v1/me", headers=shop).json()["quota"] == changed.json()
    assert door.get("/v1/me").json()["quota"] is None
    listed = {token["name"]: token for token in door.get("/v1/tokens").json()["tokens"]}
    assert (listed["shop"]["max_jobs"], listed["tester"]["max_jobs"]) == (3, None)
    assert door.patch("/v1/quotas/shop", json=FREE).json()["jobs_left"] is None
    assert door.patch("/v1/quotas/shop", json={"max_jobs": 2}, headers=shop).status_code == 403


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        ({"max_jobs": -1}, "request-invalid"), ({"max_bytes": 2**60}, "request-invalid"),
        ({"max_jobs": 1.5}, "request-invalid"), ({"jobs": 1}, "request-invalid"), ({}, "quota-without-limits"),
    ],
)  # fmt: skip
def test_limits_that_are_none_are_refused_over_http(door: TestClient, body: dict[str, Any], type_: str) -> None:
    answer = door.patch("/v1/quotas/tester", json=body)
    assert answer.status_code == 422
    require(answer.json(), type_)


def test_limits_of_nobody_are_refused(door: TestClient) -> None:
    answer = door.patch("/v1/quotas/nobody", json={"max_jobs": 1})
    assert answer.status_code == 404
    require(answer.json(), "unknown-owner", owner="nobody")
    assert answer.json()["remedy"].endswith("GET /v1/tokens")


def test_pages_show_what_is_left_and_change_it(door: TestClient, tiny_services: Services, rows: bytes) -> None:
    create_token(tiny_services.database, "shop", ["submit"], limits={"max_jobs": 7})
    with signed_in(door.app, tiny_services.database, *ALL_SCOPES) as browser:  # type: ignore[arg-type]  # FastAPI
        browser.post("/tokens/limit", data={"owner": "tester", "max_jobs": "2", "max_bytes": "1.5GB"})
        assert submit(door, rows).status_code == 202
        overview = browser.get("/").text
        assert "1.5 GB" in overview
        assert "of 7" in overview
        page = browser.get("/submit").text
        assert "may have 1 more" in page
        assert "2 jobs" in browser.get("/tokens").text
        (owner,) = [one for one in browser.get("/overview.json").json()["owners"] if one["owner"] == "tester"]
        assert (owner["queued"], owner["jobs_left"]) == (1, 1)
        wrong = browser.post("/tokens/limit", data={"owner": "tester", "max_bytes": "plenty"})
        assert (wrong.status_code, "not a size" in wrong.text) == (422, True)
        browser.post("/tokens/limit", data={"owner": "tester", "max_jobs": "0", "max_bytes": "none"})
        sent = browser.post("/submit?key=k1", files={"dataset": ("weather.jsonl", rows)}, data={"task": "again"})
        assert (sent.status_code, "may have 0 queued and running jobs" in sent.text) == (429, True)
    with signed_in(door.app, tiny_services.database, "submit") as submitter:  # type: ignore[arg-type]  # FastAPI
        assert "may have 0 more" in submitter.get("/").text


def test_versions_and_renamed_labels_count_for_whoever_had_them_made(
    door: TestClient, tiny_services: Services, rows: bytes
) -> None:
    limit(tiny_services, max_bytes=10**9)

    def used() -> int:
        use = quota_of(tiny_services.database, "tester")
        assert use is not None
        return use.bytes or 0

    submit(door, rows, fast="true")
    dataset = used()
    pipeline.run(claim_job(tiny_services.database), tiny_services, RecordedProgress())
    learned = used()
    labels = "/v1/tasks/weather/labels"
    first = door.get(labels).json()["labels"][0]["label"]
    renaming = {"action": "rename", "labels": [first], "to": "wet"}
    assert door.post(labels, json=renaming).status_code == 200
    assert 0 < dataset < learned < used()
    limit(tiny_services, max_bytes=used())
    refused(door.post(labels, json={**renaming, "labels": ["wet"], "to": "damp"}), "quota-bytes", bytes_left=0)
    refused(door.post(labels, json={"action": "describe", "labels": ["wet"], "description": "rain"}), "quota-bytes")
    assert "damp" not in door.get(labels).text
    assert len(door.get("/v1/tasks/weather/versions").json()["versions"]) == 2
