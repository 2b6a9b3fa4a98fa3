"""Aliases moved by several at once, by the use case and over HTTP, on SQLite and PostgreSQL; what `latest` refuses."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.callers import bearer
from support.opposed import learn_rivals
from support.published import add_version, embedding_of
from support.real_jobs import Desk
from support.refusals import refused as error_of

from onboard import bases
from onboard.api.app import create_app
from onboard.bases import Base
from onboard.domain.names import LATEST
from onboard.errors import PreconditionFailedError
from onboard.hypernetworks.register import register_base
from onboard.operations import access
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from onboard.versions.compare import compare
from onboard.versions.promote import promote, rollback

AT_ONCE = 8
ADDRESS = "/v1/tasks/mood/aliases/production"


@pytest.fixture
def service(tiny_services: Services, tiny_base: Base, database: Database) -> Services:
    """On either database."""
    services = replace(tiny_services, database=database)
    register_base(services, tiny_base)
    return services


@pytest.fixture
def versions(service: Services, tiny_base: Base) -> Services:
    """mood@v1 to mood@v3; nothing was held out."""
    for seed in range(3):
        add_version(service, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(seed))
    return service


@pytest.fixture
def rivals(service: Services, tiny_base: Base, tmp_path: Path, few_steps: None, trained_as: Any) -> Services:
    """mood@v1 answers all 40 test rows right, mood@v2 at most 22 of them."""
    learn_rivals(Desk(service, tmp_path), tiny_base, trained_as)
    return service


@pytest.fixture
def door(versions: Services) -> Iterator[TestClient]:
    """Somebody with a token that may read and promote."""
    headers = bearer(versions.database, "read", "promote", name="releases")
    given = {"database_url": versions.database.url, "broker_url": "redis://127.0.0.1:1/0"}
    app = create_app(versions.settings.model_copy(update=given))
    with TestClient(app, "http://localhost", headers=headers) as client:
        yield client


def at_once(what: Callable[[int], object]) -> Counter[object]:
    """What came of it when several did it at the same moment."""
    ready, outcomes = threading.Barrier(AT_ONCE), []

    def one(number: int) -> None:
        ready.wait()
        outcomes.append(what(number))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(outcomes)


def told(services: Services, alias: str) -> list[tuple[int | None, int]]:
    """Where the alias came from and went to, newest first."""
    with services.database.read() as session:
        return [(move.previous, move.version) for move in AliasRepository(session).history("mood", alias)]


def test_of_many_who_move_an_alias_from_the_same_version_one_wins(versions: Services) -> None:
    def move(number: int) -> str:
        try:
            promote(versions, f"mood@v{2 + number % 2}", "production", expected=1)
        except PreconditionFailedError:
            return "too late"
        return "won"

    promote(versions, "mood@v1", "production")
    assert at_once(move) == {"won": 1, "too late": AT_ONCE - 1}
    assert [previous for previous, _ in told(versions, "production")] == [1, None]


def test_of_many_who_make_an_alias_one_wins(versions: Services) -> None:
    def make(number: int) -> str:
        try:
            promote(versions, f"mood@v{1 + number % 3}", "canary", expected=0)
        except PreconditionFailedError:
            return "too late"
        return "won"

    assert at_once(make) == {"won": 1, "too late": AT_ONCE - 1}
    assert len(told(versions, "canary")) == 1


def test_of_a_promote_and_a_rollback_of_the_same_version_one_wins(versions: Services) -> None:
    promote(versions, "mood@v1", "production")
    promote(versions, "mood@v2", "production")

    def move(number: int) -> str:
        try:
            if number % 2:
                return f"to v{promote(versions, 'mood@v3', 'production', expected=2).version}"
            return f"to v{rollback(versions, 'mood', 'production', expected=2).version}"
        except PreconditionFailedError:
            return "too late"

    outcomes = at_once(move)
    assert outcomes["too late"] == AT_ONCE - 1
    assert told(versions, "production")[0] in ((2, 3), (2, 1))
    assert len(told(versions, "production")) == 3


def test_over_http_one_wins_and_the_others_are_told_to_look_again(door: TestClient, versions: Services) -> None:
    made = door.put(ADDRESS, json={"version": 1}, headers={"If-None-Match": "*"}).raise_for_status()
    seen = {"If-Match": made.headers["ETag"]}
    statuses = at_once(lambda number: door.put(ADDRESS, json={"version": 2 + number % 2}, headers=seen).status_code)
    assert statuses == {200: 1, 412: AT_ONCE - 1}
    assert len(told(versions, "production")) == 2
    refused = door.put(ADDRESS, json={"version": 1}, headers=seen)
    assert (refused.json()["code"], refused.json()["version"]) == (
        "precondition_failed",
        told(versions, "production")[0][1],
    )
    assert door.put(ADDRESS, json={"version": 1}).status_code == 428
    assert door.post(f"{ADDRESS}/rollback").status_code == 428
    back = door.post(f"{ADDRESS}/rollback", headers={"If-Match": door.get(ADDRESS).headers["ETag"]})
    assert back.json()["version"] == 1
    assert [move["actor"].split()[0] for move in door.get(ADDRESS).json()["history"]] == ["releases"] * 3


def test_latest_does_not_move_by_hand_to_what_is_significantly_worse_but_goes_back(rivals: Services) -> None:
    assert compare(rivals, "mood@v1", "mood@v2").worse
    for asked in ({}, {"expected": 1}, {"if_better": True}):
        with error_of("not-better-than-present"):
            promote(rivals, "mood@v2", LATEST, **asked)
    assert promote(rivals, "mood@v2", "canary").version == 2  # no promise is made for other names
    with rivals.database.write() as session:
        AliasRepository(session).move("mood", LATEST, 2)
    assert promote(rivals, "mood@v1", LATEST, if_better=True).version == 1
    assert rollback(rivals, "mood", LATEST).version == 2
    assert promote(rivals, "mood@v2", LATEST).version == 2  # it is that already
    assert promote(rivals, "mood@v2", LATEST, if_better=True).version == 2  # so a deployment may be run again


def test_latest_is_replaced_only_where_it_still_means_what_was_compared(
    rivals: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rivals.database.write() as session:
        AliasRepository(session).move("mood", LATEST, 2)
    from onboard.versions import promote as module

    def meanwhile(*given: Any) -> Any:
        comparison = compare(given[0], *(version.reference for version in given[1:3]))
        with rivals.database.write() as session:
            AliasRepository(session).move("mood", LATEST, 1)
        return comparison

    monkeypatch.setattr(module, "compare_versions", meanwhile)
    with pytest.raises(PreconditionFailedError):
        promote(rivals, "mood@v1", LATEST, if_better=True)


@pytest.mark.parametrize("what", ["dataset", "embedding"])
def test_without_the_stored_bytes_to_compare_by_latest_stays(rivals: Services, what: str) -> None:
    with rivals.database.read() as session:
        version = VersionRepository(session).resolve("mood@v2")
        snapshot = SnapshotRepository(session).get(version.dataset_digest)
    rivals.artifacts.delete(snapshot.artifact if what == "dataset" else version.artifact)
    for asked in ({}, {"if_better": True}):
        with error_of("artifact-not-in-store"):
            promote(rivals, "mood@v2", LATEST, **asked)
    assert told(rivals, LATEST) == [(None, 1)]


@pytest.mark.parametrize("present", [None, 2])
def test_what_was_expected_is_compared_before_the_versions_are(
    versions: Services, monkeypatch: pytest.MonkeyPatch, present: int | None
) -> None:
    if present:
        promote(versions, f"mood@v{present}", "production")
    moved = AliasRepository.move

    def meanwhile(self: AliasRepository, task: str, alias: str, version: int, **given: Any) -> Any:
        if present:
            moved(self, task, alias, 1)  # back to what was expected, which was never compared
        return moved(self, task, alias, version, **given)

    monkeypatch.setattr(AliasRepository, "move", meanwhile)
    with pytest.raises(PreconditionFailedError):
        promote(versions, "mood@v3", "production", if_better=True, expected=1)
    assert told(versions, "production") == ([(None, present)] if present else [])


def test_a_promote_that_changes_nothing_is_no_change(versions: Services) -> None:
    for _ in range(2):
        assert promote(versions, "mood@v1", "production").version == 1
    assert told(versions, "production") == [(None, 1)]
    changes = access.changes(versions.database, 10)["changes"]
    assert [change["action"] for change in changes].count("alias.promote") == 1


def test_over_http_latest_is_kept_from_what_is_worse(rivals: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = bearer(rivals.database, "read", "promote", name="releases")
    given = {"database_url": rivals.database.url, "broker_url": "redis://127.0.0.1:1/0"}
    app = create_app(rivals.settings.model_copy(update=given))
    with TestClient(app, "http://localhost", headers=headers) as door:
        refused = door.put("/v1/tasks/mood/aliases/latest", json={"version": 2}, headers={"If-Match": '"v1"'})
        assert (refused.status_code, refused.json()["code"]) == (409, "not_better")
        assert refused.json()["comparison"]["comparison"]["verdict"] == "worse"
        assert door.get("/v1/tasks/mood/aliases/latest").json()["version"] == 1
        monkeypatch.setattr(bases, "folder_digest", lambda folder: 1 / 0)  # the base was read for the first one
        again = door.put("/v1/tasks/mood/aliases/latest", json={"version": 2}, headers={"If-Match": '"v1"'})
        assert (again.status_code, again.json()["code"]) == (409, "not_better")
