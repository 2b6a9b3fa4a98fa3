"""From a submitted dataset to a result, with a real model that is tiny: documents, events, kinds of tasks."""

from __future__ import annotations

import json

import pytest
from support.real_jobs import DOCUMENT, STAGES, Desk, opinions, write_rows

from cli.watch import result_document
from onboard.domain.job import JobState, Stage
from onboard.jobs.control import full_document
from onboard.pipeline import run as pipeline
from onboard.registry.events import EventRepository
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.testing import RecordedProgress
from workers.shell import work


def test_the_result_document_has_the_keys_that_were_promised_and_numbers_in_them(desk: Desk) -> None:
    asked = desk.submit(opinions(100), test=opinions(24, start=100))
    progress = RecordedProgress()
    job = desk.run(desk.claim(), progress)
    document = json.loads(json.dumps(result_document(job.result or {}), allow_nan=False))
    assert set(document) == DOCUMENT
    assert (document["job"], document["state"], document["task"]) == (asked.id, "succeeded", "mood")
    assert (document["version"], document["hypernetwork_version"], document["guard"]) == (1, 1, None)
    assert document["embedding_digest"] == desk.version("mood@v1").embedding_digest
    assert set(document["metrics"]) == {"validation", "test"}
    for split, rows in (("validation", 25), ("test", 24)):
        assert {"accuracy", "macro_f1"} <= set(document["metrics"][split])
        for metric in document["metrics"][split].values():
            assert {"value", "low", "high", "n"} <= set(metric)
            assert metric["n"] == rows
    rounds = [candidate["round"] for candidate in document["init"]["candidates"]]
    names = [candidate["embedding"] for candidate in document["init"]["candidates"]]
    assert rounds == sorted(rounds, reverse=True)
    assert document["init"]["chosen"] == names[0]
    assert set(names) - {"mixture"} == {"sst2@v1", "stsb@v1", "topics-2", "mean", "random"}
    assert set(document["seconds"]) == {*STAGES, "publish"}
    assert all(seconds >= 0 for seconds in document["seconds"].values())
    assert progress.stages == STAGES
    assert job.state is JobState.SUCCEEDED


def test_every_stage_leaves_an_event_with_its_time_and_the_whole_report_can_be_rendered(
    desk: Desk, tiny_services: Services
) -> None:
    from onboard.report import render

    asked = desk.submit(opinions(24))
    done = work(tiny_services, "worker", ["default"], pipeline.run)
    assert done is not None
    assert (done.id, done.state) == (asked.id, JobState.SUCCEEDED)
    with tiny_services.database.read() as session:
        events = EventRepository(session).list(asked.id)
    finished = {event.stage: event for event in events if event.kind == "stage_finished"}
    assert [stage.value for stage in finished if stage] == [*STAGES, "publish"]
    assert all(event.seconds is not None for event in finished.values())
    assert finished[Stage.PUBLISH].numbers["version"] == 1
    assert [event.message for event in events if event.kind == "state"] == ["queued", "running", "succeeded"]
    assert done.result is not None
    page = render(full_document(desk.services.database, done))
    assert "mood" in page


def test_up_to_64_rows_are_cross_validated_and_more_are_held_out(desk: Desk) -> None:
    few = desk.learn(opinions(64), "few")
    assert few["validation_kind"] == "cross-validated"
    assert few["validation_reason"]
    assert few["metrics"]["validation"]["accuracy"]["n"] == 64
    assert few["metrics"]["validation"]["accuracy"]["estimate"] == "cross-validated"
    assert few["metrics"]["test"] is None
    assert few["dataset"]["rows"] == {"train": 64, "validation": 0, "test": 0}
    many = desk.learn(opinions(65), "many")
    assert many["validation_kind"] == "held-out"
    held = many["dataset"]["rows"]["validation"]
    assert held == many["metrics"]["validation"]["accuracy"]["n"] == 16
    assert many["dataset"]["rows"]["train"] == 65 - held
    assert many["training"]["steps"] == few["training"]["steps"] == 2
    assert few["confusion"]["split"] == many["confusion"]["split"] == "validation"
    for result, rows in ((few, 64), (many, held)):
        matrix = result["confusion"]["matrix"]
        assert sum(map(sum, matrix)) == rows
        right = sum(row[place] for place, row in enumerate(matrix)) / rows
        assert right == pytest.approx(result["metrics"]["validation"]["accuracy"]["value"])


def test_held_out_rows_choose_how_far_to_go_and_say_so(desk: Desk) -> None:
    many = desk.learn(opinions(100), "many")
    held = many["dataset"]["rows"]["validation"]
    assert many["training"]["chosen_on"] == held == 25
    assert many["training"]["share"] in {1.0, 0.5, 0.25, 0.125}
    reason = "25 of these rows chose the distance from the start, so these numbers are slightly optimistic."
    assert many["validation_reason"] == reason


def test_too_few_held_out_rows_choose_nothing(desk: Desk) -> None:
    validation = write_rows(desk.folder / "validation.jsonl", opinions(10, start=80))
    many = desk.learn(opinions(80), "many", options={"validation": validation})
    assert (many["training"]["chosen_on"], many["training"]["share"]) == (None, 1.0)
    assert many["validation_reason"] is None


def test_too_few_rows_for_any_estimate_say_so(desk: Desk) -> None:
    result = desk.learn(opinions(6), "tiny")
    assert result["metrics"]["validation"] is None
    assert "6 rows" in result["validation_reason"]
    assert result["version"] == 1


def test_a_regression_goes_from_end_to_end(desk: Desk, tiny_services: Services) -> None:
    rows = [{**row, "label": round(1 + 4 * number / 89, 3)} for number, row in enumerate(opinions(90))]
    result = desk.learn(rows, "stars", options={"kind": "regression"}, kind="regression")
    assert {"spearman", "pearson"} <= set(result["metrics"]["validation"])
    assert result["metric"] == "spearman"
    version = desk.version("stars")
    assert (version.task_kind, version.labels, len(version.words)) == ("regression", (), 21)
    assert (version.low, version.high) == (1.0, 5.0)
    (answer,) = Predictor(tiny_services).predict([{"task": "stars", "text": "film was good"}])
    assert isinstance(answer.label, float)
    assert 1.0 <= answer.label <= 5.0
    few = desk.learn(rows[:40], "few-stars", options={"kind": "regression"}, kind="regression")
    assert few["validation_kind"] == "cross-validated"
    assert few["metrics"]["validation"]["spearman"]["n"] == 40


def test_pairs_and_labels_with_types_go_from_end_to_end(desk: Desk, tiny_services: Services) -> None:
    rows = [{"text_a": row["text"], "text_b": "film", "label": row["label"]} for row in opinions(20, (True, False))]
    result = desk.learn(rows, "pairs")
    assert [counted["label"] for counted in result["dataset"]["labels"]] == [False, True]
    assert desk.version("pairs").labels == (False, True)
    (answer,) = Predictor(tiny_services).predict([{"task": "pairs", "text_a": "film was good", "text_b": "film"}])
    assert isinstance(answer.label, bool)
