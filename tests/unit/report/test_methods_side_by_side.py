"""What methods came to on the same rows: one document, one table, one picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from onboard.contract.methods import MethodResult
from onboard.report.advice import next_steps
from onboard.report.methods import MethodsCompared, method_result
from onboard.report.page import page_of
from onboard.report.submit_again import submit_again


def job(value: float | None, *, state: str = "succeeded", **more: Any) -> dict[str, Any]:
    metric = {"value": value, "low": (value or 0) - 0.1, "high": (value or 0) + 0.1, "n": 50}
    metrics = {"validation": None, "test": {"accuracy": metric} if value is not None else None}
    document = {"job": "0123", "task": "mood-methods", "state": state, "version": 1, "metric": "accuracy"}
    return {**document, "metrics": metrics, "seconds": {"train": 2.25, "evaluate": 1.0}, **more}


@pytest.fixture
def compared() -> MethodsCompared:
    jobs = [
        job(0.6, training={"trained": 64}),
        job(0.8, version=2, training={"trained": 1200}, memory_bytes=512_000_000),
        job(None, state="failed", version=None, error={"message": "The training loss became nan at step 3."}),
    ]
    versions = [{"weak": True, "stored_bytes": 2_000}, {"weak": False, "stored_bytes": 1_500_000}, None]
    names = ["default", "compacter", "prompt-tuning-t"]
    results = [method_result(*facts) for facts in zip(names, jobs, versions, strict=True)]
    refused = MethodResult(method="linear", state="refused", error="A label has one row.")
    return MethodsCompared.of_jobs("mood-methods", jobs, [*results, refused])


def test_the_best_comes_first_and_what_has_no_score_last(compared: MethodsCompared) -> None:
    assert compared.heads() == ("method", "accuracy, test", "bytes", "trained", "seconds", "memory", "version")
    assert compared.rows() == [
        ("compacter", "80% (70–90%)", "1,500,000", "1,200", "3", "512 MB", "mood-methods@v2"),
        ("default (weak)", "60% (50–70%)", "2,000", "64", "3", "–", "mood-methods@v1"),
        ("prompt-tuning-t", "–", "–", "–", "3", "–", "The training loss became nan at step 3."),
        ("linear", "–", "–", "–", "–", "–", "A label has one row."),
    ]


def test_of_a_loss_the_least_is_the_best() -> None:
    jobs = [job(None, metrics={"test": {"log_loss": {"value": loss, "low": None, "high": None}}}) for loss in (2, 1)]
    jobs = [{**document, "metric": "log_loss"} for document in jobs]
    results = [method_result(str(place), document, None) for place, document in enumerate(jobs)]
    assert [result.method for result in MethodsCompared.of_jobs("mood", jobs, results).by_score] == ["1", "0"]


def test_the_document_keeps_the_order_that_was_asked_for(compared: MethodsCompared) -> None:
    document = compared.to_json()
    assert (document["task"], document["metric"], document["split"]) == ("mood-methods", "accuracy", "test")
    assert [result["method"] for result in document["results"]] == ["default", "compacter", "prompt-tuning-t", "linear"]
    assert document["results"][1] == {
        "method": "compacter", "state": "succeeded", "job": "0123", "version": "mood-methods@v2",
        "score": {"value": 0.8, "low": pytest.approx(0.7), "high": pytest.approx(0.9), "n": 50}, "weak": False,
        "stored_bytes": 1_500_000, "trained": 1200, "seconds": 3.2, "memory_bytes": 512_000_000, "error": None,
    }  # fmt: skip


def test_the_picture_has_a_point_and_a_name_for_each_that_was_measured(compared: MethodsCompared) -> None:
    svg = ET.fromstring(compared.plot())
    names = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    circles = [element.attrib for element in svg.iter("{http://www.w3.org/2000/svg}circle")]
    assert {"default", "compacter", "1 kB", "10 MB", "bytes a task"} <= set(names)
    assert "linear" not in names
    (small, low), (large, high) = sorted((float(at["cx"]), float(at["cy"])) for at in circles)
    assert small < large
    assert low > high  # the y axis of an SVG points downwards


def test_nothing_measured_is_an_empty_picture() -> None:
    refused = [MethodResult(method="linear", state="refused", error="A label has one row.")]
    empty = MethodsCompared.of_jobs("mood", [], refused)
    assert "circle" not in empty.plot()
    assert empty.rows() == [("linear", "–", "–", "–", "–", "–", "A label has one row.")]


WEAK: dict[str, Any] = {
    "task": "mood", "weak": True, "init": {"chosen": "(own)", "reason": "Compacter starts as described in its paper."},
    "training": {"method": "compacter", "settings": {"reduction_factor": 16, "n": 4}}, "tuning": None,
    "dataset": {"rows": {"train": 20}},
}  # fmt: skip


def test_a_weak_version_of_a_method_is_submitted_again_with_it_and_starts_from_no_task() -> None:
    again = "onboard submit --dataset FILE --task mood --method compacter"
    again += " --method-setting reduction_factor=16 --method-setting n=4"
    assert submit_again(WEAK) == again
    assert next_steps(WEAK) == [
        f"Add labeled rows (20 were trained on) and submit again: `{again}`",
        "Compare methods on these rows: `onboard compare-methods FILE`",
    ]


def test_who_has_a_weak_embedding_is_told_that_rows_can_choose_the_method_once() -> None:
    weak = {**WEAK, "init": {"chosen": "sst2@v1"}, "training": {"method": "hyperformer++"}, "tuning": {"asked": "auto"}}
    asked = "onboard submit --dataset FILE --task mood --method auto"
    assert f"Let the rows choose the method: `{asked}`" in next_steps(weak)
    chosen = {**WEAK, "methods": {"chosen": "compacter", "tried": []}}
    assert submit_again(chosen) == asked
    assert not any("choose the method" in step for step in next_steps(chosen))


def test_the_report_says_what_a_method_started_from_and_trained() -> None:
    page = page_of({**WEAK, "training": {**WEAK["training"], "trained": 1200, "steps": 120}})
    assert page.chosen_is == "its own parameters. Compacter starts as described in its paper."
    assert (page.candidates, page.start_notes) == (None, [])
    assert page.training[:3] == [
        ("method", "compacter"), ("settings", "reduction_factor 16, n 4"), ("numbers trained", "1,200"),
    ]  # fmt: skip
