"""A home that release 0.1.0 left before its code moved into rooms opens as it was, and goes on.

`old_home.tar.gz` holds a tiny base, the home and what its versions answered then: two versions of a single-text task
(the second under a tuned hypernetwork), a pair task, a regression, a job that lost its worker after tuning, and one
that waited.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.program import Place
from support.real_jobs import Desk
from support.refusals import refused

from onboard.contract.report import JobResult
from onboard.domain.job import JobState
from onboard.domain.task_search import TaskSearch
from onboard.pipeline.outputs import (
    EvaluateOutput,
    GuardOutput,
    ProbeOutput,
    StageOutput,
    TrainOutput,
    tune_output,
)
from onboard.registry.services import Services, open_services
from onboard.registry.tables import JobRow, StageOutputRow
from onboard.serving import Predictor
from onboard.settings import Settings
from onboard.versions.describe import list_tasks
from onboard.versions.fetch import fetch

ARCHIVE = Path(__file__).with_name("old_home.tar.gz")


@pytest.fixture
def old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)  # its jobs name their base as a folder beside the home
    services = open_services(Settings(home=Path("home"), base="base", device="cpu"))
    yield services
    services.close()


@pytest.fixture
def then(old_home: Services) -> dict[str, Any]:
    """What was answered and fetched when the home was made."""
    document: dict[str, Any] = json.loads(Path("answers.json").read_text(encoding="utf-8"))
    return document


def test_its_versions_answer_as_before(old_home: Services, then: dict[str, Any]) -> None:
    predictions = Predictor(old_home).predict([answer["ask"] for answer in then["answers"]])
    for prediction, answer in zip(predictions, then["answers"], strict=True):
        assert (prediction.task, prediction.version) == (answer["task"], answer["version"])
        if isinstance(answer["label"], float):
            assert prediction.label == pytest.approx(answer["label"], abs=1e-4)
        else:
            assert prediction.label == answer["label"]
            assert prediction.probability == pytest.approx(answer["probability"], abs=1e-4)


def test_whether_its_tasks_take_pairs_is_known_where_a_job_said_it(old_home: Services) -> None:
    tasks = {task["task"]: task["pairs"] for task in list_tasks(old_home.database, TaskSearch())}
    assert tasks == {"alike": True, "closeness": True, "later": False, "mood": False, "sst2": None, "stsb": None}
    with refused("input-texts-differ"):
        Predictor(old_home).predict([{"task": "alike", "text": "good film"}])


def test_its_embeddings_are_fetched_to_the_byte(old_home: Services, then: dict[str, Any]) -> None:
    for reference, digest in then["embeddings"].items():
        file = fetch(old_home, reference, Path("fetched") / reference).files[0]
        assert f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" == digest


def test_its_unfinished_jobs_go_on(old_home: Services, then: dict[str, Any], few_steps: None, gently: None) -> None:
    desk = Desk(old_home, Path())
    desk.lose()
    ended = [desk.run(desk.claim()) for _ in ("halfway", "waiting")]
    assert {job.id for job in ended} == {then["halfway"], then["waiting"]}
    assert [job.state for job in ended] == [JobState.SUCCEEDED] * 2
    halfway = desk.job(then["halfway"])
    assert halfway.attempt == 2
    assert (halfway.result or {})["guard"]["verdict"] == "accepted"


def test_what_its_stages_left_is_read_and_written_as_it_was(old_home: Services) -> None:
    readers: dict[str, Callable[[Mapping[str, Any]], StageOutput]] = {
        "probe": ProbeOutput.from_json, "train": TrainOutput.from_json, "tune": tune_output,
        "guard": GuardOutput.from_json, "evaluate": EvaluateOutput.from_json,
    }  # fmt: skip
    with old_home.database.read() as session:
        outputs = [(row.stage, row.artifact) for row in session.scalars(select(StageOutputRow))]
    assert {stage for stage, _ in outputs} == readers.keys()
    for stage, artifact in outputs:
        document = json.loads(old_home.artifacts.get(artifact))
        how_it_went = {name: document.pop(name) for name in ("halved", "seconds")}
        again = {**readers[stage](document).to_json(), **how_it_went}
        if stage == "train":  # it came before readouts and priors
            later = ("readout", "read_out", "no_readout", "weights", "prior")
            assert [again.pop(name) for name in later] == [None] * len(later)
        if stage == "evaluate":  # and before temperatures
            assert again.pop("calibration") is None
        assert again == json.loads(old_home.artifacts.get(artifact))


def test_results_of_its_jobs_are_read_and_written_as_they_were(old_home: Services) -> None:
    with old_home.database.read() as session:
        results = [result for result in session.scalars(select(JobRow.result)) if result is not None]
    assert len(results) > 3
    assert [JobResult.model_validate(result).to_json() for result in results] == results


def test_commands_show_its_jobs_tasks_and_versions(old_home: Services, tmp_path: Path) -> None:
    place = Place(tmp_path, Path("base"))
    assert place.run("jobs", "show", "mood", "--report", "mood.html").returncode == 0
    assert "mood" in (tmp_path / "mood.html").read_text(encoding="utf-8")
    assert [version["version"] for version in place.json("versions", "mood")["versions"]] == [1, 2]
    assert [head["version"] for head in place.json("hypernetwork", "list")["hypernetworks"]] == [1, 2]
    tasks = {task["task"] for task in place.json("tasks", "list")["tasks"]}
    assert tasks == {"alike", "closeness", "later", "mood", "sst2", "stsb"}
