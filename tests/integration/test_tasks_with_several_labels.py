"""A task with several labels per text, from the file to its answers: whatever takes a version takes this one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support.real_jobs import Desk, write_rows
from support.refusals import refused

from onboard.contract.card import render_card
from onboard.contract.jobs import JobFacts
from onboard.domain.evaluation import Evaluation
from onboard.domain.job import JobState
from onboard.domain.submission import Submission
from onboard.jobs.submission import check
from onboard.report import render, render_text
from onboard.serving import Predictor
from onboard.statistics.readout import Readout
from onboard.storage.readout import pack_readout, unpack_readout
from onboard.versions.compare import compare
from onboard.versions.export.onnx import export_onnx
from onboard.versions.fetch import fetch
from onboard.versions.measure import evaluate
from onboard.versions.promote import promote

WORDS = {"film": "the film", "plot": "a plot", "great": "was great"}
SETS = [[], ["film"], ["plot"], ["great"], ["film", "great"], ["plot", "great"], ["film", "plot"]]


def sets_of(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows whose words say their labels."""
    rows = []
    for place in range(start, start + count):
        labels = SETS[place % len(SETS)]
        text = " and ".join(WORDS[label] for label in labels) or "nothing"
        rows.append({"text": f"{text}, number {place}", "labels": labels})
    return rows


def str_of(shown: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(shown)
    return console.export_text()


def answers(desk: Desk, reference: str = "tags") -> list[Any]:
    task, _, ref = reference.partition("@")
    asked = {"task": task, **({"ref": ref} if ref else {})}
    return Predictor(desk.services).predict([{**asked, "text": row["text"]} for row in sets_of(7, 300)])


@pytest.mark.parametrize(("rows", "kind"), [(30, "cross-validated"), (120, "held-out")])
def test_a_job_learns_sets_and_says_how_good_they_are(desk: Desk, rows: int, kind: str) -> None:
    job = desk.submit(sets_of(rows), "tags", test=sets_of(40, 500))
    assert (job.spec.method, job.spec.tune_hypernetwork) == ("linear", "never")
    job = desk.run(desk.claim())
    assert job.state is JobState.SUCCEEDED
    result = job.result or {}
    version = desk.version("tags")
    assert (version.task_kind, version.labels) == ("multilabel", ("film", "great", "plot"))
    assert set(result["metrics"]["test"]) == {"micro_f1", "macro_f1", "lrap", "exact_match"}
    assert (result["metric"], result["validation_kind"]) == ("micro_f1", kind)
    assert set(result["baselines"]["test"]) == {"commonest_set", "tfidf_one_vs_rest"}
    scores = result["metrics"]["test"]["macro_f1"]["labels"]
    assert [score["label"] for score in scores] == ["film", "great", "plot"]
    assert {entry["label"]: entry["count"] for entry in result["dataset"]["labels"]}.keys() == {"film", "great", "plot"}
    assert (result["confusion"], result["calibration"]) == (None, None)
    micro = result["metrics"]["test"]["micro_f1"]
    assert micro["low"] <= micro["value"] <= micro["high"]
    document = {**JobFacts.of_job(job).to_json(), **result}
    assert "micro-F1" in render(document)
    assert "exact match" in str_of(render_text(document))
    assert "film" in render_card(version)


def test_answers_are_sets_with_a_score_for_every_label(desk: Desk) -> None:
    desk.learn(sets_of(60), "tags")
    for answer in answers(desk):
        assert answer.chosen is not None
        assert answer.chosen == tuple(
            label for label, score in zip(answer.labels, answer.probabilities, strict=True) if score >= 0.5
        )
        assert json.loads(str(answer.label)) == list(answer.chosen)
        shown = answer.to_json(probabilities=True)
        assert (shown["labels"], len(shown["probabilities"])) == (list(answer.chosen), 3)
        assert answer.probability == min(max(score, 1 - score) for score in answer.probabilities)
    (some,) = Predictor(desk.services).predict([{"task": "tags", "text": "the film", "labels": ["film", "plot"]}])
    assert some.labels == ("film", "plot")


def test_the_words_of_a_text_decide_its_labels(desk: Desk) -> None:
    result = desk.learn(sets_of(140), "tags", test=sets_of(42, 500))
    assert (
        result["metrics"]["test"]["micro_f1"]["value"]
        > result["baselines"]["test"]["commonest_set"]["micro_f1"]["value"]
    )
    assert result["weak"] is False


def test_versions_are_compared_measured_and_promoted(desk: Desk, tmp_path: Path) -> None:
    desk.learn(sets_of(21), "tags", test=sets_of(40, 500))
    second = desk.learn(sets_of(140), "tags", test=sets_of(40, 500))
    assert second["latest"]["comparison"]["rows"] >= 40
    both = compare(desk.services, "tags@v1", "tags@v2")
    assert both.measured is not None
    assert set(both.to_document().to_json()["a"]["shared"]) == {"micro_f1", "macro_f1", "lrap", "exact_match"}
    for flip in both.to_document().to_json()["flipped"]:
        assert isinstance(json.loads(flip["a"]), list)
    path = write_rows(tmp_path / "fresh.jsonl", sets_of(20, 900))
    measured = evaluate(desk.services, "tags", Evaluation(path)).to_document().to_json()
    assert (measured["rows"], measured["confusion"], measured["kind"]) == (20, None, "multilabel")
    assert "exactly right" in measured["reason"]
    promote(desk.services, "tags@v2", "stable")
    desk.learn(sets_of(21), "tags", test=sets_of(40, 500))
    with refused("not-better-than-present"):
        promote(desk.services, "tags@v3", "stable", if_better=True)


def test_columns_of_zeros_and_ones_and_cells_with_separators_are_the_same_task(desk: Desk, tmp_path: Path) -> None:
    rows = sets_of(30)
    columns = tmp_path / "columns.csv"
    lines = [f'"{row["text"]}",{",".join(str(int(word in row["labels"])) for word in WORDS)}' for row in rows]
    columns.write_text("text," + ",".join(WORDS) + "\n" + "\n".join(lines) + "\n")
    cells = tmp_path / "cells.csv"
    parted = "\n".join(f'"{row["text"]}",{"; ".join(row["labels"])}' for row in rows)
    cells.write_text("text,labels\n" + parted + "\n")
    listed = write_rows(tmp_path / "rows.jsonl", rows)
    documents = [
        check(Submission(path, "tags", kind=kind), desk.services.settings.base)
        for path, kind in ((listed, "auto"), (columns, "auto"), (cells, "multilabel"))
    ]
    assert {document["kind"] for document in documents} == {"multilabel"}
    assert len({document["digest"] for document in documents}) == 1


def test_a_version_is_fetched_and_answers_from_its_folder(desk: Desk, tmp_path: Path) -> None:
    desk.learn(sets_of(60), "tags")
    fetch(desk.services, "tags", tmp_path / "bundle", bundle=True)
    texts = [{"task": "tags", "text": row["text"]} for row in sets_of(7, 300)]
    here = Predictor(tmp_path / "bundle").predict(texts)
    assert [answer.chosen for answer in here] == [answer.chosen for answer in answers(desk)]


def test_it_is_not_exported_as_onnx_and_says_so(desk: Desk, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    desk.learn(sets_of(30), "tags")
    with refused("version-without-embedding"):
        export_onnx(desk.services, "tags", tmp_path / "onnx")


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "adapters"},
        {"init": "sst2"},
        {"tune_hypernetwork": "always"},
        {"readout": "never"},
        {"method": "auto"},
    ],
)
def test_what_only_an_embedding_has_is_refused(desk: Desk, asked: dict[str, Any]) -> None:
    with refused("option-with-sets", field=next(iter(asked))):
        desk.submit(sets_of(30), "tags", **asked)


def test_a_task_of_classes_does_not_become_one_of_sets_by_itself(desk: Desk) -> None:
    desk.learn([{"text": f"the film {place}", "label": ("film", "plot")[place % 2]} for place in range(12)], "tags")
    with refused("task-kind-differs", present="classification", wanted="multilabel"):
        desk.submit(
            [{"text": f"a plot {place}", "labels": [["film"], ["film", "plot"]][place % 2]} for place in range(12)],
            "tags",
        )


def test_its_file_says_that_its_scores_are_independent(desk: Desk) -> None:
    readout = Readout(np.ones((2, 6), dtype=np.float16), 2.0, np.zeros(2, dtype=np.float32), 1.0, True, True)
    again = unpack_readout(pack_readout(readout, "sha256:b"), "sha256:b")
    assert again.independent
    assert again.probabilities(np.ones((1, 6)))[0] == pytest.approx([1.0, 1.0], abs=1e-4)
    desk.learn(sets_of(30), "tags")
    content = desk.services.read(desk.version("tags").artifact)
    assert b"root_weights_of_independent_labels" in content
