"""Tasks, embeddings, aliases, lineage, hypernetworks and bases over HTTP."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import insert
from submitting import submit
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.contract.versions import CurrentEmbeddings
from onboard.domain.task import EmbeddingVersion
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.storage.artifacts import ArtifactStore
from onboard.storage.cache import Cache
from onboard.storage.embedding import unpack_embedding

LATEST = "/v1/tasks/mood/embeddings/latest"
PRODUCTION = "/v1/tasks/mood/aliases/production"


@pytest.fixture
def versions(tiny_services: Services, tiny_base: Base) -> list[EmbeddingVersion]:
    """mood@v1 and mood@v2."""
    return [
        add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(seed))
        for seed in (1, 2)
    ]


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_latest_is_asked_for_anew_and_a_version_is_kept_for_ever(
    door: TestClient, versions: list[EmbeddingVersion]
) -> None:
    latest = door.get(LATEST)
    assert latest.status_code == 200
    assert latest.json()["version"] == 2
    np.testing.assert_array_equal(np.array(latest.json()["z"], np.float32), embedding_of(2))
    assert latest.headers["etag"] == f'"{versions[1].artifact}"'
    assert "no-cache" in latest.headers["cache-control"]
    assert latest.headers["content-location"] == "/v1/tasks/mood/embeddings/v2"
    again = door.get(LATEST, headers={"If-None-Match": latest.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    fixed = door.get("/v1/tasks/mood/embeddings/v1")
    assert "immutable" in fixed.headers["cache-control"]
    assert fixed.headers["etag"] != latest.headers["etag"]
    assert door.get("/v1/tasks/mood/embeddings/v1", headers={"If-None-Match": '"other"'}).status_code == 200


def test_the_file_of_a_version_has_the_digest_that_its_etag_says(
    door: TestClient, versions: list[EmbeddingVersion]
) -> None:
    file = door.get(f"{LATEST}.safetensors")
    assert file.headers["etag"] == f'"sha256:{hashlib.sha256(file.content).hexdigest()}"'
    np.testing.assert_array_equal(unpack_embedding(file.content), embedding_of(2))
    headers = {"If-None-Match": file.headers["etag"]}
    assert door.get(f"{LATEST}.safetensors", headers=headers).status_code == 304


def stored_file(services: Services, version: EmbeddingVersion) -> Path:
    name = version.artifact.removeprefix("sha256:")
    return services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name


@pytest.mark.parametrize("gone", [False, True])
def test_bytes_that_are_damaged_or_gone_are_never_answered(
    door: TestClient, versions: list[EmbeddingVersion], tiny_services: Services, gone: bool
) -> None:
    path = stored_file(tiny_services, versions[1])
    content = path.read_bytes()
    if gone:
        path.unlink()
    else:
        path.write_bytes(content[:-1] + b"!")
    addresses = (LATEST, f"{LATEST}.safetensors", "/v1/embeddings")
    for address in addresses:
        answer = door.get(address)
        assert problem(answer) == (500, "damaged")
        assert "Retry-After" not in answer.headers  # coming again does not help
    path.write_bytes(content)
    assert [door.get(address).status_code for address in addresses] == [200, 200, 200]


def test_what_a_client_has_already_is_not_read_again(
    door: TestClient, versions: list[EmbeddingVersion], tiny_services: Services
) -> None:
    stored_file(tiny_services, versions[1]).unlink()
    headers = {"If-None-Match": f'"{versions[1].artifact}"'}
    for address in (LATEST, f"{LATEST}.safetensors"):
        assert door.get(address, headers=headers).status_code == 304


def test_a_promote_and_a_rollback_are_seen_by_the_next_reader(
    door: TestClient, versions: list[EmbeddingVersion]
) -> None:
    alias, seen = "/v1/tasks/mood/aliases/latest", {"If-None-Match": f'"{versions[1].artifact}"'}

    def read() -> list[tuple[int, str, int]]:
        document, file = door.get(LATEST), door.get(f"{LATEST}.safetensors")
        listed = {version["task"]: version["version"] for version in door.get("/v1/embeddings").json()["embeddings"]}
        assert document.headers["etag"] == file.headers["etag"]
        assert f"v{document.json()['version']}.safetensors" in file.headers["content-location"]
        return [(document.json()["version"], file.headers["etag"], listed["mood"])]

    first, second = (f'"{version.artifact}"' for version in versions)
    assert read() == [(2, second, 2)]
    door.put(alias, json={"version": 1}, headers={"If-Match": '"v2"'}).raise_for_status()
    assert read() == [(1, first, 1)]
    assert door.get(LATEST, headers=seen).status_code == 200
    door.post(f"{alias}/rollback", headers={"If-Match": '"v1"'}).raise_for_status()
    assert read() == [(2, second, 2)]
    assert door.get(LATEST, headers=seen).status_code == 304


def test_two_versions_of_the_same_bytes_are_two_answers(
    door: TestClient, versions: list[EmbeddingVersion], tiny_services: Services
) -> None:
    with tiny_services.database.write() as session:
        row = {**asdict(replace(versions[1], version=3)), "created_at": 3.0}
        session.execute(insert(EmbeddingVersionRow), [row])
    for number in (2, 3):
        assert door.get(f"/v1/tasks/mood/embeddings/v{number}").json()["version"] == number


@pytest.mark.parametrize(
    "address",
    [
        "/v1/tasks/nobody/embeddings/latest",
        "/v1/tasks/mood/embeddings/v9",
        "/v1/tasks/mood/embeddings/canary",
        "/v1/tasks/mood/aliases/canary",
        "/v1/tasks/nobody/lineage",
        "/v1/tasks/mood/compare?a=v1&b=v9",
        "/v1/hypernetworks/9",
        f"/v1/bases/sha256:{'0' * 64}",
    ],
)
def test_what_is_not_there_is_not_found(door: TestClient, versions: list[EmbeddingVersion], address: str) -> None:
    assert problem(door.get(address)) == (404, "not_found")


def test_all_embeddings_come_under_one_tag_that_changes_when_an_alias_moves(
    door: TestClient, versions: list[EmbeddingVersion], tiny_base: Base
) -> None:
    first = door.get("/v1/embeddings")
    embeddings = {version["task"]: version for version in first.json()["embeddings"]}
    assert set(embeddings) == {"mood", *(source.name for source in tiny_base.sources)}
    assert embeddings["mood"]["version"] == 2
    tag = first.headers["etag"]
    assert door.get("/v1/embeddings?ref=latest", headers={"If-None-Match": tag}).status_code == 304
    door.put("/v1/tasks/mood/aliases/latest", json={"version": 1}, headers={"If-Match": '"v2"'}).raise_for_status()
    changed = door.get("/v1/embeddings", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert {version["task"]: version["version"] for version in changed.json()["embeddings"]}["mood"] == 1
    assert door.get("/v1/embeddings?ref=canary").json()["embeddings"] == []


def test_an_alias_is_made_moved_and_rolled_back_and_its_history_is_kept(
    door: TestClient, versions: list[EmbeddingVersion]
) -> None:
    made = door.put(PRODUCTION, json={"version": 1}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["etag"]) == (200, '"v1"')
    assert problem(door.put(PRODUCTION, json={"version": 2}, headers={"If-None-Match": "*"})) == (
        412,
        "precondition_failed",
    )
    moved = door.put(PRODUCTION, json={"version": 2}, headers={"If-Match": made.headers["etag"]})
    assert (moved.json()["previous"], moved.json()["version"]) == (1, 2)
    back = door.post(f"{PRODUCTION}/rollback", headers={"If-Match": moved.headers["etag"]})
    assert back.json()["version"] == 1
    shown = door.get(PRODUCTION)
    assert shown.headers["etag"] == '"v1"'
    assert [move["version"] for move in shown.json()["history"]] == [1, 2, 1]
    assert all(move["actor"] for move in shown.json()["history"])


def test_a_change_has_to_say_what_it_changes(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    assert problem(door.put(PRODUCTION, json={"version": 1})) == (428, "precondition_required")
    assert problem(door.post(f"{PRODUCTION}/rollback")) == (428, "precondition_required")
    stale = {"If-Match": '"v1"'}
    assert problem(door.put("/v1/tasks/mood/aliases/latest", json={"version": 1}, headers=stale))[0] == 412
    assert problem(door.post("/v1/tasks/mood/aliases/latest/rollback", headers=stale))[0] == 412
    assert problem(door.put("/v1/tasks/mood/aliases/v3", json={"version": 1}, headers={"If-None-Match": "*"}))[0] == 422
    assert problem(door.put(PRODUCTION, json={"version": 9}, headers={"If-None-Match": "*"}))[0] == 404


def test_a_canary_is_started_changed_and_ended(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    made = door.put(PRODUCTION, json={"version": 1}, headers={"If-None-Match": "*"})
    started = door.put(PRODUCTION, json={"version": 2, "share": 0.1}, headers={"If-Match": made.headers["etag"]})
    assert (started.status_code, started.headers["etag"]) == (200, '"v1+v2:0.1"')
    assert [started.json()[name] for name in ("version", "canary", "share")] == [1, 2, 0.1]
    shown = door.get(PRODUCTION)
    assert shown.headers["etag"] == started.headers["etag"]
    assert [shown.json()[name] for name in ("version", "canary", "share")] == [1, 2, 0.1]
    stale = {"If-Match": made.headers["etag"]}
    assert problem(door.put(PRODUCTION, json={"version": 2}, headers=stale))[0] == 412
    changed = door.put(PRODUCTION, json={"version": 2, "share": 0.5}, headers={"If-Match": shown.headers["etag"]})
    assert changed.headers["etag"] == '"v1+v2:0.5"'
    ended = door.put(PRODUCTION, json={"version": 2, "share": 0}, headers={"If-Match": changed.headers["etag"]})
    assert (ended.headers["etag"], ended.json()["canary"]) == ('"v1"', None)


@pytest.mark.parametrize(
    ("version", "share", "code"), [(2, 1, 422), (2, 1.5, 422), (2, -0.1, 422), (2, "NaN", 422), (1, 0.1, 409)]
)
def test_a_share_that_makes_no_canary_is_refused(
    door: TestClient, versions: list[EmbeddingVersion], version: int, share: Any, code: int
) -> None:
    door.put(PRODUCTION, json={"version": 1}, headers={"If-None-Match": "*"}).raise_for_status()
    answer = door.put(PRODUCTION, json={"version": version, "share": share}, headers={"If-Match": '"v1"'})
    assert answer.status_code == code, answer.text
    assert door.get(PRODUCTION).json()["canary"] is None


def test_a_canary_needs_an_alias_to_share_with(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    answer = door.put(PRODUCTION, json={"version": 2, "share": 0.1}, headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "canary-without-alias"), answer.text


def test_of_two_promotes_at_once_one_wins(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    door.put(PRODUCTION, json={"version": 1}, headers={"If-None-Match": "*"}).raise_for_status()
    ready, statuses = threading.Barrier(2), []

    def promote() -> None:
        ready.wait()
        statuses.append(door.put(PRODUCTION, json={"version": 2}, headers={"If-Match": '"v1"'}).status_code)

    threads = [threading.Thread(target=promote) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 412]


def test_a_promote_only_if_better_is_refused_without_evidence(
    door: TestClient, versions: list[EmbeddingVersion]
) -> None:
    move = {"version": 1, "if_better": True}
    refused = door.put("/v1/tasks/mood/aliases/latest", json=move, headers={"If-Match": '"v2"'})
    assert problem(refused) == (409, "not_better")
    assert refused.json()["comparison"]["better"] is False
    assert door.get("/v1/tasks/mood/aliases/latest").json()["version"] == 2


def test_tasks_are_found_by_label_and_metric_page_by_page(
    door: TestClient, tiny_services: Services, tiny_base: Base, versions: list[EmbeddingVersion]
) -> None:
    good = {"validation": None, "test": {"accuracy": {"value": 0.9, "low": 0.8, "high": 1.0, "n": 9}}}
    add_version(tiny_services, tiny_base, "better", ("sad", "glad"), ("bad", "good"), metrics=good)

    def names(query: str) -> list[str]:
        return [task["task"] for task in door.get(f"/v1/tasks?{query}").raise_for_status().json()["tasks"]]

    assert names("label=glad") == ["better", "mood"]
    assert names("label=glad&metric=accuracy&at_least=0.9") == ["better"]
    assert names("label=glad&metric=accuracy&at_least=0.91") == []
    assert door.get("/v1/tasks?at_least=0.9").status_code == 422
    page = door.get("/v1/tasks?limit=1&label=glad").json()
    rest = door.get("/v1/tasks", params={"limit": 1, "label": "glad", "cursor": page["next"]}).json()
    assert [task["task"] for task in (*page["tasks"], *rest["tasks"])] == ["better", "mood"]
    assert rest["next"] is None
    assert len(names("")) == 2 + len(tiny_base.sources)


def test_versions_are_listed_newest_page_first(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    page = door.get("/v1/tasks/mood/versions?limit=1").json()
    assert ([version["version"] for version in page["versions"]], page["next"]) == ([2], "2")
    older = door.get("/v1/tasks/mood/versions?limit=1&cursor=2").json()
    assert ([version["version"] for version in older["versions"]], older["next"]) == ([1], None)


def test_a_deleted_task_is_gone(door: TestClient, app: FastAPI, versions: list[EmbeddingVersion]) -> None:
    assert door.get(LATEST).status_code == 200
    dry = door.delete("/v1/tasks/mood?dry_run=true").raise_for_status().json()
    assert (dry["deleted"], door.get(LATEST).status_code) == (False, 200)
    done = door.delete("/v1/tasks/mood").raise_for_status().json()
    assert (done["deleted"], done["removed"], done["unlearning"]) == (True, dry["removed"], None)
    assert (done["removed"]["versions"], done["removed"]["artifacts"]) == (2, 2)
    for address in (LATEST, "/v1/tasks/mood", "/v1/tasks/mood/embeddings/v1", "/v1/tasks/mood/aliases/latest"):
        assert problem(door.get(address)) == (404, "not_found")
    assert problem(door.delete("/v1/tasks/mood")) == (404, "not_found")
    assert app.state.started == []  # nobody has to work for it


def test_what_descends_is_named_and_rebuilt_where_that_is_asked(
    door: TestClient, tiny_services: Services, tiny_base: Base, versions: list[EmbeddingVersion], rows: bytes
) -> None:
    add_version(tiny_services, tiny_base, "copy", ("sad", "glad"), ("bad", "good"), parent="mood@v2")
    done = door.delete("/v1/tasks/mood?unlearn=true").raise_for_status().json()
    descends = {"version": "copy@v1", "why": "started from mood@v2", "aliases": ["latest"]}
    assert done["descendants"] == {"versions": [descends], "hypernetworks": []}
    assert [version["version"] for version in done["unlearning"]["cannot"]] == ["copy@v1"]
    refused = submit(door, rows, init="copy")
    assert problem(refused) == (409, "conflict")
    assert problem(door.delete("/v1/tasks/sst2?unlearn=true")) == (409, "conflict")


def test_lineage_is_answered_as_json_and_as_a_picture(door: TestClient, versions: list[EmbeddingVersion]) -> None:
    graph = door.get("/v1/tasks/mood/lineage").json()
    assert {node["id"] for node in graph["nodes"] if node["kind"] == "version"} == {"mood@v1", "mood@v2"}
    picture = door.get("/v1/tasks/mood/lineage.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "mood@v2" in picture.text


def test_hypernetworks_are_listed_and_their_file_has_the_digest_of_its_etag(door: TestClient, tiny_base: Base) -> None:
    listed = door.get("/v1/hypernetworks").json()
    assert (listed["base_digest"], [head["head"] for head in listed["hypernetworks"]]) == (tiny_base.digest, [True])
    file = door.get("/v1/hypernetworks/1.safetensors")
    assert file.headers["etag"] == f'"sha256:{hashlib.sha256(file.content).hexdigest()}"'
    assert door.get("/v1/hypernetworks/1").json()["artifact"] == file.headers["etag"].strip('"')


WEIGHTS = "/v1/hypernetworks/1.safetensors"


def test_weights_are_sent_piece_by_piece_where_the_store_is_a_folder(
    door: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = door.get(WEIGHTS)
    with monkeypatch.context() as patched:
        patched.setattr(ArtifactStore, "get", lambda *_: 1 / 0)  # it has all bytes in memory
        again = door.get(WEIGHTS)
        assert (again.status_code, again.content, again.headers["etag"]) == (200, first.content, first.headers["etag"])
        assert again.headers["vary"] == "Authorization, Cookie"
        assert door.get(WEIGHTS, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    monkeypatch.setattr(ArtifactStore, "file", lambda *_: None)  # an object store
    assert door.get(WEIGHTS).content == first.content


@pytest.mark.parametrize("gone", [False, True])
def test_weights_that_are_damaged_or_gone_are_never_answered(
    door: TestClient, tiny_services: Services, gone: bool
) -> None:
    name = door.get("/v1/hypernetworks/1").json()["artifact"].removeprefix("sha256:")
    path = tiny_services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    content = path.read_bytes()
    if gone:
        path.unlink()
    else:
        path.write_bytes(content[:-1] + b"!")
    assert problem(door.get(WEIGHTS)) == (500, "damaged")
    path.write_bytes(content)
    assert door.get(WEIGHTS).content == content


def test_the_document_of_all_embeddings_is_made_once_however_many_ask_at_once(
    app: FastAPI, door: TestClient, versions: list[EmbeddingVersion], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, made, asked = app.state.shelf, [], set()
    both_looked, find = threading.Barrier(2), Cache.find

    def looked_for(self: Cache[str, bytes], key: str) -> bytes | None:
        listed = find(self, key)
        if self is shelf._lists and threading.get_ident() not in asked:
            asked.add(threading.get_ident())
            both_looked.wait(20)  # neither has found it
        return listed

    monkeypatch.setattr(Cache, "find", looked_for)
    monkeypatch.setattr(
        "onboard.api.shelf.CurrentEmbeddings", lambda **given: (made.append(given), CurrentEmbeddings(**given))[1]
    )
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: shelf.everything("latest")[1](), range(2))
    assert first == second
    assert len(made) == 1


def test_a_base_is_fetched_file_by_file(door: TestClient, tiny_base: Base, tmp_path: Path) -> None:
    manifest = door.get(f"/v1/bases/{tiny_base.digest}").json()
    names = {path.relative_to(tiny_base.folder).as_posix() for path in tiny_base.folder.rglob("*") if path.is_file()}
    assert {file["name"] for file in manifest["files"]} == names
    for file in manifest["files"]:
        got = door.get(f"/v1/bases/{tiny_base.digest}/{file['name']}")
        assert "sha256:" + hashlib.sha256(got.content).hexdigest() == file["digest"]
        assert got.headers["etag"] == f'"{file["digest"]}"'


@pytest.mark.parametrize(
    "name",
    ["../base.json", "..%2fbase.json", "%2e%2e%2fbase.json", "..%252fbase.json", "%2fetc%2fpasswd", "backbone",
     "backbone%5cconfig.json", "base.json%00", "backbone%2f..%2fbase.json", "x" * 10_000],
)  # fmt: skip
def test_no_name_leads_out_of_the_list_of_a_bases_files(door: TestClient, tiny_base: Base, name: str) -> None:
    answer = door.get(f"/v1/bases/{tiny_base.digest}/{name}")
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"
