"""What earlier tasks are worth to a new one: accumulation, series and zero rows, on the tiny base with made rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from support.earlier_tasks import make_data
from support.heldout_rows import made
from support.tiny_teacher import make_teacher

from bench.accumulation import __main__ as accumulation
from bench.accumulation import page as accumulation_page
from bench.accumulation.plan import COUNTS, arm_of, parts_of
from bench.accumulation.plan import Wish as AccumulationWish
from bench.accumulation.plan import plan as accumulation_plan
from bench.harness.earlier_tasks import (
    base_of,
    first_tasks,
    lesson_from,
    lessons_digest,
    packed_lessons,
    prior_of,
    refit_prior,
    source_lessons,
)
from bench.harness.rows import Row
from bench.heldout.features import Features, encoder_features
from bench.heldout.figures import Results
from bench.heldout.material import LoadedBase, opened
from bench.heldout.plan import ArmRun
from bench.series import __main__ as series
from bench.series import page as series_page
from bench.series.material import all_series, dataset_of
from bench.series.plan import ARMS as SERIES_ARMS
from bench.series.plan import plan as series_plan
from bench.zero_rows import __main__ as zero_rows
from bench.zero_rows import page as zero_page
from bench.zero_rows.answers import Arms, TaskWithoutRows
from bench.zero_rows.plan import ARMS as ZERO_ARMS
from bench.zero_rows.plan import OF_DESCRIPTIONS
from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.domain.dataset import Dataset, Example
from onboard.making.pretrain.teacher import Teacher
from onboard.statistics.prior import Lesson

BENCHES = {accumulation: "accumulation", series: "series", zero_rows: "zero_rows"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def place(tiny_base: Base) -> LoadedBase:
    return opened(str(tiny_base.folder))


@pytest.fixture(scope="module")
def features(place: LoadedBase, tmp_path_factory: pytest.TempPathFactory) -> Features:
    return encoder_features(place, tmp_path_factory.mktemp("features"))


@pytest.fixture
def command(tiny_base: Base, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr("torch.set_num_threads", lambda number: None)
    monkeypatch.setattr(Teacher, "load", lambda: make_teacher(["film", "plot", "great", "awful", "good", "sad"]))
    for bench in BENCHES:
        monkeypatch.setattr(bench, "WORK", tmp_path / "work")

    def words(*more: str) -> list[str]:
        files = ["--output", str(tmp_path / "runs.jsonl"), "--table", str(tmp_path / "page.md")]
        return ["--base", str(tiny_base.folder), "--data", str(data), *more, *files]

    return words


def rows_of(folder: Path) -> list[Row]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text(encoding="utf-8").splitlines()]


def made_rows(by_arm: Mapping[str, list[float]], rows: int, draws: int = 2) -> Results:
    """Each arm's accuracy on `task-0`, `task-1` …"""
    return Results({
        run: made(run, accuracy)
        for arm, accuracies in by_arm.items()
        for place, accuracy in enumerate(accuracies)
        for run in (ArmRun(f"task-{place}", rows, draw, arm) for draw in range(draws))
    })  # fmt: skip


def test_fewer_tasks_are_the_first_of_more_and_each_draw_has_an_order_of_its_own() -> None:
    names = {f"task{number}" for number in range(50)}
    for fewer, more in ((0, 16), (16, 32), (32, 50)):
        assert first_tasks(names, more, 0)[:fewer] == first_tasks(names, fewer, 0)
    assert set(first_tasks(names, 127, 1)) == names
    assert first_tasks(names, 16, 0) != first_tasks(names, 16, 1)


def test_every_source_with_labels_teaches_and_no_held_out_task_does(
    place: LoadedBase, data: Path, features: Features
) -> None:
    lessons = source_lessons(place, data, features)
    assert set(lessons) == {"moods", "opinion", "quality"}
    assert {lesson.rows for lesson in lessons.values()} <= {40, 48}
    prior = prior_of(lessons, lessons["moods"].weights.shape[1])
    assert prior is not None
    assert set(prior.lessons) == set(lessons)
    assert prior_of(lessons, 999) is None, "no task has such a form"
    drawn = prior.weights(lessons["moods"].names)
    assert (drawn * lessons["moods"].weights).sum() > 0, "what was learned is said again"


def test_a_base_that_ships_lessons_is_asked_for_them(data: Path, features: Features) -> None:
    lesson = Lesson(np.zeros((2, 3)), np.zeros((2, 3)), 7)
    shipping: Any = SimpleNamespace(base=SimpleNamespace(lessons={"one": lesson}))
    assert source_lessons(shipping, data, features) == {"one": lesson}


def test_where_the_service_has_a_prior_it_is_fitted_to_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, services, base = list[Any](), object(), object()
    monkeypatch.setattr("bench.harness.earlier_tasks.find_spec", lambda name: None)
    refit_prior(services, base)  # type: ignore[arg-type]
    module = SimpleNamespace(refit=lambda *given: fitted.append(given[:2]))
    monkeypatch.setattr("bench.harness.earlier_tasks.find_spec", lambda name: name)
    monkeypatch.setattr("bench.harness.earlier_tasks.import_module", lambda name: module)
    refit_prior(services, base)  # type: ignore[arg-type]
    assert fitted == [(services, base)]


def test_a_label_without_a_row_teaches_nothing(features: Features) -> None:
    rows = tuple(Example(f"the {word} film {row}", None, word) for row in range(4) for word in ("great", "awful"))
    lesson = lesson_from("some", Dataset("classification", ("great", "awful", "sad"), rows), features)
    assert (len(lesson.names), lesson.rows) == (2, 8)
    assert lesson.is_finite


def test_a_base_that_has_learned_fewer_tasks_offers_no_other_embedding(
    fingerprinted_base: Base, tmp_path: Path
) -> None:
    document = json.loads((fingerprinted_base.folder / "base.json").read_text(encoding="utf-8"))
    assert {"sst2", "stsb"} <= document["sources"].keys()
    none = base_of(fingerprinted_base, [], tmp_path / "none")
    assert (none.sources, none.anchors) == ([], [])
    one = base_of(fingerprinted_base, ["stsb"], tmp_path / "one", b"packed")
    assert [source.name for source in one.sources] == ["stsb"]
    assert (tmp_path / "one" / "lessons.safetensors").read_bytes() == b"packed"
    every = base_of(fingerprinted_base, list(document["sources"]), tmp_path / "one")
    assert [anchor.name for anchor in every.anchors] == [anchor.name for anchor in fingerprinted_base.anchors]
    assert not (tmp_path / "one" / "lessons.safetensors").exists(), "what was there is replaced"
    assert load_engine(find_base(str(tmp_path / "none")), "cpu").encoder is not None


def test_the_lessons_of_fewer_tasks_are_those_of_the_whole_file(tmp_path: Path) -> None:
    base = Base(tmp_path, {})
    assert packed_lessons(base, {"one"}) is None
    assert lessons_digest(base) == ""
    tensors = {f"{task}.{part}": np.full(2, number) for number, task in enumerate(("one", "two")) for part in "ab"}
    facts = {"backbone": "sha256:0", "rows": json.dumps({"one": 240, "two": 30})}
    (tmp_path / "lessons.safetensors").write_bytes(save(tensors, metadata=facts))
    packed = packed_lessons(base, {"two", "three"})
    assert packed is not None
    assert {name: values.tolist() for name, values in load(packed).items()} == {"two.a": [1, 1], "two.b": [1, 1]}
    assert b'"sha256:0"' in packed
    assert b"240" not in packed
    assert len(lessons_digest(base)) == 16


def test_readouts_after_fewer_and_more_tasks_are_measured_go_on_and_stand_on_the_page(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command("--draws", "0", "--tasks", "mood,kind")
    assert accumulation.main([*words, "--counts", "0"]) == 0
    assert "4 of 4 runs" in capsys.readouterr().out
    assert accumulation.main(words) == 0
    assert "4 of 20 runs are in" in capsys.readouterr().out
    by_count = {parts_of(row["arm"])[1]: row for row in rows_of(tmp_path) if row["task"] == "mood" and row["rows"] == 4}
    assert set(by_count) == set(COUNTS)
    assert {count: row["tasks_of_form"] for count, row in by_count.items()} == {0: 0, 16: 3, 32: 3, 64: 3, 127: 3}
    assert by_count[16]["accuracy"] == by_count[127]["accuracy"], "there are but three"
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "## Readout with the prior of so many tasks" in page
    assert "| 127 tasks at least 4 points above none, n = 4 (readout) |" in page


def test_the_whole_default_runs_on_a_base_that_knows_so_many_tasks(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    words = command("--draws", "0", "--tasks", "mood", "--kinds", "default", "--rows", "4", "--counts", "0,127")
    assert accumulation.main(words) == 0
    rows = {row["arm"]: row for row in rows_of(tmp_path)}
    assert set(rows) == {"default-0", "default-127"}
    assert all(0 <= row["accuracy"] <= 100 for row in rows.values())
    assert "## The default, with the prior and the starts" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_runs_that_share_a_base_are_together() -> None:
    wish = AccumulationWish(("readout", "default"))
    runs = accumulation_plan(["a", "b"], wish)
    assert len(runs) == len(set(runs)) == 2 * 2 * 3 * 2 * len(COUNTS)
    bases = [(run.draw, run.arm) for run in runs if parts_of(run.arm)[0] == "default"]
    assert len(list(dict.fromkeys(bases))) == sum(one != two for one, two in zip([None, *bases], bases, strict=False))


def test_accumulation_is_judged_by_all_tasks_against_none_and_by_every_doubling() -> None:
    rising = {arm_of("readout", count): [40.0 + step, 42.0 + step] for step, count in enumerate(COUNTS)}
    lines = accumulation_page.verdicts(made_rows(rising, 4))
    assert "| 127 tasks at least 4 points above none, n = 4 (readout) | +4.0 (+4.0 to +4.0), 2 tasks | met |" in lines
    assert "| more with every doubling, n = 4 (readout) | +1.0, +1.0, +1.0, +1.0 | met |" in lines
    assert any("n = 16 (readout) | – | not measured yet |" in line for line in lines)
    flat = {**rising, arm_of("readout", 64): rising[arm_of("readout", 32)]}
    assert any("+0.0, +2.0 | **not met** |" in line for line in accumulation_page.verdicts(made_rows(flat, 4)))
    default = {**rising, **{arm_of("default", count): [50.0] for count in (0, 127)}}
    lines = accumulation_page.verdicts(made_rows(default, 4))
    assert "| 127 tasks at least 4 points above none, n = 4 (default) | +0.0, 1 task | **not met** |" in lines


def test_the_last_half_of_a_series_is_learned_with_and_without_its_first(
    command: Callable[..., list[str]], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own,) = all_series(data / "series")
    assert own.first_half == ("reviews-01_films",)
    assert own.last_half == ("reviews-02_plots", "reviews-03_books")
    assert len(dataset_of(data / "series", "reviews-02_plots").train) == 40
    assert series.main(command("--draws", "0,1")) == 0
    assert "16 of 16 runs" in capsys.readouterr().out
    rows = rows_of(tmp_path)
    assert {row["family"] for row in rows} == {"reviews"}
    assert {row["rows"] for row in rows} == {8}
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| reviews | 2 |" in page
    assert "all rows few less base" not in page
    assert "few less base | all less base" in page


def test_whole_jobs_of_a_series_run_where_its_first_half_was_learned(
    command: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = list[tuple[str, int]]()

    def publish(home: Path, cell: Any) -> Any:
        before = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
        home.mkdir(parents=True, exist_ok=True)
        (home / cell.task).touch()
        learned.append((cell.task, len(cell.dataset.train)))
        answers = np.full((len(cell.test), 2), 0.5)
        return SimpleNamespace(answers=answers, seconds=1.0, facts={}, before=before)

    monkeypatch.setattr("bench.series.arms.publish", publish)
    monkeypatch.setattr("bench.series.arms.opened_home", lambda home, place: nullcontext(home))
    monkeypatch.setattr("bench.series.arms.refit_prior", lambda home, base: learned.append(("refit", 0)))
    assert series.main(command("--draws", "0,1", "--arms", "default,default-few,default-all")) == 0
    first, second, third = "reviews-01_films", "reviews-02_plots", "reviews-03_books"
    of_draw = [(second, 8), (third, 8), (first, 8), ("refit", 0), (second, 8), (third, 8)]
    with_all = [(first, 40), ("refit", 0), (second, 8), (third, 8)]
    assert learned == [*of_draw, *with_all, *of_draw, (second, 8), (third, 8)]
    (home,) = (tmp_path / "work" / "series").iterdir()
    assert sorted(path.name for path in home.iterdir()) == [f"reviews-0-default-{how}" for how in ("all", "few")] + [
        "reviews-1-default-few"
    ], "only homes that are copied are left"


def test_a_series_job_is_published_in_a_home_that_has_learned_another(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert series.main(command("--draws", "0", "--arms", "default-few")) == 0
    assert [row["task"] for row in rows_of(tmp_path)] == ["reviews-02_plots", "reviews-03_books"]


def test_a_series_is_judged_by_its_mean_gain() -> None:
    results = made_rows({"base": [50.0, 60.0], "few": [54.0, 63.0], "default": [50.0], "default-few": [52.0]}, 8)
    whole, readout = series_page.verdicts(results)
    assert "+2.0, 1 task | **not met** |" in whole
    assert "+3.5 (-2.9 to +9.9), 2 tasks | met |" in readout
    runs = series_plan(["a-1", "b-1", "b-2"], (0, 1), tuple(SERIES_ARMS))
    assert len(runs) == len(set(runs)) == 3 * 2 * len(SERIES_ARMS)


def test_label_words_alone_are_measured_and_stand_beside_cosines_and_chance(
    command: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = tmp_path / "descriptions.json"
    texts.write_text(json.dumps({"mood": {"great": "the writer is pleased", "awful": "angry"}}), encoding="utf-8")
    monkeypatch.setattr(zero_rows, "DESCRIPTIONS", texts)
    assert zero_rows.main(command("--arms", "chance")) == 0
    assert zero_rows.main(command()) == 0
    arms = ZERO_ARMS.keys() - {"nli"}  # this base has not learned entailment
    expected = {("mood", arm) for arm in arms} | {("kind", arm) for arm in arms - set(OF_DESCRIPTIONS)}
    assert f"2 of {len(expected)} runs are in" in capsys.readouterr().out
    rows = {(row["task"], row["arm"]): row for row in rows_of(tmp_path)}
    assert set(rows) == expected
    assert (rows["mood", "chance"]["accuracy"], rows["kind", "chance"]["accuracy"]) == (50.0, 25.0)
    texts.write_text(json.dumps({"mood": {"great": "glad", "awful": "angry"}}), encoding="utf-8")
    assert zero_rows.main(command("--arms", "onboard,onboard-described")) == 0
    assert "2 of 3 runs are in" in capsys.readouterr().out, "other descriptions are another run"


def test_words_and_descriptions_are_read_as_a_job_without_rows_reads_them(place: LoadedBase, tmp_path: Path) -> None:
    texts = [Example(word, None, word) for word in ("great", "awful") for _ in range(5)]
    task = TaskWithoutRows("some", ("great", "awful"), ("awful", "great"), tuple(texts))
    features = encoder_features(place, tmp_path)
    arms = Arms(place, {}, features, None)
    words = arms.answer(task, "words")
    assert words.argmax(1).tolist() == [0] * 5 + [1] * 5
    assert np.allclose(arms.answer(task, "onboard"), words), "without a lesson there is no prior"
    assert np.allclose(arms.answer(task, "onboard-described"), 0.5), "descriptions of the opposite cancel the words"
    turned = lesson_from(
        "turned", Dataset("classification", ("great", "awful"), tuple(
            Example(f"{'awful' if word == 'great' else 'great'} {row}", None, word)
            for word in ("great", "awful") for row in range(20)
        )), features,
    )  # fmt: skip
    opposed = Arms(place, {"turned": turned}, features, None)
    assert np.abs(opposed.answer(task, "onboard") - words).max() > 0.01
    assert np.allclose(opposed.answer(task, "words"), words)


def test_entailment_answers_with_the_label_whose_sentence_follows_from_the_text(tmp_path: Path) -> None:
    place = opened("mini")
    texts = [Example(text, None, text) for text in ("The match ended with three goals.", "The bank raised its rates.")]
    task = TaskWithoutRows("some", ("football", "money"), (), tuple(texts))
    answers = Arms(place, {}, encoder_features(place, tmp_path), None).answer(task, "nli")
    assert np.allclose(answers.sum(1), 1)
    assert answers[0, 0] > answers[1, 0]


def test_zero_rows_are_judged_by_a_level_and_against_cosines() -> None:
    results = made_rows({"onboard": [52.0, 52.0], "minilm": [49.0, 49.0], "minilm-about": [50.0, 50.0]}, 0)
    level, described, words, about, _ = zero_page.verdicts(results)
    assert level.endswith("| 52.0 | met |")
    assert described.endswith("| not measured yet |")
    assert words.endswith("+3.0 (+3.0 to +3.0), 2 tasks | met |")
    assert about.endswith("| **not met** |")


@pytest.mark.parametrize("bench", BENCHES, ids=list(BENCHES.values()))
def test_what_is_not_there_is_said(
    bench: Any, command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert "skipped: the datasets are not here" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        bench.main(command("--kinds" if bench is accumulation else "--arms", "magic"))
    assert "magic; there are" in capsys.readouterr().err
