"""From a submitted dataset to a published version, with a real model that is tiny."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published import add_version, embedding_of
from real_jobs import Desk, HookedProgress, opinions
from safetensors import safe_open

from cli.watch import result_document
from onboard import pipeline
from onboard.artifacts import ArtifactStore
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.job import Job, JobState, Stage
from onboard.domain.progress import Progress
from onboard.embedding import unpack_embedding
from onboard.errors import CancelledError, ConflictError, FencedError, InputError, PinMismatchError, StorageError
from onboard.fetch import fetch
from onboard.model.batched import log_probabilities
from onboard.publish import publish
from onboard.register import register_base
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.serving import Predictor
from onboard.settings import Settings
from onboard.testing import MemoryDoorbell, RecordedProgress
from onboard.train.fewshot import FewShotSettings, Trained
from onboard.workbench import prepare
from workers.shell import work

DOCUMENT = {
    "job", "state", "task", "version", "embedding_digest", "hypernetwork_version", "init", "metrics", "guard",
    "seconds",
}  # fmt: skip
STAGES = ["check", "probe", "train", "evaluate"]


class _CrashError(Exception):
    """The worker's process ends here."""


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned does not matter here, how often and in which order does."""
    monkeypatch.setattr(pipeline, "FewShotSettings", partial(FewShotSettings, steps=5, batch=8))


@pytest.fixture
def desk(tiny_services: Services, tmp_path: Path) -> Desk:
    return Desk(tiny_services, tmp_path)


@pytest.fixture
def trained_as(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the training come out with this embedding."""

    def choose(z: np.ndarray) -> None:
        monkeypatch.setattr(pipeline, "train_embedding", lambda *arguments: Trained(z, (0.5,), (1.0,), 0.0))

    return choose


# ---- the result


def test_the_result_document_has_the_keys_that_were_promised_and_numbers_in_them(desk: Desk) -> None:
    asked = desk.submit(opinions(100), test=opinions(24, start=100))
    progress = RecordedProgress()
    job = desk.run(desk.claim(), progress)
    document = json.loads(json.dumps(result_document(job), allow_nan=False))
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
    losses = [candidate["loss"] for candidate in document["init"]["candidates"]]
    names = [candidate["embedding"] for candidate in document["init"]["candidates"]]
    assert losses == sorted(losses)
    assert document["init"]["chosen"] == names[0]
    assert set(names) == {"sst2@v1", "stsb@v1", "topics-2", "mean", "random"}
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
    page = render({**done.to_json(), **done.result, "events": [event.to_json() for event in events]})
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
    assert many["training"]["steps"] == few["training"]["steps"] == 5


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
    assert [each["label"] for each in result["dataset"]["labels"]] == [False, True]
    assert desk.version("pairs").labels == (False, True)
    (answer,) = Predictor(tiny_services).predict([{"task": "pairs", "text_a": "film was good", "text_b": "film"}])
    assert isinstance(answer.label, bool)


# ---- what is published


def test_the_files_of_a_version_carry_what_was_published(desk: Desk, tiny_services: Services, tiny_base: Base) -> None:
    result = desk.learn(opinions(70), test=opinions(12, start=70), seed=5)
    fetched = fetch(tiny_services, "mood", desk.folder / "fetched")
    with safe_open(fetched.files[0], framework="np") as file:
        facts, z = file.metadata(), file.get_tensor("z")
    version = desk.version("mood@v1")
    assert fetched.version == version
    assert z.dtype == np.float32
    assert z.shape == (16,)
    np.testing.assert_array_equal(z, unpack_embedding(tiny_services.artifacts.get(version.artifact)))
    assert (facts["task"], facts["version"]) == ("mood", "1")
    assert json.loads(facts["labels"]) == ["no", "yes"]
    assert tuple(json.loads(facts["words"])) == version.words
    assert facts["backbone"] == tiny_base.backbone_digest
    assert facts["hypernetwork_version"] == "1"
    stored = tiny_base.folder / "hypernetwork.safetensors"
    assert tiny_services.artifacts.get(facts["hypernetwork"]) == stored.read_bytes()
    assert facts["dataset"] == result["pins"]["dataset"] == version.dataset_digest
    assert json.loads(facts["metrics"]) == result["metrics"]
    assert facts["init"] == result["init"]["chosen"]
    assert json.loads(facts["seeds"]) == [5]
    assert facts["onboard"] == version.code_version
    card = fetched.files[1].read_text(encoding="utf-8")
    assert card.startswith("# mood@v1")
    for pin in (version.embedding_digest, version.backbone_digest, version.dataset_digest, version.job):
        assert str(pin) in card


def test_the_same_job_gives_the_same_embedding_bit_for_bit(desk: Desk) -> None:
    asked = {"init": "sst2"}  # what the probe chooses depends on what else has been learned here
    first, again = desk.learn(opinions(30), "one", **asked), desk.learn(opinions(30)[::-1], "two", **asked)
    other = desk.learn(opinions(30), "three", seed=1, **asked)
    assert first["embedding_digest"] == again["embedding_digest"] != other["embedding_digest"]
    assert first["pins"]["dataset"] == again["pins"]["dataset"]


def test_a_published_version_predicts_the_same_in_a_fresh_process(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.learn(opinions(30))
    inputs = [{"task": task, "text": row["text"]} for row in opinions(10) for task in ("mood", "sst2")]
    here = [answer.to_json() for answer in Predictor(tiny_services).predict(inputs)]
    program = (
        "import json, sys\nfrom onboard.serving import Predictor\n"
        "answers = Predictor(sys.argv[1]).predict(json.load(sys.stdin))\n"
        "print(json.dumps([answer.to_json() for answer in answers]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, str(tiny_services.settings.resolved_home)],
        input=json.dumps(inputs), capture_output=True, text=True, check=True, env=_environment(tiny_base),
    )  # fmt: skip
    fresh = json.loads(there.stdout)
    assert [answer["label"] for answer in fresh] == [answer["label"] for answer in here]
    for one, other in zip(here, fresh, strict=True):
        assert other["probability"] == pytest.approx(one["probability"], abs=1e-6)


def _environment(base: Base) -> dict[str, str]:
    return {"ONBOARD_BASE": str(base.folder), "ONBOARD_DEVICE": "cpu", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}


def test_nothing_that_was_published_ever_changes(desk: Desk, tiny_services: Services) -> None:
    desk.learn(opinions(30))
    first = desk.version("mood@v1")
    content = tiny_services.artifacts.get(first.artifact)
    desk.learn(opinions(40))
    assert desk.version("mood@v1") == first
    assert tiny_services.artifacts.get(first.artifact) == content
    assert desk.version("mood@v2").embedding_digest != first.embedding_digest


# ---- resubmission and `latest`


def test_a_resubmission_makes_the_next_version_and_knows_its_predecessor(desk: Desk) -> None:
    assert desk.learn(opinions(70))["version"] == 1
    second = desk.learn(opinions(70))
    assert second["version"] == 2
    assert [version.version for version in desk.versions("mood")] == [1, 2]
    assert second["latest"]["present"] == "mood@v1"
    names = {candidate["embedding"] for candidate in second["init"]["candidates"]}
    assert "mood@v1" not in names  # it has been trained on these very rows
    assert second["init"]["overlap"] == second["dataset"]["rows"]["train"]
    fresh = desk.learn(opinions(40, start=100))
    assert "mood@v2" in {candidate["embedding"] for candidate in fresh["init"]["candidates"]}
    assert fresh["init"]["overlap"] == 0


def test_other_labels_are_refused_with_nothing_queued_unless_new_labels_are_meant(desk: Desk) -> None:
    desk.learn(opinions(20))
    other = opinions(20, ("pro", "contra"))
    with pytest.raises(ConflictError) as caught:
        desk.submit(other)
    assert caught.value.exit_code == 4
    assert "--new-labels" in caught.value.remedy
    with pytest.raises(ConflictError):
        desk.submit(other, "sst2")  # a shipped task is a task like any other
    assert len(desk.jobs()) == 1
    assert desk.learn(other, new_labels=True)["version"] == 2
    assert desk.version("mood@v2").labels == ("contra", "pro")
    assert desk.version("mood@v1").labels == ("no", "yes")


def test_labels_that_another_job_changed_meanwhile_fail_the_publishing_and_nothing_else(desk: Desk) -> None:
    desk.submit(opinions(20))
    first = desk.claim()
    desk.learn(opinions(20, ("pro", "contra")))
    with pytest.raises(ConflictError):
        desk.run(first)
    assert [version.labels for version in desk.versions("mood")] == [("contra", "pro")]


def rows_as_seen(base: Base, z: np.ndarray, count: int, start: int = 200) -> list[dict[str, Any]]:
    """Rows that carry the label which `z` gives them."""
    engine = load_engine(base, "cpu")
    rows = opinions(count, start=start)
    ids = engine.encoder.encode([(row["text"], None) for row in rows])
    best = log_probabilities(engine, ids, z, engine.trie(["no", "yes"])).argmax(1)
    return [{**row, "label": ("no", "yes")[index]} for row, index in zip(rows, best, strict=True)]


def opposed(base: Base) -> tuple[np.ndarray, np.ndarray, list[dict[str, Any]]]:
    """Two embeddings that disagree, and rows that are labelled as the first sees them."""
    for seed in range(200):
        good = 3 * embedding_of(seed)
        rows = rows_as_seen(base, good, 40)
        if not 10 <= sum(row["label"] == "yes" for row in rows) <= 30:
            continue
        for other in range(200):
            bad = 3 * embedding_of(1000 + other)
            if sum(one != two for one, two in zip(rows, rows_as_seen(base, bad, 40), strict=True)) >= 18:
                return good, bad, rows
    raise AssertionError("no two embeddings of this base disagree")


def test_latest_stays_when_the_new_version_is_significantly_worse_and_moves_when_it_is_better(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    good, bad, test = opposed(tiny_base)
    trained_as(good)
    first = desk.learn(opinions(30), test=test, init="random")
    assert first["metrics"]["test"]["accuracy"]["value"] == 1.0
    assert first["latest"]["moved"]
    assert not first["weak"]
    trained_as(bad)
    second = desk.learn(opinions(30), test=test, init="random")
    assert second["version"] == 2
    assert not second["latest"]["moved"]
    assert second["latest"]["comparison"]["verdict"] == "worse"
    assert second["latest"]["comparison"]["newly_wrong"] >= 18
    assert second["latest"]["comparison"]["newly_right"] == 0
    assert desk.version("mood").version == 1
    assert desk.version("mood@v2").weak
    trained_as(good)
    third = desk.learn(opinions(30), test=test, init="random")
    assert third["latest"]["moved"]
    assert third["latest"]["comparison"]["verdict"] == "no significant difference"
    assert desk.version("mood").version == 3


def test_latest_moves_to_a_better_version(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, test = opposed(tiny_base)
    trained_as(bad)
    desk.learn(opinions(30), test=test, init="random")
    trained_as(good)
    better = desk.learn(opinions(30), test=test, init="random")
    assert better["latest"]["moved"]
    assert better["latest"]["comparison"]["verdict"] == "better"
    assert better["latest"]["comparison"]["newly_right"] >= 18
    assert desk.version("mood").version == 2


def test_rows_that_the_predecessor_has_trained_on_are_no_witnesses(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    good, bad, rows = opposed(tiny_base)
    trained_as(good)
    desk.learn(rows, init="random")
    trained_as(bad)
    second = desk.learn(opinions(30), test=rows, init="random")
    assert second["latest"]["comparison"] is None


def test_rows_that_both_versions_held_out_are_shared_witnesses(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, _ = opposed(tiny_base)
    rows = rows_as_seen(tiny_base, good, 120)
    trained_as(good)
    first = desk.learn(rows, init="random")
    trained_as(bad)
    second = desk.learn(rows, init="random")
    assert first["dataset"]["rows"]["validation"] == second["latest"]["comparison"]["rows"] == 30
    assert second["latest"]["comparison"]["verdict"] == "worse"
    assert not second["latest"]["moved"]
    other_draw = desk.learn(rows, init="random", seed=3)  # some of its held-out rows have trained the present version
    assert 0 < other_draw["latest"]["comparison"]["rows"] < 30


def test_a_scale_is_compared_by_values_even_when_its_range_has_changed(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    trained_as(embedding_of(1))
    asked = {"options": {"kind": "regression"}, "kind": "regression", "init": "random"}
    rows = opinions(40)
    narrow = [{**row, "label": round(1 + number / 39, 3)} for number, row in enumerate(rows)]
    test = [{**row, "label": 1.5} for row in opinions(30, start=200)]
    test[0]["label"] = 1.25
    desk.learn(narrow, "stars", test=test, **asked)
    wide = [{**row, "label": 100 * row["label"]} for row in narrow]
    second = desk.learn(wide, "stars", test=test, **asked)
    comparison = second["latest"]["comparison"]
    assert comparison["verdict"] == "worse"  # it answers 100 at least where 1.5 is right, the present one 2 at most
    assert comparison["increase"] > 9000
    assert not second["latest"]["moved"]
    desk.learn(wide, "percent", test=test, **asked)
    better = desk.learn(narrow, "percent", test=test, **asked)
    assert better["latest"]["comparison"]["increase"] < -9000
    assert better["latest"]["moved"]


# ---- crashes, cancelling, other attempts


def crash_after(stage: str) -> HookedProgress:
    def crash(what: str, name: str) -> None:
        if (what, name) == ("finished", stage):
            raise _CrashError

    return HookedProgress(crash)


def test_a_second_attempt_goes_on_after_the_last_finished_stage(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    job = desk.submit(opinions(24), init="sst2")
    first = desk.claim()
    with pytest.raises(_CrashError):
        desk.run(first, crash_after("probe"))
    desk.lose()
    second = desk.claim()
    assert (second.id, second.attempt) == (job.id, 2)
    monkeypatch.setattr(pipeline, "probe_exhaustively", _never)
    progress = RecordedProgress()
    result = desk.run(second, progress).result
    assert progress.stages == ["check", "train", "evaluate"]
    assert result is not None
    assert result["version"] == 1
    assert len(desk.versions("mood")) == 1
    assert set(result["seconds"]) == {*STAGES, "publish"}
    monkeypatch.undo()
    monkeypatch.setattr(pipeline, "FewShotSettings", partial(FewShotSettings, steps=5, batch=8))
    undisturbed = desk.learn(opinions(24), "undisturbed", init="sst2")
    assert undisturbed["embedding_digest"] == result["embedding_digest"]


def test_an_attempt_that_died_while_publishing_leaves_nothing_and_the_next_only_publishes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(opinions(24))
    with pytest.raises(_CrashError):
        desk.run(desk.claim(), HookedProgress(lambda what, name: _crash_at(what, name, "publish")))
    assert desk.jobs()[0].state is JobState.RUNNING
    desk.lose()
    for work_ in ("probe_exhaustively", "train_embedding", "out_of_fold", "judge"):
        monkeypatch.setattr(pipeline, work_, _never)
    assert desk.run(desk.claim()).state is JobState.SUCCEEDED
    assert [version.version for version in desk.versions("mood")] == [1]


def _crash_at(what: str, name: str, stage: str) -> None:
    if (what, name) == ("started", stage):
        raise _CrashError


def _never(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("this stage had finished before")


def test_a_stored_output_that_is_damaged_or_gone_is_made_again(desk: Desk, tiny_services: Services) -> None:
    for number, harm in enumerate((_damage, _remove)):
        desk.submit(opinions(24), f"task{number}")
        with pytest.raises(_CrashError):
            desk.run(desk.claim(), crash_after("train"))
        desk.lose()
        harm(tiny_services)
        progress = RecordedProgress()
        assert desk.run(desk.claim(), progress).state is JobState.SUCCEEDED
        assert progress.stages == STAGES


def _outputs(services: Services) -> Iterator[Path]:
    for path in (services.settings.resolved_home / "artifacts").rglob("*"):
        if path.is_file() and path.read_bytes().startswith(b'{"z"'):
            yield path


def _damage(services: Services) -> None:
    for path in _outputs(services):
        path.write_bytes(path.read_bytes()[:-9])


def _remove(services: Services) -> None:
    for path in _outputs(services):
        path.unlink()


@pytest.mark.parametrize("last", ["probe", "train"])
def test_a_job_that_is_cancelled_in_the_middle_stops_there_and_publishes_nothing(
    desk: Desk, tiny_services: Services, last: str
) -> None:
    job = desk.submit(opinions(24))

    def run(claimed: Job, services: Services, progress: Progress) -> None:
        pipeline.run(claimed, services, _Cancelling(progress, services, claimed.id, last))

    done = work(tiny_services, "worker", ["default"], run)
    assert done is not None
    assert (done.id, done.state, done.result) == (job.id, JobState.CANCELLED, None)
    assert desk.versions("mood") == []
    with tiny_services.database.read() as session:
        finished = [event.stage for event in EventRepository(session).list(job.id) if event.kind == "stage_finished"]
    assert finished[-1:] == [Stage(last)] if last == "probe" else [Stage.PROBE]
    with tiny_services.database.write() as session:
        JobRepository(session).retry(job.id)
    again = work(tiny_services, "worker", ["default"], pipeline.run)
    assert again is not None
    assert again.state is JobState.SUCCEEDED


class _Cancelling:
    """A progress that asks for cancelling once the probe has ended, or in the middle of the training."""

    def __init__(self, progress: Progress, services: Services, job: str, last: str) -> None:
        self._progress, self._services, self._job, self._last = progress, services, job, last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        self._progress.stage_finished(stage, seconds, numbers)
        if stage.value == self._last == "probe":
            self._ask()

    def note(self, message: str, **numbers: Any) -> None:
        self._ask()
        self._progress.note(message, **numbers)

    def stage_started(self, stage: Stage) -> None:
        self._progress.stage_started(stage)
        if stage.value == self._last == "train":
            self._ask()
            self._progress.note("a step")  # what is told hears of it

    def _ask(self) -> None:
        with self._services.database.write() as session:
            JobRepository(session).cancel(self._job)


def test_a_step_of_the_training_hears_of_the_cancelling(desk: Desk) -> None:
    desk.submit(opinions(24))
    told: list[str] = []
    progress = HookedProgress(lambda what, name: None)

    def cancel(what: str, name: str) -> None:
        told.append(name)
        if (what, name) == ("started", "train"):
            progress.cancelled = True

    progress._hook = cancel
    with pytest.raises(CancelledError):
        desk.run(desk.claim(), progress)
    assert told[-1] == "train"


def test_an_attempt_that_lost_its_job_cannot_publish(desk: Desk) -> None:
    desk.submit(opinions(24))
    first = desk.claim()
    desk.lose()
    second = desk.claim(pid=2)
    with pytest.raises(FencedError):
        desk.run(first)
    assert desk.versions("mood") == []
    assert desk.run(second).state is JobState.SUCCEEDED
    assert [version.version for version in desk.versions("mood")] == [1]


def test_a_worker_with_another_base_refuses_the_job(desk: Desk, other_base: Base, tiny_services: Services) -> None:
    desk.submit(opinions(24))
    job = desk.claim()
    changed = {**job.spec.to_json(), "base": str(other_base.folder)}
    with pytest.raises(PinMismatchError, match="submitted for base"):
        prepare(type(job.spec).from_json(changed), tiny_services)


# ---- two jobs of one task at once


def test_a_job_that_is_overtaken_while_it_publishes_packs_its_number_anew(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(opinions(24))
    desk.submit(opinions(26))
    slow, quick = desk.claim(), desk.claim(pid=2)
    store = Services.store
    overtaken: list[str] = []

    def store_late(self: Services, data: bytes, kind: str) -> str:
        if kind == "embedding" and not overtaken:
            overtaken.append(kind)
            desk.run(quick)
        return store(self, data, kind)

    monkeypatch.setattr(Services, "store", store_late)
    result = desk.run(slow).result
    assert result is not None
    assert result["version"] == 2
    _require_right_numbers(desk, tiny_services, {quick.id: 1, slow.id: 2})


def test_two_jobs_of_one_task_that_publish_at_once_get_two_numbers_and_files_that_carry_them(
    database: Database, tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))
    services = Services(Settings(home=tmp_path, base=str(tiny_base.folder)), database, store, "cpu")
    register_base(services, tiny_base)
    desk = Desk(services, tmp_path)
    attempts: list[Any] = []
    monkeypatch.setattr(pipeline, "publish", lambda *arguments: attempts.append(arguments))
    for count in (24, 26):
        desk.submit(opinions(count))
        desk.run(desk.claim(pid=count))
    barrier, next_number = threading.Barrier(2, timeout=30), VersionRepository.next_number
    waiting = threading.local()

    def read_at_once(self: VersionRepository, task: str) -> int:
        number = next_number(self, task)
        if not getattr(waiting, "done", False):
            waiting.done = True
            barrier.wait()  # both have read the same number
        return number

    monkeypatch.setattr(VersionRepository, "next_number", read_at_once)
    errors: list[BaseException] = []

    def run(arguments: Any) -> None:
        try:
            publish(*arguments)
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
            errors.append(error)

    threads = [threading.Thread(target=run, args=[arguments]) for arguments in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    numbers = {job.id: (job.result or {})["version"] for job in desk.jobs()}
    assert sorted(numbers.values()) == [1, 2]
    _require_right_numbers(desk, services, numbers)


def _require_right_numbers(desk: Desk, services: Services, numbers: dict[str, int]) -> None:
    versions = desk.versions("mood")
    assert {version.job: version.version for version in versions} == numbers
    for version in versions:
        path = desk.folder / f"{version.version}.safetensors"
        path.write_bytes(services.artifacts.get(version.artifact))
        with safe_open(path, framework="np") as file:
            assert file.metadata()["version"] == str(version.version)
            assert file.metadata()["dataset"] == version.dataset_digest


# ---- submitting


def test_what_is_refused_is_not_queued_and_rings_no_bell(desk: Desk) -> None:
    for wrong in (
        {"init": "nothing"}, {"init": "nothing@v3"}, {"init": "sst2@v9"}, {"init": "../x"}, {"method": "magic"},
        {"metric": "spearman"},
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


# ---- a full disk


def test_a_full_disk_is_told_leaves_no_half_file_and_a_retry_succeeds(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onboard import artifacts

    job = desk.submit(opinions(24))
    write = artifacts._write_atomically

    def full(target: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifacts, "_write_atomically", full)
    for attempt in range(1, 4):
        done = work(tiny_services, "worker", ["default"], pipeline.run)
        assert done is not None
        assert done.error is not None
        assert (done.attempt, done.error["code"]) == (attempt, "storage")
        assert "No space left on device" in done.error["message"]
        _let_it_be_due(tiny_services, job.id)
    assert desk.job(job.id).state is JobState.DEAD
    monkeypatch.setattr(artifacts, "_write_atomically", write)
    with tiny_services.database.write() as session:
        JobRepository(session).retry(job.id)
    again = work(tiny_services, "worker", ["default"], pipeline.run)
    assert again is not None
    assert again.state is JobState.SUCCEEDED
    assert again.error is None
    assert [version.version for version in desk.versions("mood")] == [1]


def _let_it_be_due(services: Services, job: str) -> None:
    from sqlalchemy import text

    with services.database.write() as session:
        session.execute(text("UPDATE jobs SET not_before_at = 0 WHERE id = :id"), {"id": job})


def test_a_claim_waits_out_its_back_off(desk: Desk, tiny_services: Services) -> None:
    desk.submit(opinions(24))

    def away(job: Job, services: Services, progress: Progress) -> None:
        raise StorageError("The disk is full.", "Free some space, then retry.")

    done = work(tiny_services, "worker", ["default"], away)
    assert done is not None
    assert done.state is JobState.QUEUED
    with tiny_services.database.write() as session:
        assert ClaimRepository(session).claim("worker", ["default"]) is None
