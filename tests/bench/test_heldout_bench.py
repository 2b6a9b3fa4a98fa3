"""The bench of held-out tasks on the tiny base with made rows: what it plans, measures and goes on from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.heldout_rows import made
from support.heldout_tasks import make_tasks
from support.tiny_teacher import make_teacher
from support.tiny_training import make_tiny_t5

from bench.heldout import __main__ as bench
from bench.heldout import arms, setfit_process, setfit_worker
from bench.heldout.families import Families, families, held_out
from bench.heldout.features import Features, of_encoder, of_teacher, of_teacher_layers
from bench.heldout.linear import logistic, scaled
from bench.heldout.material import Cells, opened, rarest_label, rows_of_labels
from bench.heldout.measures import of_classes
from bench.heldout.plan import ARMS, AS_THEY_COME, BALANCED, CHEAP, NATURAL_ARMS, SETFIT, ArmRun, Wish, part_of, plan
from bench.heldout.readouts import fit_alone
from bench.heldout.sharing import run_missing, runs_of
from onboard.bases import Base
from onboard.data.splits import is_folded
from onboard.domain.dataset import Example
from onboard.errors import NotFoundError
from onboard.making.pretrain.teacher import Teacher
from onboard.pipeline.readout import fit
from onboard.train import settings as training
from onboard.train.crossvalidation import fold_of, part_rows

WORKER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    counts = [asked["labels"].count(label) / len(asked["labels"]) for label in range(max(asked["labels"]) + 1)]
    print(json.dumps({"probabilities": [counts] * len(asked["asked"]), "seconds": 1.5}), flush=True)
"""


def write_worker(folder: Path) -> Path:
    """A worker that has learned how often labels come, in SetFit's place."""
    path = folder / "worker.py"
    path.write_text(WORKER, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tasks(tmp_path_factory.mktemp("wide"))


@pytest.fixture
def command(tiny_base: Base, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(bench, "PLACE", tmp_path / "work")
    monkeypatch.setattr(Teacher, "load", lambda: make_teacher(["film", "plot", "great", "awful", "good", "sad"]))
    monkeypatch.setattr(bench, "ENVIRONMENT", tmp_path / "setfit")
    monkeypatch.setattr(bench, "installed", lambda folder: Path(sys.executable))
    monkeypatch.setattr(bench, "model_folder", lambda: tmp_path / "minilm")
    monkeypatch.setattr(setfit_process, "_WORKER", write_worker(tmp_path))

    def words(*more: str) -> list[str]:
        return ["--base", str(tiny_base.folder), "--data", str(tasks), "--draws", "0", *more,
                "--output", str(tmp_path / "runs.jsonl"), "--table", str(tmp_path / "page.md")]  # fmt: skip

    return words


def test_families_are_those_of_the_tables_that_name_them(tasks: Path, tiny_base: Base) -> None:
    of_task = families(tasks)
    assert held_out(tasks) == ["degree", "kind", "mood"]
    assert {task: of_task[task] for task in ("mood", "degree", "kind", "rte")} == {
        "mood": "sentiment", "degree": "style", "kind": "topic", "rte": "nli",
    }  # fmt: skip
    of_base = Families(of_task, tiny_base)
    assert of_base.has("sentiment")
    assert not of_base.has("topic")
    assert [of_base.of_start(name) for name in ("sst2@v1", "topics-2", "random")] == ["sentiment", "", ""]


def test_a_folder_without_a_list_holds_out_all_its_tasks_and_the_targets_have_families(tmp_path: Path) -> None:
    for task in ("trec", "cb"):
        (tmp_path / task).mkdir()
    assert held_out(tmp_path) == ["cb", "trec"]
    assert [families(tmp_path)[task] for task in held_out(tmp_path)] == ["nli", "question"]


def test_what_a_probe_took_is_told_by_the_heaviest_part_of_a_mixture(tasks: Path, tiny_base: Base) -> None:
    of_base = Families(families(tasks), tiny_base)
    scores = [{"embedding": name} for name in ("mixture", "stsb@v1", "random", "sst2@v1")]
    init = {"chosen": "mixture", "candidates": scores, "weights": {"sst2@v1": 0.2, "stsb@v1": 0.8}}
    taken = of_base.taken("mood", init)
    assert (taken["start"], taken["start_family"]) == ("stsb@v1", "similarity")
    assert (taken["in_base"], taken["top1"], taken["top3"]) == (True, False, True)
    assert of_base.taken("mood", {"chosen": "sst2@v1", "candidates": scores, "weights": None})["top1"]
    assert not of_base.taken("kind", init)["in_base"]


def test_the_plan_holds_every_run_once_and_those_of_a_cell_together() -> None:
    runs = plan({"even": 0.5, "rare": 0.1}, Wish())
    assert len(runs) == len(set(runs)) == 4 * 3 * (2 * len(ARMS) - 1) + 3 * len(NATURAL_ARMS)
    assert SETFIT not in {run.arm for run in plan({"degree": 1.0}, Wish())}, "it learns no numbers"
    assert {run.task for run in runs if run.arm == BALANCED or run.sampling == AS_THEY_COME} == {"rare"}
    first, second = (part_of(runs, index, 2) for index in (1, 2))
    assert sorted([*first, *second]) == sorted(runs)
    assert {run.cell for run in first}.isdisjoint(run.cell for run in second)
    some = plan({"even": 0.5, "rare": 0.1}, Wish(("even",), ("readout",), (16,), (1,)))
    assert some == [ArmRun("even", 16, 1, "readout")]


def test_a_cell_has_the_labels_of_its_rows_and_is_asked_for_all(tiny_base: Base, tasks: Path) -> None:
    cells = Cells(opened(str(tiny_base.folder)), tasks)
    cell = cells.of(ArmRun("kind", 4, 0, "readout"))
    assert cells.of(ArmRun("kind", 4, 0, "full")) is cell
    assert rows_of_labels(cell) == [1, 1, 1, 1]
    few = cells.of(ArmRun("kind", 3, 0, "readout"))
    assert len(few.dataset.labels) == 3
    assert [few.labels[column] for column in few.columns] == list(few.dataset.labels)
    assert set(few.truth) == {0, 1, 2, 3}, "rows of the label that the draw lacks are tested too"
    assert few.test == cell.test
    natural = cells.of(ArmRun("kind", 40, 0, "readout", AS_THEY_COME))
    assert max(rows_of_labels(natural)) > 15 > 10 >= max(rows_of_labels(cells.of(ArmRun("kind", 40, 0, "readout")))) - 6


def test_shares_of_rare_labels_are_those_of_all_rows(tasks: Path) -> None:
    assert rarest_label(tasks / "mood") == 0.5
    assert rarest_label(tasks / "kind") < 0.1
    assert rarest_label(tasks / "degree") == 1.0


def test_figures_of_a_run_are_those_of_its_probabilities() -> None:
    truth, probabilities = np.array([0, 0, 1, 2]), np.array([[0.9, 0.1, 0], [0.4, 0.6, 0], [0.2, 0.8, 0], [1.0, 0, 0]])
    figures = of_classes(truth, probabilities, np.array([3, 3, 0]))
    assert figures["accuracy"] == 50.0
    assert figures["macro_f1"] == pytest.approx(100 * (2 / 4 + 2 / 3 + 0) / 3, abs=0.01)
    assert figures["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.8]).mean(), abs=1e-4)
    assert figures["calibration"] == pytest.approx((0.1 + 0.6 + 0.2 + 1.0) / 4, abs=1e-4)


def test_features_are_read_once_and_are_still_there_in_another_process(tmp_path: Path) -> None:
    asked: list[int] = []

    def read(rows: object) -> np.ndarray:
        assert isinstance(rows, list)
        asked.append(len(rows))
        return np.array([[len(row.text_a), 1.0] for row in rows], dtype=np.float32)

    rows = [Example("a", None, "x"), Example("bb", None, "y"), Example("a", None, "z")]
    features = Features(read, tmp_path)
    assert features.of("mood", rows)[:, 0].tolist() == [1, 2, 1]
    assert Features(read, tmp_path).of("mood", [*rows, Example("ccc", None, "x")])[:, 0].tolist() == [1, 2, 1, 3]
    assert features.of("kind", rows[:1]).tolist() == [[1, 1]]
    assert asked == [2, 1, 1]


def test_the_teacher_tells_of_a_pair_both_texts_and_how_they_differ() -> None:
    read = of_teacher(make_teacher(["film", "plot"]))
    single, pair = read([Example("film", None, "x")]), read([Example("film", "plot", "x")])
    width = single.shape[1]
    u, v = pair[0, :width], pair[0, width : 2 * width]
    assert np.allclose(u, single[0], atol=1e-3)
    assert np.allclose(pair[0, 2 * width :], np.concatenate([abs(u - v), u * v]))


def test_our_readout_sees_of_the_teacher_three_layers_and_what_parts_a_pair() -> None:
    teacher = make_teacher(["film", "plot"])
    read = of_teacher_layers(teacher)
    rows = [Example("film", "plot plot", "x"), Example("a long film", "plot", "y")]
    single, pairs = read([Example("film", None, "x")]), read(rows)
    assert single.shape == (1, 3 * teacher.size)
    assert pairs.shape == (2, 6 * teacher.size)
    ids = teacher.tokenizer("film", return_tensors="pt")["input_ids"]
    states = teacher.model(input_ids=ids, output_hidden_states=True).hidden_states
    layers = [state.mean(1).detach().numpy() for state in (states[-1], states[1], states[-2])]
    assert np.allclose(single, np.hstack(layers), atol=1e-5)
    assert np.allclose(pairs[0], read(rows[:1])[0], atol=1e-5), "padding counts for nothing"
    assert np.abs(pairs[:, 3 * teacher.size :]).max() > 0.01
    swapped = read([Example("plot plot", "film", "x")])
    assert not np.allclose(swapped[0, 3 * teacher.size :], pairs[0, 3 * teacher.size :])


def test_a_long_pair_is_cut_to_what_the_teacher_reads() -> None:
    read = of_teacher_layers(make_teacher(["film", "plot"]))
    assert np.isfinite(read([Example("film " * 400, "plot " * 400, "x")])).all()


@pytest.mark.parametrize(("task", "rows"), [("mood", 16), ("mood", 100), ("degree", 16)])
def test_the_readout_of_rows_alone_is_that_of_a_job_which_knows_no_earlier_task(
    tiny_base: Base, tasks: Path, tmp_path: Path, task: str, rows: int
) -> None:
    place = opened(str(tiny_base.folder))
    cell = Cells(place, tasks).of(ArmRun(task, rows, 0, "readout"))
    alone = fit_alone(cell, Features(of_encoder(place.engine), tmp_path))
    parted = part_rows(cell.bench.dataset, 0) if is_folded(cell.bench.dataset) else []
    fold = fold_of(len(cell.bench.dataset.train), parted) if parted else None
    of_job = fit(cell.bench, fold, lambda: None)
    assert (alone.ridge, alone.sharpness) == (of_job.ridge, of_job.sharpness)
    assert np.allclose(alone.probabilities, of_job.probabilities, atol=1e-3)


def test_setfit_answers_from_a_process_and_gets_pairs_as_one_text(
    tiny_base: Base, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setfit_process, "_WORKER", write_worker(tmp_path))
    cell = Cells(opened(str(tiny_base.folder)), tasks).of(ArmRun("kind", 40, 0, SETFIT))
    with setfit_process.SetFit(Path(sys.executable), tmp_path, tmp_path / "said.log") as setfit:
        first, second = setfit.answer(cell), setfit.answer(cell)
    assert first.answers.shape == (len(cell.test), len(cell.dataset.labels))
    assert first.answers[0] == pytest.approx(np.bincount(cell.train_labels) / 40)
    assert (first.answers == second.answers).all()
    assert first.seconds == 1.5
    assert setfit_process.text_of(Example("a", "b", "x")) == "a [SEP] b"
    assert setfit_process.text_of(Example("a", None, "x")) == "a"


def test_a_process_that_ends_tells_its_last_words(
    tiny_base: Base, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").write_text("import sys; sys.stdin.readline(); raise SystemExit('no memory left')")
    monkeypatch.setattr(setfit_process, "_WORKER", tmp_path / "worker.py")
    cell = Cells(opened(str(tiny_base.folder)), tasks).of(ArmRun("kind", 16, 0, SETFIT))
    with (
        setfit_process.SetFit(Path(sys.executable), tmp_path, tmp_path / "said.log") as setfit,
        pytest.raises(RuntimeError, match="no memory left"),
    ):
        setfit.answer(cell)


def test_the_worker_trains_with_the_defaults_of_the_release_and_what_the_recipe_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = dict[str, Any]()

    class Model:
        @classmethod
        def from_pretrained(cls, folder: str, device: str) -> Model:
            given.update(folder=folder, device=device)
            return cls()

        def predict_proba(self, asked: list[str], **_: object) -> np.ndarray:
            return np.full((len(asked), 2), 0.5)

    class Trainer:
        def __init__(self, model: Model, args: dict[str, Any], train_dataset: Any) -> None:
            given.update(args=args, rows=train_dataset)

        def train(self) -> None:
            given["trained"] = True

    module = SimpleNamespace(SetFitModel=Model, Trainer=Trainer, TrainingArguments=dict)
    monkeypatch.setitem(sys.modules, "setfit", module)
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(Dataset=SimpleNamespace(from_dict=dict)))
    request = {"texts": ["a", "b"], "labels": [0, 1], "asked": ["c"], "seed": 2, "device": "cpu", "recipe": {"x": 20}}
    reply = setfit_worker.answer("minilm", request)
    assert reply["probabilities"] == [[0.5, 0.5]]
    assert given["trained"]
    assert (given["folder"], given["device"]) == ("minilm", "cpu")
    assert given["rows"] == {"text": ["a", "b"], "label": [0, 1]}
    assert given["args"].keys() == {"seed", "output_dir", "report_to", "save_strategy", "show_progress_bar", "x"}


def test_setfit_is_installed_once_and_what_the_installer_says_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = list[list[str]]()

    def create(folder: Path, **_: object) -> None:
        (folder / "lib" / "python3" / "site-packages").mkdir(parents=True)

    def run(command: list[str], **_: object) -> None:
        commands.append(command)
        if len(commands) == 1:
            raise subprocess.CalledProcessError(1, command, stderr="much\nERROR: no such release\n")

    monkeypatch.setattr(setfit_process.venv, "create", create)
    monkeypatch.setattr(setfit_process.subprocess, "run", run)
    with pytest.raises(NotFoundError, match="ERROR: no such release"):
        setfit_process.installed(tmp_path / "one")
    for _ in range(2):
        assert setfit_process.installed(tmp_path / "two") == tmp_path / "two" / "bin" / "python"
    assert len(commands) == 2
    assert setfit_process.RELEASE in commands[1]
    shared = next((tmp_path / "two").rglob("shared.pth")).read_text(encoding="utf-8")
    assert "site-packages" in shared


def test_where_setfit_cannot_be_installed_its_arm_is_left_out_with_a_sentence(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def refused(folder: Path) -> Path:
        raise NotFoundError("SetFit cannot be installed: no network.", "Try: pip install setfit")

    monkeypatch.setattr(bench, "installed", refused)
    assert bench.main(command("--arms", "setfit,tfidf", "--rows", "16", "--tasks", "mood")) == 0
    assert "left out: setfit. SetFit cannot be installed: no network." in capsys.readouterr().out
    assert "SetFit on MiniLM 1)" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_logistic_regression_separates_what_can_be_separated() -> None:
    train, test = scaled(np.array([[0.0, 5], [1, 5], [9, 5], [10, 5]]), np.array([[-3.0, 5], [12, 5]]))
    assert np.allclose(train.mean(0), 0)
    assert (train**2).sum(1).mean() == pytest.approx(1)
    probabilities = logistic(train, np.array([1, 1, 0, 0]), test)
    assert probabilities.argmax(1).tolist() == [1, 0]
    assert np.allclose(probabilities.sum(1), 1)


def test_finished_runs_stay_and_runs_of_other_settings_are_made(tmp_path: Path) -> None:
    work, measured = tmp_path / "runs.jsonl", list[ArmRun]()
    runs = [ArmRun("mood", 16, draw, "lora") for draw in (0, 1)]

    def measure(run: ArmRun) -> dict[str, object]:
        measured.append(run)
        return {"accuracy": 50.0, "seconds": 1.0}

    run_missing(runs, measure, {"lora": {"rates": (1,)}}, work)
    work.write_bytes(work.read_bytes()[:-15])  # killed while it wrote the second
    run_missing(runs, measure, {"lora": {"rates": (1,)}}, work)
    assert measured == [*runs, runs[1]]
    assert set(runs_of(runs, {"lora": {"rates": [1]}}, work)) == set(runs)
    assert not runs_of(runs, {"lora": {"rates": [2]}}, work)
    assert set(runs_of(runs[:1], {"lora": {"rates": [1]}}, work)) == {runs[0]}


def test_when_the_time_is_up_no_further_run_begins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, clock = [ArmRun("mood", 16, draw, "lora") for draw in range(3)], iter([0.0, 0.0, 3600.0])
    run_missing(
        runs, lambda run: made(run, 50.0), {"lora": {}}, tmp_path / "runs.jsonl", 1.0, lambda: next(clock)
    )  # fmt: skip
    assert len(runs_of(runs, {"lora": {}}, tmp_path / "runs.jsonl")) == 1
    assert "2 runs are left" in capsys.readouterr().out


def test_the_command_measures_every_arm_goes_on_and_writes_its_page(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command("--rows", "16", "--tasks", "kind")
    assert bench.main([*words, "--arms", "embedding,tfidf"]) == 0
    assert "2 of 2 runs" in capsys.readouterr().out
    assert bench.main(words) == 0
    assert "2 of 12 runs are in" in capsys.readouterr().out
    rows = {row["arm"]: row for row in map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())}
    assert set(rows) == set(ARMS)
    assert all(0 <= row["accuracy"] <= 100 and row["seconds"] >= 0 for row in rows.values())
    assert {row["family"] for row in rows.values()} == {"topic"}
    assert {"chosen", "share", "tuning_tried", "tuning_kept"} <= rows["default"].keys()
    assert rows["random"]["chosen"] == "random"
    assert rows["tfidf"]["accuracy"] > 90, "a word tells the label"
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "## n = 16" in page
    assert "not made" not in page


def test_numbers_are_learned_too_and_told_by_their_correlation(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert bench.main(command("--rows", "16", "--tasks", "degree", "--arms", "default,readout,lora,encoder,tfidf")) == 0
    rows = {row["arm"]: row for row in map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())}
    assert len(rows) == 5
    assert all("accuracy" not in row and -100 <= row["spearman"] <= 100 for row in rows.values())
    assert rows["tfidf"]["spearman"] > 50
    assert "Labels that are numbers (degree)" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_an_encoder_is_judged_without_any_training_and_without_a_page(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(arms, "learn", None)
    assert bench.main(command("--encoder", "--tasks", "mood,kind")) == 0
    printed = capsys.readouterr().out
    assert "at or above MiniLM's, n = 32" in printed
    assert "By family" in printed
    assert not (tmp_path / "page.md").exists()
    rows = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert {(row["arm"], row["rows"]) for row in rows} == {(arm, count) for arm in CHEAP for count in (16, 32)}


def test_a_bare_backbone_is_judged_as_an_encoder_and_refused_otherwise(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_tiny_t5(tmp_path / "bare")
    words = [*command("--tasks", "mood", "--rows", "16"), "--base", str(folder)]
    assert bench.main(words) == 2
    assert "--encoder" in capsys.readouterr().out
    assert bench.main([*words, "--encoder"]) == 0
    rows = {row["arm"]: row for row in map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())}
    assert set(rows) == set(CHEAP)
    assert rows["readout"]["accuracy"] > 50


def test_without_the_teacher_its_arm_is_left_out_with_a_sentence(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.undo()
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(bench, "PLACE", tmp_path / "work")
    monkeypatch.setattr("onboard.making.pretrain.teacher.find_spec", lambda name: None)
    assert bench.main(command("--arms", "minilm,tfidf", "--rows", "16", "--tasks", "mood")) == 0
    assert arms.NO_TEACHER in capsys.readouterr().out
    assert "1 run of the plan was not made" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_what_is_not_there_is_said(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert "skipped: the datasets are not here" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bench.main(command("--arms", "magic"))
    assert "there is no arm magic" in capsys.readouterr().err


def test_a_change_of_the_training_is_another_run(tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.heldout import settings

    place = opened(str(tiny_base.folder))
    before = settings.settings_of(place)
    changed = training.FewShotSettings(steps=7)
    monkeypatch.setattr(settings, "FewShotSettings", lambda: changed)
    after = settings.settings_of(place)
    assert {arm for arm in ARMS if before[arm] != after[arm]} == {"default", "embedding", "random"}
