"""A task starts from its labels alone; everything downstream takes such a version, and rows may replace it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.real_jobs import Desk, opinions, write_rows
from support.refusals import refused

from onboard.bases import Base
from onboard.contract.card import render_card
from onboard.contract.jobs import JobFacts
from onboard.contract.versions import VersionDocument
from onboard.domain.dataset import Example
from onboard.domain.job import Job, JobState
from onboard.domain.submission import Submission
from onboard.errors import ConflictError, NotBetterError
from onboard.hypernetworks.prior.refit import refit
from onboard.hypernetworks.register import register_base
from onboard.jobs.submission import check, prepare
from onboard.jobs.submit import submit
from onboard.pipeline import without_rows
from onboard.pipeline.check import prepare as stage_of_check
from onboard.report import render
from onboard.serving import Predictor
from onboard.storage.embedding import read_facts
from onboard.testing import MemoryDoorbell, RecordedProgress
from onboard.versions.compare import compare
from onboard.versions.delete import delete_task
from onboard.versions.fetch import fetch
from onboard.versions.promote import promote

TEXTS = [str(row["text"]) for row in opinions(40)]
PAIRS = [{"text_a": text, "text_b": other} for text, other in zip(TEXTS[:20], TEXTS[20:], strict=True)]


def order_of(desk: Desk, task: str = "tone", labels: str = "yes,no", **more: Any) -> Submission:
    files = {
        name: write_rows(desk.folder / f"{task}-{name}.jsonl", more.pop(name))
        for name in ("test", "unlabelled") if name in more
    }  # fmt: skip
    return Submission(task=task, labels=labels, **files, **more)


def submitted(desk: Desk, *, task: str = "tone", **more: Any) -> Job:
    request = prepare(order_of(desk, task, **more), desk.services.settings.base)
    return submit(desk.services, MemoryDoorbell(), request)[0]


def started(desk: Desk, **more: Any) -> dict[str, Any]:
    """From the labels to the result document; the report can be rendered."""
    submitted(desk, **more)
    job = desk.run(desk.claim())
    assert job.state is JobState.SUCCEEDED
    result = job.result or {}
    assert "unmeasured" in render({**JobFacts.of_job(job).to_json(), **result}) or more.get("test")
    return result


def probabilities(desk: Desk, reference: str, texts: list[str]) -> np.ndarray:
    inputs = [{"task": "tone", "ref": reference, "text": text} for text in texts]
    return np.array([answer.probabilities for answer in Predictor(desk.services).predict(inputs)])


def test_labels_alone_make_a_version_that_is_marked_unmeasured(desk: Desk, tmp_path: Path) -> None:
    progress, job = RecordedProgress(), submitted(desk)
    assert (job.spec.method, job.spec.tune_hypernetwork, job.spec.provisional) == ("linear", "never", False)
    result = desk.run(desk.claim(), progress).result or {}
    version = desk.version("tone")
    assert (version.version, version.unmeasured, version.weak, version.labels) == (1, True, False, ("yes", "no"))
    assert result["metrics"] == {"validation": None, "test": None}
    assert (result["baselines"], result["confusion"]) == ({}, None)
    assert "no labeled rows" in result["validation_reason"]
    assert result["training"]["without_rows"] == {"labels": 2, "described": 0, "texts": 64, "unlabelled": False}
    assert result["latest"] == {
        "alias": "latest", "moved": True, "reason": "It is the first version.", "comparison": None,
    }  # fmt: skip
    assert "**Unmeasured:**" in render_card(version)
    assert VersionDocument.of(version).unmeasured is True
    answers = probabilities(desk, "latest", TEXTS[:6])
    assert answers.shape == (6, 2)
    assert answers.sum(1) == pytest.approx(1.0)
    bundle = fetch(desk.services, "tone", tmp_path / "bundle", bundle=True)
    assert "weights.safetensors" in [path.name for path in bundle.files]
    content = next(path for path in bundle.files if path.name == "weights.safetensors").read_bytes()
    assert read_facts(content)["labels"] == ["yes", "no"]


def test_the_same_labels_make_the_same_numbers(desk: Desk) -> None:
    first, again = started(desk), started(desk)
    assert first["embedding_digest"] == again["embedding_digest"]
    assert (again["version"], again["latest"]["moved"]) == (2, True)  # nothing speaks for the first one


def test_descriptions_change_what_the_words_say(desk: Desk) -> None:
    plain = started(desk)
    described = started(desk, label_description=["yes=it was good and great"])
    assert described["training"]["without_rows"]["described"] == 1
    assert plain["embedding_digest"] != described["embedding_digest"]


def test_descriptions_are_in_the_words_of_a_task_with_rows_too(desk: Desk, tiny_base: Base) -> None:
    rows, description = write_rows(desk.folder / "mood.jsonl", opinions(12)), "it was good and great"
    order = Submission(str(rows), "mood", label_description=[f"yes={description}"])
    submit(desk.services, MemoryDoorbell(), prepare(order, desk.services.settings.base))
    bench = stage_of_check(desk.claim().spec, desk.services, register_base(desk.services, tiny_base))
    features = bench.names(lambda: None)
    no, yes, described = bench.own_features([Example(text, None, "") for text in ("no", "yes", description)], print)
    assert bench.dataset.labels == ("no", "yes")
    assert features == pytest.approx(np.stack([no, (yes + described) / 2]))


def test_unlabelled_texts_get_their_report_and_say_where_the_middle_is(desk: Desk) -> None:
    result = started(desk, unlabelled=[{"text": text} for text in TEXTS])
    assert result["training"]["without_rows"] == {"labels": 2, "described": 0, "texts": 40, "unlabelled": True}
    advised = result["label_next"]
    assert (advised["read"], advised["considered"], len(advised["rows"])) == (40, 40, 20)
    shares = {share["label"]: share["share"] for share in advised["shares"]}
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-3)
    answers = probabilities(desk, "v1", TEXTS)
    assert shares["yes"] == pytest.approx((answers.argmax(1) == 0).mean(), abs=1e-3)
    assert 0 < shares["yes"] < 1  # around their own middle both labels get some
    shown = render({"state": "succeeded", "dataset": {"rows": {"train": 0}}, **result})
    assert "Current answers to the unlabeled texts" in shown
    assert "--unlabelled FILE" not in shown  # which is done


def test_fewer_texts_than_eight_do_not_say_where_the_middle_is(desk: Desk) -> None:
    made_of = started(desk, unlabelled=[{"text": text} for text in TEXTS[:7]])["training"]["without_rows"]
    assert (made_of["unlabelled"], made_of["texts"]) == (False, 64)


def test_pairs_that_are_unlabelled_make_a_task_of_pairs(desk: Desk) -> None:
    result = started(desk, unlabelled=PAIRS)
    assert (desk.version("tone").pairs, result["dataset"]["pairs"]) == (True, True)
    assert {"text_a", "text_b"} <= set(result["label_next"]["rows"][0])
    (answer,) = Predictor(desk.services).predict([{"task": "tone", **PAIRS[0]}])
    assert answer.label in ("yes", "no")
    with refused("input-texts-differ"):
        Predictor(desk.services).predict([{"task": "tone", "text": "one"}])


def test_a_test_split_measures_it(desk: Desk) -> None:
    result = started(desk, test=opinions(30))
    version = desk.version("tone")
    assert (version.unmeasured, result["metrics"]["validation"]) == (False, None)
    assert result["metrics"]["test"]["accuracy"]["n"] == 30
    assert set(result["baselines"]) == {"test"}
    assert set(result["baselines"]["test"]) == {"majority"}  # nothing else can be trained
    assert sum(map(sum, result["confusion"]["matrix"])) == 30


def test_rows_make_the_next_version_and_replace_it_without_a_comparison(desk: Desk) -> None:
    started(desk)
    result = desk.learn(opinions(6), "tone")
    version = desk.version("tone")
    assert (version.version, version.unmeasured) == (result["version"], True)  # six rows measure nothing either
    assert result["latest"]["moved"]
    assert "unmeasured" in result["latest"]["reason"]
    side_by_side = compare(desk.services, "tone@v1", f"tone@v{version.version}")
    assert side_by_side.measured is None
    assert "tone@v1 was made from the labels alone" in side_by_side.reason


def test_rows_that_hold_some_out_are_compared_with_it(desk: Desk) -> None:
    started(desk)
    result = desk.learn(opinions(80), "tone", method="linear")
    assert result["latest"]["comparison"]["rows"] == 20
    assert compare(desk.services, "tone@v1", "tone@v2").measured is not None


def test_labels_alone_do_not_replace_what_rows_made(desk: Desk) -> None:
    learned = desk.learn(opinions(6), "tone")
    again = started(desk)
    assert (again["latest"]["moved"], desk.version("tone").version) == (False, learned["version"])
    assert "from its labels alone" in again["latest"]["reason"]
    newest = f"tone@v{again['version']}"
    with pytest.raises(NotBetterError):
        promote(desk.services, newest, "latest", if_better=True)
    promote(desk.services, newest, "latest")
    assert desk.version("tone").reference == newest


def test_other_labels_are_another_task(desk: Desk) -> None:
    started(desk)
    with pytest.raises(ConflictError):
        desk.submit(opinions(6, labels=("good", "bad")), "tone")
    with pytest.raises(ConflictError):
        submitted(desk, labels="yes,no,perhaps")
    assert started(desk, labels="yes,no,perhaps", new_labels=True)["version"] == 2


def test_a_deleted_task_is_gone_and_may_start_again(desk: Desk) -> None:
    started(desk)
    started(desk, task="twin")  # the same labels are the same stored dataset
    delete_task(desk.services, "tone")
    assert [version.reference for version in desk.versions("twin")] == ["twin@v1"]
    assert started(desk)["version"] >= 1


@pytest.mark.parametrize(
    ("asked", "type_"),
    [
        ({"method": "adapters"}, "option-without-rows"),
        ({"method_setting": ["n=8"]}, "option-without-rows"),
        ({"init": "sst2"}, "option-without-rows"),
        ({"probe": "exhaustive"}, "option-without-rows"),
        ({"tune_hypernetwork": "always"}, "option-without-rows"),
        ({"readout": "never"}, "option-without-rows"),
        ({"metric": "spearman"}, "unknown-metric-of-kind"),
        ({"validation": "rows.jsonl"}, "option-needs-rows"),
        ({"labels": "yes"}, "labels-too-few"),
        ({"labels": "yes,yes"}, "label-repeated"),
        ({"labels": ""}, "dataset-missing"),
        ({"task": None}, "task-name-missing"),
        ({"label_description": ["maybe=unsure"]}, "description-of-unknown-label"),
    ],
)
def test_what_only_rows_give_a_meaning_is_refused_and_nothing_is_queued(
    desk: Desk, asked: dict[str, Any], type_: str
) -> None:
    with refused(type_) as caught:
        submitted(desk, **asked)
    assert caught.value.remedy
    assert desk.jobs() == []


def test_fast_is_what_it_is_anyway(desk: Desk) -> None:
    assert submitted(desk, fast=True).spec.options.get("fast") is None


def test_options_that_ask_for_what_happens_anyway_are_taken(desk: Desk) -> None:
    asked = {"method": "linear", "init": "random", "tune_hypernetwork": "never"}
    spec = submitted(desk).spec
    assert {name: getattr(spec, name) for name in asked} == asked
    assert submitted(desk, **asked).spec == spec
    assert (desk.run(desk.claim()).result or {})["version"] == 1


def test_the_check_says_what_there_is(desk: Desk, tiny_base: Base) -> None:
    report = check(order_of(desk, labels="praise,complaint,17"), str(tiny_base.folder))
    assert (report["task"], report["rows"]["train"], report["estimated_seconds"] < 30) == ("tone", 0, True)
    assert {warning["code"] for warning in report["warnings"]} >= {"labels_say_little"}
    assert json.dumps(report)


def test_the_report_warns_once_of_labels_that_say_nothing(desk: Desk) -> None:
    started(desk, labels=f"{'word ' * 13},17")
    cut, silent = (desk.jobs()[-1].result or {})["dataset"]["labels"]
    assert (len(cut["word"].split()), silent["word"]) == (12, "17")
    codes = [warning["code"] for warning in (desk.jobs()[-1].result or {})["dataset"]["warnings"]]
    assert codes == ["labels_say_little"]


def test_the_check_names_labels_that_the_base_cannot_read(desk: Desk) -> None:
    report = check(order_of(desk, labels="称賛,苦情,praise"), "mini")
    (warning,) = [warning for warning in report["warnings"] if warning["code"] == "labels_say_little"]
    assert (warning["count"], "苦情" in warning["message"], "praise" in warning["message"]) == (2, True, False)
    assert "label_words" not in {warning["code"] for warning in report["warnings"]}  # advice for tasks with rows


def test_an_attempt_that_dies_is_repeated_with_the_same_numbers(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = started(desk, task="other")["embedding_digest"]
    submitted(desk)
    first = desk.claim()

    def die(*_: Any) -> Any:
        raise RuntimeError("the machine went away")

    with monkeypatch.context() as broken:
        broken.setattr(without_rows, "readout_of_names", die)
        with pytest.raises(RuntimeError):
            desk.run(first)
    desk.lose()
    assert (desk.run(desk.claim()).result or {})["embedding_digest"] == before


def test_earlier_tasks_teach_it_and_it_teaches_them_nothing(desk: Desk, tiny_base: Base) -> None:
    alone = started(desk, task="alone")
    assert (alone["prior"], desk.version("alone").lesson) == (None, None)
    desk.learn(opinions(24), "mood", method="linear")
    refit(desk.services, tiny_base, "a test")
    result, version = started(desk), desk.version("tone")
    assert [taught["task"] for taught in result["prior"]["tasks"]] == ["mood"]
    assert (result["prior"]["scale"], result["prior"]["lessons"]) == (1.0, 1)
    assert (version.prior_digest, version.lesson) == (result["prior"]["digest"], None)
    assert result["embedding_digest"] != alone["embedding_digest"]
