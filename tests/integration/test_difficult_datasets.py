"""Datasets that are not what one would wish for, through checks, probe and training: learned with what is special told,
or refused with row, field and remedy, and nothing queued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.peaked import Peaked
from support.real_jobs import Desk, opinions, write_rows
from support.tiny_base import make_tiny_base

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.contract.jobs import JobFacts
from onboard.domain.job import JobState
from onboard.domain.submission import Submission
from onboard.errors import DatasetError
from onboard.hypernetworks.register import register_base
from onboard.jobs.submission import check, prepare
from onboard.jobs.submit import submit
from onboard.model import engine
from onboard.pipeline.check import label_words
from onboard.registry.services import Services
from onboard.report import render
from onboard.serving.predictor import Predictor
from onboard.statistics.readout import Readout
from onboard.testing import MemoryDoorbell

Row = dict[str, Any]


@pytest.fixture(scope="module")
def wordy_base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A tiny base with the tokenizer of `mini`, which has no bytes for what it does not know."""
    return make_tiny_base(tmp_path_factory.mktemp("wordy"), tokenizer_of=find_base("mini").folder / "backbone")


@pytest.fixture(params=["bytes", "no bytes"])
def either(request: pytest.FixtureRequest, desk: Desk) -> Desk:
    """A desk on the tiny base, whose tokenizer falls back to bytes, and one on a base whose tokenizer does not."""
    if request.param == "bytes":
        return desk
    base = request.getfixturevalue("wordy_base")
    services = replace(desk.services, settings=desk.services.settings.model_copy(update={"base": str(base.folder)}))
    register_base(services, base)
    return Desk(services, desk.folder)


def cycled(count: int, labels: Sequence[Any]) -> list[Row]:
    """Rows without doubles, the labels in turn."""
    return [{**row, "label": labels[number % len(labels)]} for number, row in enumerate(opinions(count))]


def learn(desk: Desk, rows: Sequence[Row], task: str = "odd", **changes: Any) -> dict[str, Any]:
    """From the order that a submitter gives to the result document; the report can be rendered."""
    path = write_rows(desk.folder / f"{task}.jsonl", rows)
    order = Submission(str(path), task, **{"tune_hypernetwork": "never", **changes})
    submit(desk.services, MemoryDoorbell(), prepare(order, desk.services.settings.base))
    job = desk.run(desk.claim())
    assert job.state is JobState.SUCCEEDED
    result = job.result or {}
    assert task in render({**JobFacts.of_job(job).to_json(), **result})
    return result


def warnings(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {warning["code"]: warning for warning in result["dataset"]["warnings"]}


def answers_of(desk: Desk, task: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """Every label of a task, and what the version answers where the model is sure of that label's words."""
    version, predictor = desk.version(task), Predictor(desk.services)
    encoder = load_engine(find_base(desk.services.settings.base), "cpu").encoder
    sure = Peaked()
    monkeypatch.setattr("onboard.model.scoring.edge_logits", sure)
    monkeypatch.setattr(Readout, "beside", lambda _, probabilities, features: probabilities)
    for label, word in zip(version.labels, version.words, strict=True):
        sure.tokens = encoder.label_ids(word)
        (answer,) = predictor.predict([{"task": task, "text": "film was good"}])
        assert answer.probability > 0.99
        yield label, answer.label


@pytest.mark.parametrize("classes", [2, 10, 30, 70])
def test_one_row_a_class_is_learned_and_is_no_estimate(desk: Desk, classes: int) -> None:
    result = learn(desk, cycled(classes, [f"class{n}" for n in range(classes)]))
    assert result["metrics"]["validation"] is None
    assert "validation" not in result["baselines"]
    assert result["validation_reason"].startswith("Every label has only one training row")
    assert (result.get("more_rows") or {}).get("gain") is None
    assert warnings(result)["single_row_label"]["count"] == classes
    assert result["dataset"]["rows"] == {"train": classes, "validation": 0, "test": 0}


def test_one_row_a_class_and_a_few_more_are_learned_to_the_end_and_are_no_estimate(desk: Desk) -> None:
    result = learn(desk, cycled(21, [f"class{n}" for n in range(20)]))
    assert result["metrics"]["validation"] is None
    assert result["validation_reason"].startswith("Fewer than 8 of the 21 training rows")
    assert result["training"]["share"] == 1.0


def test_two_thousand_rows_are_learned_and_a_part_is_held_out(desk: Desk) -> None:
    result = learn(desk, opinions(2_000))
    assert result["dataset"]["rows"] == {"train": 1_500, "validation": 500, "test": 0}
    assert result["metrics"]["validation"]["accuracy"]["n"] == 500


def test_a_hundred_and_fifty_classes_are_learned_and_each_can_be_the_answer(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [f"class_{number}" for number in range(150)]
    result = learn(desk, cycled(300, labels))
    assert [counted["label"] for counted in result["dataset"]["labels"]] == sorted(labels)
    assert len(set(desk.version("odd").words)) == 150
    (answer,) = Predictor(tiny_services).predict([{"task": "odd", "text": "film was good"}])
    assert answer.label in labels
    answers = list(answers_of(desk, "odd", monkeypatch))
    assert sorted(label for label, _ in answers) == sorted(labels)
    assert [answer for _, answer in answers] == [label for label, _ in answers]


@pytest.mark.parametrize(("labels", "with_bytes", "without"), [
    ((1, "1", True, 10), 1, 1),
    (("😀", "😡", "👍🏽", "👍"), 0, 4),
    (("The customer wants his money back. " * 4 + "Now!", "The customer wants his money back. " * 4 + "Or not?"), 2, 2),
    (("\ufe0f", "\u200b", "seen"), 0, 2),
], ids=["numbers", "emoji", "sentences", "invisible"])  # fmt: skip
def test_labels_of_any_kind_come_back_as_they_were_submitted_and_are_known_by_the_words_that_the_check_shows(
    either: Desk, labels: tuple[Any, ...], with_bytes: int, without: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = either.services.settings.base
    renamed = with_bytes if "wordy" not in base else without
    result = learn(either, cycled(24, labels))
    labels_of_result = [counted["label"] for counted in result["dataset"]["labels"]]
    assert sorted(map(repr, labels_of_result)) == sorted(map(repr, labels))
    assert len(set(either.version("odd").words)) == len(labels)
    assert result["metrics"]["validation"]["accuracy"]["n"] == 24
    assert warnings(result).get("label_words", {"count": 0})["count"] == renamed
    order = Submission(str(either.folder / "odd.jsonl"))
    words = label_words(prepare(order, base).checked.dataset, load_engine(find_base(base), "cpu"))
    checked = check(order, base)
    assert [(counted["label"], counted["word"]) for counted in checked["labels"]] == list(
        zip(labels_of_result, words, strict=True)
    )
    assert [warning for warning in checked["warnings"] if warning["code"] == "label_words"] == [
        warning for warning in result["dataset"]["warnings"] if warning["code"] == "label_words"
    ]
    answers = list(answers_of(either, "odd", monkeypatch))
    assert [repr(answer) for _, answer in answers] == [repr(label) for label, _ in answers]


def test_texts_of_twenty_thousand_characters_are_learned_and_said_to_be_cut(
    desk: Desk, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths, limit, pad = set(), tiny_base.document["max_tokens"], engine.pad

    def padded(ids: Sequence[Sequence[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
        widths.update(map(len, ids))
        assert max(widths) <= limit
        return pad(ids, pad_id)

    monkeypatch.setattr(engine, "pad", padded)
    rows = opinions(16)
    long = [{**row, "text": (row["text"] + " ") * (20_000 // len(row["text"]))} for row in rows[:4]]
    warning = warnings(learn(desk, [*long, *rows[4:]]))["cut_texts"]
    Predictor(desk.services).predict([{"task": "odd", "text": long[0]["text"]}])
    assert max(widths) == limit
    assert warning["count"] == 4
    assert warning["message"].startswith("4 of 16 rows are longer than")
    checked = check(Submission(str(desk.folder / "odd.jsonl")), str(tiny_base.folder))
    assert [known for known in checked["warnings"] if known["code"] == "cut_texts"] == [warning]


def test_a_text_that_nobody_means_is_refused_with_its_row_and_nothing_is_queued(desk: Desk) -> None:
    rows = [*opinions(7), {"text": "x" * 100_001, "label": "yes"}]
    (problem,) = refused(desk, rows)
    assert (problem["row"], problem["field"]) == (8, "text")
    assert problem["remedy"]


def test_labels_of_a_validation_file_that_training_lacks_are_refused_by_row(desk: Desk, tmp_path: Path) -> None:
    validation = write_rows(tmp_path / "held.jsonl", [*opinions(4, start=50), {"text": "odd", "label": "maybe"}])
    (problem,) = refused(desk, opinions(16), validation=validation)
    assert (problem["file"], problem["row"], problem["field"]) == (str(validation), 5, "label")
    assert "maybe" in problem["message"]
    assert "training rows of this label" in problem["remedy"]


def refused(desk: Desk, rows: Sequence[Row], **changes: Any) -> list[dict[str, Any]]:
    """The problems for which a dataset is refused, with nothing queued or stored."""
    order = Submission(str(write_rows(desk.folder / "odd.jsonl", rows)), "odd", **changes)
    with pytest.raises(DatasetError) as caught:
        prepare(order, desk.services.settings.base)
    assert desk.jobs() == []
    problems: list[dict[str, Any]] = caught.value.data["problems"]
    return problems


def test_rows_that_an_existing_task_was_trained_on_do_not_speak_for_it_and_are_told(desk: Desk) -> None:
    learn(desk, opinions(24), "first")
    result = learn(desk, opinions(32), "second")
    assert result["init"]["overlap"] == 24
    known = next(candidate for candidate in result["init"]["candidates"] if candidate["embedding"] == "first@v1")
    assert known["rows"] <= 8
    assert "was trained on 24 of the task" in render(result)


def test_the_same_rows_again_under_another_name_are_learned_though_nothing_is_new(desk: Desk) -> None:
    learn(desk, opinions(24), "first")
    result = learn(desk, opinions(24), "second")
    assert result["init"]["overlap"] == 24
    assert desk.version("first").version == desk.version("second").version == 1
    assert desk.version("first").dataset_digest == desk.version("second").dataset_digest
