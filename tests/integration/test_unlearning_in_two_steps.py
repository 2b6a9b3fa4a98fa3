"""`onboard tasks delete --unlearn` of versions that are learned in two steps, the first of them a readout alone."""

from __future__ import annotations

from typing import Any

import pytest
from support.real_jobs import CrashError, Desk, crash_after, opinions
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.hypernetworks.prior.refit import refit
from onboard.registry.aliases import AliasRepository
from onboard.versions.delete import delete_task

pytestmark = pytest.mark.usefixtures("in_two_steps")


def rows_of(task: str) -> list[dict[str, Any]]:
    """Rows that no other task has."""
    return [{**row, "text": f"{row['text']} {task}"} for row in opinions(24)]


def taught(desk: Desk, base: Base, *tasks: str) -> None:
    for task in tasks:
        desk.learn(rows_of(task), task, method="linear")
    refit(desk.services, base, "a test")


def run_all(desk: Desk) -> None:
    while any(job.state is JobState.QUEUED for job in desk.jobs()):
        desk.run(desk.claim())


def point(desk: Desk, alias: str, version: int, task: str = "child") -> None:
    with desk.services.database.write() as session:
        AliasRepository(session).move(task, alias, version)


def aliases(desk: Desk, task: str = "child") -> dict[str, int]:
    with desk.services.database.read() as session:
        return AliasRepository(session).list(task)


def versions_of(desk: Desk, task: str = "child") -> list[tuple[int, str, bool]]:
    return [(version.version, version.method, version.provisional) for version in desk.versions(task)]


def unlearned(desk: Desk) -> dict[str, Any]:
    document: dict[str, Any] = delete_task(desk.services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    return document


def test_a_readout_that_was_asked_for_alone_is_replaced_with_all_its_aliases(
    desk: Desk, without: Desk, tiny_base: Base
) -> None:
    taught(desk, tiny_base, "first", "gone")
    desk.learn(rows_of("child"), "child", fast=True)
    assert desk.version("child").prior_version == 1
    point(desk, "production", 1)
    assert [rebuilt["versions"] for rebuilt in unlearned(desk)["rebuilding"]] == [["child@v1"]]
    run_all(desk)
    assert versions_of(desk) == [(2, "linear", False)]
    assert aliases(desk) == {"latest": 2, "production": 2}
    with refused("unknown-task-to-delete"):
        delete_task(desk.services, "gone", unlearning=True)  # nothing descends from it any more

    taught(without, tiny_base, "first")
    without.learn(rows_of("child"), "child", fast=True)
    assert desk.version("child").embedding_digest == without.version("child").embedding_digest


@pytest.mark.parametrize("better", [True, False])
def test_a_default_job_ends_with_the_version_of_a_service_without_the_task(
    desk: Desk, without: Desk, tiny_base: Base, rows_say: Any, better: bool
) -> None:
    rows_say(better=better)
    taught(desk, tiny_base, "first", "gone")
    desk.learn(rows_of("child"), "child")
    before = desk.version("child").version
    point(desk, "production", before)
    (rebuilding,) = unlearned(desk)["rebuilding"]
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after("probe"))
    assert desk.version("child").version == before  # the readout alone is not published on the way
    desk.lose()
    desk.run(desk.claim())
    assert aliases(desk) == {"latest": before + 1, "production": before + 1}
    (only,) = desk.versions("child")
    result = desk.job(rebuilding["job"]).result or {}
    assert (result["version"], result["provisional"]["version"]) == (before + 1, None)
    assert result["provisional"]["confirmed"] is not better
    assert result["latest"]["moved"]

    taught(without, tiny_base, "first")
    without.learn(rows_of("child"), "child")
    never = without.version("child")
    facts = ("method", "embedding_digest", "provisional", "metrics", "temperature", "weak", "words", "out_of_fold")
    assert {name: getattr(only, name) for name in facts} == {name: getattr(never, name) for name in facts}


def test_a_provisional_version_that_was_not_confirmed_is_rebuilt_as_a_readout(
    desk: Desk, tiny_base: Base, rows_say: Any
) -> None:
    rows_say(better=True)
    taught(desk, tiny_base, "first", "gone")
    desk.learn(rows_of("child"), "child")
    point(desk, "production", 1)
    assert versions_of(desk) == [(1, "linear", True), (2, "hyperformer++", False)]
    unlearned(desk)
    run_all(desk)
    assert aliases(desk) == {"latest": 4, "production": 3}
    assert versions_of(desk) == [(3, "linear", False), (4, "hyperformer++", False)]


def test_the_result_says_whether_latest_moved_whatever_the_comparison_said(desk: Desk, tiny_base: Base) -> None:
    taught(desk, tiny_base, "first", "gone")
    desk.learn(rows_of("child"), "child", fast=True)
    point(desk, "production", 1)
    desk.learn(rows_of("child"), "child", readout="never")  # without a prior
    point(desk, "latest", 2)
    (rebuilding,) = unlearned(desk)["rebuilding"]
    run_all(desk)
    result = desk.job(rebuilding["job"]).result or {}
    assert aliases(desk) == {"latest": 2, "production": 3}
    assert (result["version"], result["latest"]["moved"]) == (3, False)
