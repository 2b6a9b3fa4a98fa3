"""Two versions side by side, within bounds, and promoting only what is better."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.callers import bearer
from support.opposed import opposed
from support.real_jobs import Desk, opinions
from support.refusals import refused

from onboard import bases
from onboard.api import shelf
from onboard.api.app import create_app
from onboard.bases import Base
from onboard.errors import DamagedError, NotBetterError, UnavailableError
from onboard.registry.aliases import AliasRepository
from onboard.versions import compare as comparing
from onboard.versions.compare import compare
from onboard.versions.promote import promote, rollback


def test_a_comparison_tells_metrics_confusion_flipped_answers_and_the_paired_interval(rivals: Desk) -> None:
    comparison = compare(rivals.services, "mood@v1", "mood@v2").to_document().to_json()
    paired = comparison["comparison"]
    assert (comparison["better"], paired["verdict"], paired["rows"]) == (False, "worse", 40)
    assert paired["low"] <= paired["increase"] <= paired["high"]
    assert comparison["a"]["shared"]["accuracy"]["value"] == 1.0
    assert sum(map(sum, comparison["b"]["confusion"])) == 40
    assert sum(flip["count"] for flip in comparison["flipped"]) == paired["newly_wrong"] >= 18
    assert all(flip["a"] == flip["label"] != flip["b"] for flip in comparison["flipped"])
    turned = compare(rivals.services, "mood@v2", "mood@v1")
    assert turned.better
    assert turned.measured is not None
    assert turned.measured.comparison.newly_right == paired["newly_wrong"]


def test_rows_that_one_of_them_was_trained_on_are_no_witnesses(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, rows = opposed(tiny_base)
    trained_as(good)
    desk.learn(rows, init="random")
    trained_as(bad)
    desk.learn(opinions(30), test=rows, init="random")
    for pair in (("mood@v1", "mood@v2"), ("mood@v2", "mood@v1")):
        comparison = compare(desk.services, *pair)
        assert (comparison.measured, comparison.better) == (None, False)
        assert "neither" in comparison.reason


def test_what_cannot_be_compared_says_why(desk: Desk) -> None:
    desk.learn(opinions(20))
    desk.learn(opinions(20, ("pro", "contra")), new_labels=True)
    assert "labels" in compare(desk.services, "mood@v1", "mood@v2").reason
    assert "same version" in compare(desk.services, "mood@v2", "mood@v2").reason
    with refused("versions-of-two-tasks"):
        compare(desk.services, "mood", "sst2")


def test_only_what_is_better_is_promoted_if_that_is_asked_for(rivals: Desk) -> None:
    services = rivals.services
    with refused("not-better-than-present"):
        promote(services, "mood@v2", "production", if_better=True)
    promote(services, "mood@v2", "production")
    assert promote(services, "mood@v1", "production", if_better=True).version == 1
    with pytest.raises(NotBetterError) as caught:
        promote(services, "mood@v2", "production", if_better=True)
    assert caught.value.exit_code == 4
    assert caught.value.data["comparison"]["comparison"]["verdict"] == "worse"
    assert rollback(services, "mood", "production").version == 2
    with services.database.read() as session:
        moves = [move.version for move in AliasRepository(session).history("mood", "production")]
    assert moves == [2, 1, 2]


def test_a_new_alias_takes_what_is_latest_only_where_that_beats_the_commonest_answer(rivals: Desk) -> None:
    services = rivals.services
    assert promote(services, "mood@v1", "production", if_better=True).previous is None
    with services.database.write() as session:
        AliasRepository(session).move("mood", "latest", 2)
    with refused("not-better-than-majority") as caught:
        promote(services, "mood@v2", "canary", if_better=True)
    assert caught.value.data["comparison"] is None
    assert promote(services, "mood@v1", "canary", if_better=True).version == 1  # better than latest


def test_what_was_said_at_publication_is_what_a_comparison_says_later(rivals: Desk) -> None:
    (published,) = [job.result for job in rivals.jobs() if job.result and job.result["version"] == 2]
    comparison = compare(rivals.services, "mood@v1", "mood@v2").to_document().to_json()
    assert published["latest"]["comparison"] == comparison["comparison"]
    assert comparison["comparison"]["decided_by"] == "answers"
    for reason in (published["latest"]["reason"], comparison["reason"]):
        assert "significantly worse" in reason
        assert "by its answers on 40" in reason


@pytest.fixture
def reader(rivals: Desk) -> Iterator[TestClient]:
    headers = bearer(rivals.services.database, "read")
    with TestClient(create_app(rivals.services.settings), "http://localhost", headers=headers) as client:
        yield client


def test_of_many_shared_rows_the_same_few_are_drawn_every_time(rivals: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_ROWS", 25)
    first, second = (compare(rivals.services, "mood@v1", "mood@v2").to_document().to_json() for _ in range(2))
    assert first == second
    assert (first["comparison"]["rows"], first["rows_left_out"]) == (25, 15)
    assert "on 25 held-out rows that neither was trained on, drawn from 40:" in first["reason"]
    assert sum(map(sum, first["b"]["confusion"])) == 25


@pytest.mark.parametrize("limit", ["MOST_ROWS_READ", "MOST_BYTES_READ"])
def test_datasets_beyond_the_limits_are_not_read(rivals: Desk, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(comparing, limit, 60)
    comparison = compare(rivals.services, "mood@v1", "mood@v2")
    assert (comparison.measured, comparison.better, comparison.worse) == (None, False, False)
    assert "too large" in comparison.reason


def test_one_comparison_at_a_time_is_made_and_each_is_made_once(
    rivals: Desk, reader: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(services: Any, earlier: Any, later: Any, *more: Any) -> Any:
        made.append(f"{earlier.reference} {later.reference}")
        return comparing.compare_versions(services, earlier, later, *more)

    monkeypatch.setattr(shelf, "compare_versions", counted)
    address = "/v1/tasks/mood/compare"
    with comparing.TURN:
        busy = reader.get(address, params={"a": "v1", "b": "v2"})
        assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (503, "unavailable", "5")
        with pytest.raises(UnavailableError):
            compare(rivals.services, "mood@v1", "mood@v2")
    made.clear()
    first = reader.get(address, params={"a": "v1", "b": "v2"}).raise_for_status()
    assert first.json() == compare(rivals.services, "mood@v1", "mood@v2").to_document().to_json()
    assert reader.get(address, params={"a": "latest", "b": "v2"}).content == first.content
    assert made == ["mood@v1 mood@v2"]
    for _ in range(2):  # what could not be measured is looked at again
        assert reader.get(address, params={"a": "v1", "b": "v1"}).json()["comparison"] is None
    assert made[1:] == ["mood@v1 mood@v1"] * 2


def test_who_has_to_come_again_costs_no_reading_of_a_base(rivals: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "folder_digest", lambda folder: pytest.fail("The base is read."))
    with comparing.TURN, pytest.raises(UnavailableError):
        compare(rivals.services, "mood@v1", "mood@v2")


def test_a_service_reads_a_base_for_its_first_comparison_only(
    reader: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, read = "/v1/tasks/mood/compare", []
    reader.get(address, params={"a": "v1", "b": "v2"}).raise_for_status()
    digest_of_folder = bases.folder_digest
    monkeypatch.setattr(bases, "folder_digest", lambda folder: (read.append(folder), digest_of_folder(folder))[1])
    assert reader.get(address, params={"a": "v2", "b": "v1"}).raise_for_status().json()["better"]
    assert read == []


def test_a_comparison_that_fails_leaves_its_turn_to_the_next(rivals: Desk) -> None:
    artifact = rivals.version("mood@v2").artifact
    content = rivals.services.artifacts.get(artifact)
    rivals.services.artifacts.delete(artifact)
    rivals.services.artifacts._files.write(f"sha256/{artifact[7:9]}/{artifact[7:]}", b"other")
    with pytest.raises(DamagedError):
        compare(rivals.services, "mood@v1", "mood@v2")
    rivals.services.artifacts.put(content, "embedding")
    assert compare(rivals.services, "mood@v1", "mood@v2").worse
