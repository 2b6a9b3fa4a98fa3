"""A task gets more rows, corrected labels or fewer rows: a new dataset made of the one that stands, and a version."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.real_jobs import Desk, opinions, write_rows
from support.refusals import refused

from onboard.data.snapshot import load
from onboard.domain.addition import Addition
from onboard.domain.dataset import Dataset
from onboard.domain.job import Job
from onboard.errors import ConflictError, DatasetError, NotFoundError
from onboard.jobs.add import Added, add
from onboard.registry.task_features import TaskFeatureRepository
from onboard.report.lineage import render_lineage
from onboard.testing import MemoryDoorbell
from onboard.versions.delete import delete_task
from onboard.versions.lineage import lineage
from onboard.versions.promote import promote
from onboard.versions.trained_rows import read_snapshot

NEW = opinions(6, start=900)


def adding(desk: Desk, rows: list[dict[str, Any]], task: str = "mood", **options: Any) -> Added:
    path = write_rows(desk.folder / "more.jsonl", rows)
    return add(desk.services, MemoryDoorbell(), task, Addition(path, **options))


def dataset_of(desk: Desk, job: Job) -> Dataset:
    return load(read_snapshot(desk.services, job.spec.dataset))


def opposite(label: str) -> str:
    return "no" if label == "yes" else "yes"


def test_more_rows_make_a_new_version_of_both(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    before = desk.version("mood")
    added = adding(desk, NEW)
    assert added.change.counts == {"added": 6}
    assert (added.change.version, added.change.dataset) == (1, before.dataset_digest)
    assert len(dataset_of(desk, added.job).train) == 30
    done = desk.run(desk.claim())
    after = desk.version("mood")
    assert (after.version, after.dataset_digest) == (2, added.job.spec.dataset)
    assert done.result is not None
    assert done.result["change"]["counts"] == {"added": 6}
    rows = load(read_snapshot(desk.services, added.change.rows))
    assert {row.text_a for row in rows.train} == {row["text"] for row in NEW}


def test_rows_that_are_there_or_contradict_are_left_out_and_told(desk: Desk) -> None:
    rows = opinions(24)
    desk.learn(rows, method="linear")
    odd = {**rows[0], "label": opposite(rows[0]["label"])}
    added = adding(desk, [odd, rows[1], {**rows[2], "text": rows[2]["text"].upper()}, *NEW])
    assert added.change.counts == {"added": 6, "repeated": 2, "contradicted": 1}
    warnings = {one["code"]: one for one in added.job.spec.options["dataset_report"]["warnings"]}
    assert warnings["repeated_rows"]["count"] == 2
    (example,) = warnings["contradicted_rows"]["examples"]
    assert (example["label"], example["present"]) == (odd["label"], rows[0]["label"])
    assert rows[0]["label"] in {row.label for row in dataset_of(desk, added.job).train if row.text_a == rows[0]["text"]}


def test_labels_are_corrected_where_that_is_asked(desk: Desk) -> None:
    rows = opinions(24)
    desk.learn(rows, method="linear")
    odd = {**rows[0], "label": opposite(rows[0]["label"])}
    added = adding(desk, [odd], replace=True)
    assert added.change.counts == {"replaced": 1}
    assert {row.label for row in dataset_of(desk, added.job).train if row.text_a == odd["text"]} == {odd["label"]}


def test_rows_are_removed_by_their_texts(desk: Desk) -> None:
    rows = opinions(24)
    desk.learn(rows, method="linear")
    added = adding(desk, [{"text": rows[0]["text"]}, {"text": "nobody said that"}], remove=True)
    assert added.change.counts == {"removed": 1, "missing": 1}
    assert len(dataset_of(desk, added.job).train) == 23
    with refused("label-without-rows-left"):
        adding(desk, [{"text": row["text"]} for row in rows if row["label"] == rows[0]["label"]], remove=True)


def test_new_labels_come_only_where_they_are_welcome(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    rows = [{"text": f"it is what it is {place}", "label": "neutral"} for place in range(4)]
    with refused("unknown-label") as caught:
        adding(desk, rows)
    assert "'neutral'" in caught.value.message
    assert "--new-labels" in caught.value.remedy
    adding(desk, rows, new_labels=True)
    desk.run(desk.claim())
    assert "neutral" in desk.version("mood@v2").labels


def test_two_additions_at_once_both_land_one_after_the_other(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    first, second = adding(desk, NEW), adding(desk, opinions(4, start=950))
    assert second.change.job == first.job.id
    assert len(dataset_of(desk, second.job).train) == 34
    desk.run(desk.claim())
    desk.run(desk.claim())
    assert desk.version("mood@v3").dataset_digest == second.job.spec.dataset


def test_latest_does_not_go_back_to_fewer_rows_where_the_later_addition_is_learned_first(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    adding(desk, NEW)
    adding(desk, opinions(4, start=950))
    first, second = desk.claim(1), desk.claim(2)
    desk.run(second)
    promote(desk.services, "mood@v2", "latest")
    result = desk.run(first).result or {}
    assert result["latest"]["reason"] == "mood@v2 was made of these rows and later changes."
    assert desk.version("mood").version == 2


def test_an_addition_that_somebody_else_was_faster_than_is_applied_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onboard.jobs import add as adding_module

    desk.learn(opinions(24), method="linear")
    reading, others = adding_module.read_rows, [opinions(4, start=950)]

    def slow(*arguments: Any, **named: Any) -> Any:
        file = reading(*arguments, **named)
        if others:
            path = write_rows(desk.folder / "others.jsonl", others.pop())
            add(desk.services, MemoryDoorbell(), "mood", Addition(path))
        return file

    monkeypatch.setattr(adding_module, "read_rows", slow)
    added = adding(desk, NEW)
    assert len(dataset_of(desk, added.job).train) == 34
    assert len(desk.jobs()) == 3


def test_a_task_that_is_deleted_meanwhile_gets_no_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from onboard.jobs import add as adding_module

    desk.learn(opinions(24), method="linear")
    reading = adding_module.read_rows

    def slow(*arguments: Any, **named: Any) -> Any:
        delete_task(desk.services, "mood")
        return reading(*arguments, **named)

    monkeypatch.setattr(adding_module, "read_rows", slow)
    with refused("unknown-task", task="mood"):
        adding(desk, NEW)
    assert not [job for job in desk.jobs() if not job.state.finished]


def test_rows_of_another_form_or_kind_are_refused(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    pairs = [{"text_a": "a", "text_b": "b", "label": "yes"}, {"text_a": "c", "text_b": "d", "label": "no"}]
    with refused("text-field"):
        adding(desk, pairs)
    with refused("text-field"):
        adding(desk, pairs, remove=True)
    with refused("unknown-label", row=2) as caught:
        adding(desk, [{"text": "one", "label": 0.5}, {"text": "two", "label": 0.75}], new_labels=True)
    assert "is a number" in caught.value.message


def test_sets_of_labels_are_no_rows_of_a_task_with_one_label_each(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    rows = [{"text": f"a new text {place}", "labels": ["yes", "no"][: place + 1]} for place in range(2)]
    with pytest.raises(DatasetError) as caught:
        adding(desk, rows)
    assert [problem["code"] for problem in caught.value.data["problems"]] == ["label_type", "label_type"]


def test_a_task_of_another_base_gets_no_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.learn(opinions(24), method="linear")
    monkeypatch.setattr("onboard.jobs.standing.find_base", lambda _: SimpleNamespace(digest="sha256:other"))
    with pytest.raises(ConflictError) as caught:
        adding(desk, NEW)
    assert (caught.value.type, caught.value.data["digest"]) == ("task-of-other-base", "sha256:other")


def test_rows_that_change_nothing_are_refused(desk: Desk) -> None:
    rows = opinions(24)
    desk.learn(rows, method="linear")
    with refused("rows-change-nothing", rows=2):
        adding(desk, rows[:2])
    with refused("rows-change-nothing"):
        adding(desk, [{**rows[0], "label": opposite(rows[0]["label"])}])


def test_a_task_without_stored_rows_gets_none(desk: Desk, tiny_base: Any) -> None:
    from onboard.hypernetworks.register import register_base

    register_base(desk.services, tiny_base)
    shipped = tiny_base.sources[0].name
    with refused("task-rows-not-stored"):
        adding(desk, NEW, task=shipped)
    with refused("unknown-task", task="moood"):
        adding(desk, NEW, task="moood")


def test_the_same_key_makes_one_job(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    assert adding(desk, NEW, key="once").job.id == adding(desk, NEW, key="once").job.id


def test_what_fast_left_out_comes_back_with_the_next_rows(desk: Desk) -> None:
    desk.submit(opinions(24), init="random")
    fast = adding(desk, NEW, fast=True)
    assert (fast.job.spec.fast, fast.job.spec.method) == (True, "linear")
    slow = adding(desk, opinions(4, start=950))
    assert (slow.job.spec.fast, slow.job.spec.method, slow.job.spec.init) == (False, "", "random")


def test_a_file_with_all_rows_and_more_is_noted_as_an_addition(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    job = desk.submit(opinions(28), method="linear")
    change = job.spec.change
    assert change is not None
    assert (change["action"], change["version"], change["counts"]) == ("add", 1, {"added": 4})
    assert len(load(read_snapshot(desk.services, change["rows"])).train) == 4
    desk.run(desk.claim())
    assert desk.submit(opinions(20), method="linear").spec.change is None


def test_a_larger_file_that_is_sent_again_under_its_key_is_one_job(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    first, again = (desk.submit(opinions(28), method="linear", key="once") for _ in range(2))
    assert first.id == again.id
    assert again.spec.change is not None


def test_only_new_rows_are_read_and_what_is_kept_goes_with_the_task(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onboard.pipeline import material

    desk.learn(opinions(24), method="linear")
    adding(desk, NEW)
    read, reading = list[int](), material.bare_features

    def counted(engine: Any, ids: Any, *more: Any) -> Any:
        read.append(len(ids))
        return reading(engine, ids, *more)

    monkeypatch.setattr(material, "bare_features", counted)
    desk.run(desk.claim())
    assert sum(read) == len(NEW)
    with desk.services.database.read() as session:
        kept = TaskFeatureRepository(session).find("mood", desk.version("mood").base_digest)
    assert kept is not None
    delete_task(desk.services, "mood")
    with pytest.raises(NotFoundError):
        desk.services.artifacts.get(kept)


def test_lineage_shows_the_rows_and_the_dataset_before_even_where_rows_go_again(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    added = adding(desk, NEW)
    desk.run(desk.claim())
    adding(desk, NEW, remove=True)
    desk.run(desk.claim())
    drawn = lineage(desk.services, "mood")
    made_of = {(edge.source, edge.target) for edge in drawn.edges if edge.kind == "made_of"}
    assert (added.change.dataset, added.job.spec.dataset) in made_of
    assert (added.change.rows, added.job.spec.dataset) in made_of
    assert desk.version("mood@v3").dataset_digest == desk.version("mood@v1").dataset_digest
    assert render_lineage(drawn).startswith("<svg")


def test_a_job_whose_rows_were_added_to_leaves_the_embedding_to_the_later_job(desk: Desk, in_two_steps: None) -> None:
    desk.submit(opinions(24))
    later = adding(desk, NEW)
    result = desk.run(desk.claim()).result or {}
    assert result["provisional"]["confirmed"] is True
    assert result["provisional"]["reason"].startswith(f"Job {later.job.id} learns these rows")
    assert [version.method for version in desk.versions("mood")] == ["linear"]


def test_new_labels_wait_for_the_job_that_learns_the_task_without_them(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    adding(desk, NEW)
    adding(desk, [{"text": f"it is what it is {place}", "label": "neutral"} for place in range(4)], new_labels=True)
    first, second = desk.claim(1), desk.claim(2)
    with refused("earlier-change-open", holder=first.id):
        desk.run(second)
