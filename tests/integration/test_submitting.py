"""What may be submitted, and where z starts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from published import add_version
from real_jobs import Desk, opinions

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.errors import InputError
from onboard.register import register_base
from onboard.services import Services
from onboard.testing import MemoryDoorbell


def test_what_is_refused_is_not_queued_and_rings_no_bell(desk: Desk) -> None:
    for wrong in (
        {"init": "nothing"}, {"init": "nothing@v3"}, {"init": "sst2@v9"}, {"init": "../x"}, {"method": "magic"},
        {"metric": "spearman"}, {"init": "fingerprint"},
    ):  # fmt: skip
        asked: dict[str, Any] = dict(wrong)
        with pytest.raises(InputError) as caught:
            desk.submit(opinions(20), **asked)
        assert caught.value.remedy
    assert desk.jobs() == []


def test_the_job_is_safe_when_the_broker_is_away(desk: Desk, tiny_services: Services) -> None:
    from onboard.data.read import read_dataset
    from onboard.domain.job import JobSpec
    from onboard.submit import Request, submit

    path = desk.folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in opinions(10)), encoding="utf-8")
    spec = JobSpec(task="mood", dataset="", base=tiny_services.settings.base)
    job, warning = submit(tiny_services, MemoryDoorbell(broken=True), Request(read_dataset(path), spec))
    assert warning
    assert desk.job(job.id).state is JobState.QUEUED
    bell = MemoryDoorbell()
    again, none = submit(tiny_services, bell, Request(read_dataset(path), spec, key="k", queue="other"))
    same, _ = submit(tiny_services, bell, Request(read_dataset(path), spec, key="k", queue="other"))
    assert (again.id, none) == (same.id, None)
    assert bell.rung == {"other": 2}
    assert len(desk.jobs()) == 2


@pytest.mark.parametrize(("asked", "chosen"), [
    ("random", "random"), ("mean", "mean"), ("topics-2", "topics-2"), ("sst2", "sst2@v1"), ("sst2@v1", "sst2@v1"),
    ("mood", "mood@v1"), ("mood@v1", "mood@v1"),
])  # fmt: skip
def test_a_named_init_is_taken_and_its_overlap_is_told(desk: Desk, asked: str, chosen: str) -> None:
    if asked.startswith("mood"):
        desk.learn(opinions(12), "mood")
    result = desk.learn(opinions(20), "new", init=asked)
    assert result["init"]["chosen"] == chosen
    assert result["init"]["reason"] == "asked for"
    assert [candidate["embedding"] for candidate in result["init"]["candidates"]] == [chosen]
    assert result["init"]["overlap"] == (12 if asked.startswith("mood") else 0)
    assert desk.version("new").parent == chosen


def test_an_init_of_another_base_is_refused(desk: Desk, tiny_services: Services, other_base: Base) -> None:
    register_base(tiny_services, other_base)
    add_version(tiny_services, other_base, "foreign", ("a", "b"), ("good", "bad"))
    with pytest.raises(InputError, match="another base"):
        desk.submit(opinions(20), init="foreign")


def test_the_sources_of_a_second_base_in_one_home_are_candidates_too(
    desk: Desk, tiny_services: Services, other_base: Base
) -> None:
    desk.learn(opinions(20), "first")
    result = desk.learn_on(other_base, opinions(20), "second")
    names = {candidate["embedding"] for candidate in result["init"]["candidates"]}
    assert names == {"sst2@v2", "stsb@v2", "topics-2", "mean", "random"}
    assert desk.version("second").base_digest == other_base.digest


def started_from(result: dict[str, Any]) -> set[str]:
    """What the probe measured."""
    return {candidate["embedding"] for candidate in result["init"]["candidates"]}


def test_where_a_base_has_fingerprints_the_nearest_anchors_are_measured_and_any_other_can_be_asked_for(
    desk: Desk, fingerprinted_base: Base
) -> None:
    measured = started_from(desk.learn_on(fingerprinted_base, opinions(20), "first"))
    anchors = {anchor.name for anchor in fingerprinted_base.anchors}
    assert len(measured & anchors) == 12
    assert {"fingerprint", "random", "mean"} < measured
    assert desk.version("first").base_digest == fingerprinted_base.digest
    for asked in ("fingerprint", min(anchors - measured)):
        result = desk.learn_on(fingerprinted_base, opinions(20), f"from-{asked}", init=asked)
        assert started_from(result) == {asked}
        assert desk.version(f"from-{asked}").parent == asked
