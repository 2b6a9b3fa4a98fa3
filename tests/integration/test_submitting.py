"""What may be submitted, and where z starts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from support.published import add_version, embedding_of
from support.real_jobs import Desk, opinions, write_rows
from support.refusals import refused

from onboard.bases import Base
from onboard.bases.fingerprints import pack_fingerprint, unpack_fingerprint
from onboard.domain.init import INIT_VERSION, Init
from onboard.domain.job import JobState
from onboard.domain.submission import Submission
from onboard.errors import InputError
from onboard.hypernetworks.register import register_base
from onboard.jobs.submission import prepare
from onboard.jobs.submit import submit
from onboard.pipeline import candidates
from onboard.pipeline.candidates import collect_candidates, named_candidate
from onboard.probe.candidates import Candidate
from onboard.probe.passes import CANDIDATES
from onboard.probe.prefilter import prefilter
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from onboard.storage.embedding import unpack_embedding
from onboard.testing import MemoryDoorbell
from onboard.versions.trained_rows import TrainedRows

LABELS = ("a", "b"), ("good", "bad")


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
    from onboard.jobs.submit import JobRequest, submit

    path = desk.folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in opinions(10)), encoding="utf-8")
    spec = JobSpec(task="mood", dataset="", base=tiny_services.settings.base)
    job, warning = submit(tiny_services, MemoryDoorbell(broken=True), JobRequest(read_dataset(path), spec))
    assert warning
    assert desk.job(job.id).state is JobState.QUEUED
    bell = MemoryDoorbell()
    again, unserved = submit(tiny_services, bell, JobRequest(read_dataset(path), spec, key="k", queue="other"))
    same, _ = submit(tiny_services, bell, JobRequest(read_dataset(path), spec, key="k", queue="other"))
    assert again.id == same.id
    assert (unserved or "").startswith("No worker has ever served the queue 'other' yet")
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


def test_a_job_starts_from_the_version_that_its_init_named_when_it_was_submitted(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    register_base(tiny_services, tiny_base)
    for number in (1, 2):
        add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(number))
    move_latest(tiny_services, 1)
    jobs = [desk.submit(opinions(20), task, init="mood", key=task) for task in ("pinned", "from-before")]
    assert [job.spec.options[INIT_VERSION] for job in jobs] == ["mood@v1", "mood@v1"]
    with tiny_services.database.write() as session:  # earlier releases stored the text alone
        row = session.scalars(select(JobRow).where(JobRow.id == jobs[1].id)).one()
        row.spec = {**row.spec, "options": {k: v for k, v in row.spec["options"].items() if k != INIT_VERSION}}
    move_latest(tiny_services, 2)
    assert desk.submit(opinions(20), "pinned", init="mood", key="pinned").id == jobs[0].id
    chosen = {job.spec.task: (job.result or {})["init"]["chosen"] for job in (desk.run(desk.claim()) for _ in jobs)}
    assert chosen == {"pinned": "mood@v1", "from-before": "mood@v2"}
    assert {desk.version(task).parent for task in chosen} == set(chosen.values())


def test_only_the_version_of_a_task_is_pinned(desk: Desk) -> None:
    for init in ("auto", "random", "mean", "topics-2"):
        assert INIT_VERSION not in desk.submit(opinions(20), "other", init=init).spec.options
    assert INIT_VERSION not in desk.submit(opinions(20), "fast", init="auto", fast=True).spec.options
    assert desk.submit(opinions(20), "other", init="sst2").spec.options[INIT_VERSION] == "sst2@v1"


def move_latest(services: Services, number: int) -> None:
    with services.database.write() as session:
        AliasRepository(session).move("mood", "latest", number)


def test_an_init_of_another_base_is_refused(desk: Desk, tiny_services: Services, other_base: Base) -> None:
    register_base(tiny_services, other_base)
    add_version(tiny_services, other_base, "foreign", ("a", "b"), ("good", "bad"))
    with refused("init-of-other-base"):
        desk.submit(opinions(20), init="foreign")


def test_the_sources_of_a_second_base_in_one_home_are_candidates_too(
    desk: Desk, tiny_services: Services, other_base: Base
) -> None:
    desk.learn(opinions(20), "first")
    result = desk.learn_on(other_base, opinions(20), "second")
    names = {candidate["embedding"] for candidate in result["init"]["candidates"]}
    assert names - {"mixture"} == {"sst2@v2", "stsb@v2", "topics-2", "mean", "random"}
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


def test_a_version_keeps_the_fingerprint_of_its_data_and_the_next_task_is_compared_with_it(
    desk: Desk, tiny_services: Services, fingerprinted_base: Base
) -> None:
    result = desk.learn_on(fingerprinted_base, opinions(20), "first")
    packed = desk.version("first").fingerprint
    assert packed is not None
    assert unpack_fingerprint(packed).shape == (16,)
    again = desk.learn_on(fingerprinted_base, opinions(20), "again")
    np.testing.assert_allclose(
        unpack_fingerprint(desk.version("again").fingerprint or ""), unpack_fingerprint(packed), atol=1e-5
    )
    assert result["init"]["strategy"] == "race"
    assert again["init"]["prefilter"]["considered"] == result["init"]["prefilter"]["considered"] + 1


def test_of_many_versions_only_what_looks_like_the_new_task_and_some_others_are_read(
    desk: Desk, tiny_services: Services, fingerprinted_base: Base
) -> None:
    desk.learn_on(fingerprinted_base, opinions(20), "first")
    like = unpack_fingerprint(desk.version("first").fingerprint or "")
    unlike = np.random.default_rng(0).standard_normal((60, len(like))).astype(np.float32)
    unlike -= np.outer(unlike @ like, like) / (like @ like)
    for number, fingerprint in enumerate(unlike):
        packed = pack_fingerprint(fingerprint)
        add_version(
            tiny_services, fingerprinted_base, f"other{number}", ("a", "b"), ("good", "bad"), fingerprint=packed
        )
    collected = collect_candidates(tiny_services, fingerprinted_base, 0, like)
    names = [candidate.embedding for candidate in collected.candidates]
    assert "first@v1" in names
    assert collected.kept == 32 + 8 + 12
    assert len(collected.candidates) == CANDIDATES  # as the time estimate and the time left count them
    assert collected.considered == len(unlike) + 1 + len(fingerprinted_base.sources) + len(fingerprinted_base.anchors)


def test_versions_from_before_there_were_fingerprints_are_measured_however_many_others_there_are(
    tiny_services: Services, fingerprinted_base: Base
) -> None:
    register_base(tiny_services, fingerprinted_base)
    rng = np.random.default_rng(0)
    for number in range(50):
        packed = pack_fingerprint(rng.standard_normal(16))
        add_version(tiny_services, fingerprinted_base, f"new{number}", *LABELS, fingerprint=packed)
    add_version(tiny_services, fingerprinted_base, "old", *LABELS)
    like = rng.standard_normal(16).astype(np.float32)
    collected = collect_candidates(tiny_services, fingerprinted_base, 0, like)
    assert "old@v1" in [candidate.embedding for candidate in collected.candidates]
    assert collected.kept == 32 + 8 + 1 + 12


def test_a_base_without_fingerprints_prefilters_by_those_of_the_versions_and_always_measures_what_has_none(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    assert "fingerprint" not in started_from(desk.learn(opinions(20), "first"))
    like = unpack_fingerprint(desk.version("first").fingerprint or "")
    assert like.shape == (64,)
    unlike = np.random.default_rng(0).standard_normal((60, 64)).astype(np.float32) * (np.abs(like) + 1)
    for number, fingerprint in enumerate(unlike):
        add_version(tiny_services, tiny_base, f"other{number}", *LABELS, fingerprint=pack_fingerprint(fingerprint))
    add_version(tiny_services, tiny_base, "old", *LABELS)
    result = desk.learn(opinions(20, start=40), "again")
    measured = started_from(result) - {"mixture", "random", "mean"}
    always = {"old@v1", "topics-2", "sst2@v1", "stsb@v1"}
    assert {"first@v1"} | always < measured
    assert len(measured) == 32 + 8 + len(always)
    assert result["init"]["prefilter"] == {"considered": 60 + 1 + len(always), "kept": len(measured)}
    with refused("unknown-init-embedding", init="fingerprint"):
        named_candidate(tiny_services, tiny_base, 0, Init.parse("fingerprint"), like)


def test_on_a_base_without_fingerprints_the_versions_give_the_scale(tiny_services: Services, tiny_base: Base) -> None:
    register_base(tiny_services, tiny_base)
    scale = np.array([1000.0, *[0.01] * 63])
    raw = (5000.0 + np.random.default_rng(0).standard_normal((60, 64)) * scale).astype(np.float32)
    for number, fingerprint in enumerate(raw):
        add_version(tiny_services, tiny_base, f"task{number}", *LABELS, fingerprint=pack_fingerprint(fingerprint))
    collected = collect_candidates(tiny_services, tiny_base, 0, raw[17])
    names = {candidate.embedding for candidate in collected.candidates if candidate.embedding.startswith("task")}
    on_one_scale, as_they_are = (prefilter(raw[17], list(raw), scaled=scaled) for scaled in (False, True))
    assert names == {f"task{number}@v1" for number in on_one_scale}
    assert on_one_scale != as_they_are


def test_an_init_that_is_named_reads_no_other_embedding(
    tiny_services: Services, fingerprinted_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_base(tiny_services, fingerprinted_base)
    for number in range(3):
        add_version(tiny_services, fingerprinted_base, f"task{number}", *LABELS, z=embedding_of(number))
    read: list[np.ndarray] = []
    unpack = candidates.unpack_embedding
    monkeypatch.setattr(candidates, "unpack_embedding", lambda content: read.append(z := unpack(content)) or z)

    def named(init: str) -> Candidate:
        read.clear()
        return named_candidate(tiny_services, fingerprinted_base, 0, Init.parse(init), embedding_of(9))

    assert named("task1").embedding == "task1@v1"
    assert [z.tolist() for z in read] == [embedding_of(1).tolist()]
    for init in ("random", "fingerprint", fingerprinted_base.anchors[0].name):
        assert named(init).embedding == init
        assert not read
    mean = named("mean").z  # the only one that is made of all
    anchors = [fingerprinted_base.embeddings[anchor.name] for anchor in fingerprinted_base.anchors]
    np.testing.assert_allclose(mean, np.mean([*read, *anchors], axis=0), atol=1e-6)
    assert len(read) == 3 + len(fingerprinted_base.sources)


def test_the_mean_holds_no_embedding_that_knows_a_row_of_the_task(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.learn(opinions(12), "first")
    desk.learn(opinions(12, start=40), "second")
    knows, fresh = (desk.version(task) for task in ("first", "second"))
    rows = TrainedRows(tiny_services, tiny_base).own(knows)[:1]
    names = [task.name for task in (*tiny_base.anchors, *tiny_base.sources)]
    shipped = [tiny_base.embeddings[name] for name in names]
    z = [unpack_embedding(tiny_services.read(version.artifact)) for version in (fresh, knows)]
    for known, learned in ((rows, z[:1]), (rows[:0], z)):
        expected = np.mean([*learned, *shipped], axis=0)
        of_all = collect_candidates(tiny_services, tiny_base, 0, rows=known).candidates
        for mean in (of_all[-1], named_candidate(tiny_services, tiny_base, 0, Init.parse("mean"), rows=known)):
            assert mean.embedding == "mean"
            np.testing.assert_allclose(mean.z, expected, atol=1e-6)


def test_a_mixture_knows_the_rows_of_all_that_it_is_made_of(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.learn(opinions(12), "first")
    desk.learn(opinions(12, start=40), "second")
    weights = {"first@v1": 0.5, "second@v1": 0.5}
    digest = desk.version("first").dataset_digest
    mixed = add_version(
        tiny_services, tiny_base, "mixed", *LABELS,
        parent="mixture", mixed_from=weights, dataset_digest=digest,
    )  # fmt: skip
    trained = TrainedRows(tiny_services, tiny_base)
    first, second = trained.of(desk.version("first")), trained.of(desk.version("second"))
    assert len(np.setdiff1d(second, first)) == 12
    np.testing.assert_array_equal(trained.of(mixed), np.union1d(first, second))


def test_exhaustively_no_candidate_leaves_early(desk: Desk, tiny_services: Services, tiny_base: Base) -> None:
    file = write_rows(desk.folder / "mood.jsonl", opinions(40))
    request = prepare(Submission(str(file), probe="exhaustive", tune_hypernetwork="never"), str(tiny_base.folder))
    submit(tiny_services, MemoryDoorbell(), request)
    result = desk.run(desk.claim()).result
    assert result is not None
    assert result["init"]["strategy"] == "exhaustive"
    assert {candidate["rows"] for candidate in result["init"]["candidates"]} == {40}
