"""The stream bench on the tiny base with made rows: its tasks, what each method does to earlier ones, going on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.stream_rows import made_step, make_datasets

from bench.harness import as_a_job
from bench.harness.as_a_job import Lesson
from bench.harness.rows import finished, packed
from bench.stream import __main__ as bench
from bench.stream import learning, walking
from bench.stream.figures import Results
from bench.stream.learning import advance, begin, from_hex, right_of, to_hex
from bench.stream.material import Material
from bench.stream.methods import AUTO, FROZEN, GUARDED, LORA, METHODS, NAIVE, REGULARISED, Method
from bench.stream.sharing import Journal, Stream
from bench.stream.sizes import sizes, version_bytes
from bench.stream.state import State
from bench.stream.tasks import NAMED, TASKS, drawn, in_order
from bench.stream.walking import walk
from bench.transfer.recipes import Recipe
from onboard.bases import Base
from onboard.data.hashes import row_hashes
from onboard.errors import DamagedError, JobFailedError
from onboard.guard import Judgement
from onboard.model.interpolate import between
from onboard.model.weights import hypernetwork_digest
from onboard.probe.settings import FinalSettings, ProbeSettings
from onboard.train import worth_tuning
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.step_length import LossByShare
from onboard.train.worth_tuning import EmbeddingAlone, Worth

NAMES = ("imdb", "good-bad", "trec-three")
QUICK = TuningSettings(steps=2, most_steps=2, learning_rate=0.01, sampled=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_datasets(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    short = FewShotSettings(steps=2, most_steps=2, learning_rate=0.3, seeds=1, curve=())
    monkeypatch.setattr(as_a_job, "SETTINGS", short)
    monkeypatch.setattr(learning, "PROBE", ProbeSettings(finals=FinalSettings(steps=0)))
    monkeypatch.setattr(learning, "LORA_RECIPE", Recipe(0.01, 4))
    for name, method in METHODS.items():
        if method.tuning:
            guarded = method.guard and replace(method.guard, texts=8)
            quick = replace(method, tuning=replace(QUICK, beta=method.tuning.beta), guard=guarded)
            monkeypatch.setitem(METHODS, name, quick)


@pytest.fixture
def material(tiny_base: Base, data: Path) -> Material:
    return Material(tiny_base, data, shots=12, test_rows=10)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "steps.jsonl", {method: {} for method in METHODS})


def walked(material: Material, journal: Journal, weights: Path, method: str, **more: Any) -> list[dict[str, Any]]:
    stream = Stream(0, method)
    walk(material, stream, NAMES, journal, weights, **more)
    return [{key: value for key, value in row.items() if key != "seconds"} for row in journal.steps().get(stream, [])]


def test_there_are_seven_tasks_as_they_are_and_eight_made_ones() -> None:
    assert len(TASKS) == len(NAMED) == 15
    assert sum(task.made for task in TASKS) == 8


def test_no_two_tasks_share_a_row(data: Path) -> None:
    seen: dict[int, str] = {}
    for task in TASKS:
        dataset, test = drawn(data, task.name, 1000, 0, 1000)
        assert len(dataset.train) >= 6
        assert len(test) >= 6
        for row in {*row_hashes(dataset.train), *row_hashes(test)}:
            assert seen.setdefault(row, task.name) == task.name


@pytest.mark.parametrize(
    ("name", "labels", "pairs"),
    [("imdb", ("negative", "positive"), False), ("good-bad", ("bad", "good"), False),
     ("trec-three", ("human", "location", "number"), False), ("alike", ("alike", "different"), True),
     ("contradicted", ("contradicted", "possible"), True), ("topic", ("business", "film"), False),
     ("text-kind", ("example", "news", "question", "review"), False), ("paraphrases", ("different", "same"), True)],
)  # fmt: skip
def test_a_made_task_has_the_labels_that_it_says(data: Path, name: str, labels: Sequence[str], pairs: bool) -> None:
    dataset, test = drawn(data, name, 12, 0, 100)
    assert dataset.labels == tuple(labels)
    assert {row.label for row in (*dataset.train, *test)} == set(labels)
    assert {row.text_b is not None for row in (*dataset.train, *test)} == {pairs}


def test_a_renamed_row_keeps_its_meaning(data: Path) -> None:
    dataset, _ = drawn(data, "good-bad", 12, 0, 1)
    assert all(("great" in row.text_a) == (row.label == "good") for row in dataset.train)


def test_orders_differ_in_tasks_and_draws_and_not_in_test_rows(data: Path) -> None:
    names = [task.name for task in TASKS]
    orders = [in_order(names, order) for order in range(3)]
    assert all(sorted(order) == sorted(names) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    (first, test), (second, same) = (drawn(data, "imdb", 12, order, 8) for order in (0, 1))
    assert first.train != second.train
    assert test == same


def test_frozen_no_earlier_task_changes_by_a_bit(material: Material, journal: Journal, tmp_path: Path) -> None:
    rows = walked(material, journal, tmp_path, FROZEN)
    assert [row["unchanged"] for row in rows] == [0, 1, 2]
    assert len({row["head"] for row in rows}) == 1
    results = Results({Stream(0, FROZEN): rows}, [in_order(NAMES, 0)])
    matrix = results.matrix(FROZEN, 0)
    for place in range(len(NAMES)):
        assert (matrix[place:, place] == matrix[place, place]).all()
    assert "random" in rows[0]


def test_a_frozen_hypernetwork_that_generates_other_weights_is_an_error(material: Material) -> None:
    state = State.first(material.engine.hypernetwork, material.base.known_rows)
    begun = begin(material, "imdb", 0, state)
    _, state = advance(material, FROZEN, "imdb", 0, state, [], begun)
    other = replace(state, learned=tuple(replace(task, generated="0" * 64) for task in state.learned))
    begun = begin(material, "good-bad", 0, other)
    with pytest.raises(DamagedError):
        advance(material, FROZEN, "good-bad", 0, other, ["00"], begun)


def test_without_a_guard_the_head_moves_and_every_earlier_task_is_measured_under_it(
    material: Material, journal: Journal, tmp_path: Path
) -> None:
    weights = hypernetwork_digest(material.engine.hypernetwork)
    rows = walked(material, journal, tmp_path, NAIVE)
    assert len({row["head"] for row in rows} | {weights}) == 4
    assert [row["unchanged"] for row in rows] == [0] * 3
    assert [len(row["correct"]) for row in rows] == [1, 2, 3]
    assert hypernetwork_digest(material.engine.hypernetwork) == weights, "the shared hypernetwork was trained"


def test_earlier_tasks_are_measured_anew_only_under_a_head_that_moved(material: Material) -> None:
    state = State.first(material.engine.hypernetwork, material.base.known_rows)
    _, state = advance(material, FROZEN, "imdb", 0, state, [], begin(material, "imdb", 0, state))
    begun = begin(material, "good-bad", 0, state)
    row, after = advance(material, NAIVE, "good-bad", 0, state, ["what it was"], begun)
    engine = material.engine.under(after.hypernetwork)
    answers = [right_of(engine, material.of(task.task, 0), task.z, task.words) for task in after.learned]
    assert [packed(right) for right in answers] == row["correct"]
    row, _ = advance(material, FROZEN, "good-bad", 0, state, ["what it was"], begun)
    assert row["correct"][0] == "what it was"


def judged(share: float) -> Callable[..., Judgement]:
    verdict: Any = "accepted" if share else "rejected"
    return lambda *_, **__: Judgement(verdict, share, (), "said so", 0.02)


def test_what_the_guard_rejects_is_published_as_the_embedding_alone_under_the_old_head(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "guard", judged(0.0))
    rows, frozen = (walked(material, journal, tmp_path, method) for method in (GUARDED, FROZEN))
    assert [row["z"] for row in rows] == [row["embedding"] for row in rows] == [row["z"] for row in frozen]
    assert {row["head"] for row in rows} == {hypernetwork_digest(material.engine.hypernetwork)}
    assert rows[-1]["correct"] == frozen[-1]["correct"]


@pytest.mark.parametrize("worth", [Worth(True, "It is no better than TF-IDF."), Worth(False, "It is good as it is.")])
def test_the_rule_is_asked_about_rows_that_were_predicted_without_themselves(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: Worth
) -> None:
    asked: list[EmbeddingAlone] = []
    monkeypatch.setattr(as_a_job, "worth_tuning", lambda alone: asked.append(alone) or worth)  # type: ignore[func-returns-value]
    monkeypatch.setattr(Lesson, "losses", lambda _, shares, *__: LossByShare(5.0, {share: -share for share in shares}))
    monkeypatch.setattr(learning, "guard", judged(0.5))
    rows = walked(material, journal, tmp_path, AUTO)
    assert [row["worth"] for row in rows] == [asdict(worth)] * 3
    assert [row["share"] for row in rows] == [0.5 if worth.tune else 0.0] * 3
    assert [worth.rows for worth in asked] == [12] * 3
    assert all(worth.majority is not None and worth.tfidf is not None for worth in asked)
    monkeypatch.setattr(worth_tuning, "MOST_FITTED", 5)
    scored: list[int] = []
    monkeypatch.setattr(
        as_a_job, "log_probabilities", lambda _, ids, *__, **___: scored.append(len(ids)) or -np.ones((len(ids), 1))
    )  # type: ignore[func-returns-value]
    assert asked[-1].training_loss() == 1.0
    assert scored == [5]


@pytest.mark.parametrize(
    ("method", "losses", "proposed", "taken"),
    [
        (AUTO, {1.0: 8.0, 0.5: 7.0, 0.25: 9.0, 0.125: 9.0}, 0.0, 0.0),
        (GUARDED, {1.0: 8.0, 0.5: 7.0, 0.25: 9.0, 0.125: 9.0}, 0.125, 0.125),
        (AUTO, {1.0: 0.1, 0.5: 7.0, 0.25: 9.0, 0.125: 9.0}, 1.0, 0.0),
        (AUTO, {1.0: 0.2, 0.5: 0.1, 0.25: 0.2, 0.125: 0.3}, 0.5, 0.5),
    ],
)
def test_the_new_task_says_how_much_of_the_step_it_wants_before_the_guard_and_whether_it_gained_after(
    material: Material,
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    losses: dict[float, float],
    proposed: float,
    taken: float,
) -> None:
    monkeypatch.setattr(as_a_job, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(
        Lesson, "losses", lambda _, shares, *__: LossByShare(5.0, {share: losses.get(share, 9.0) for share in shares})
    )
    monkeypatch.setattr(learning, "guard", judged(0.5 if proposed == 1.0 else 1.0))
    rows = walked(material, journal, tmp_path, method)
    assert [row["proposed"] for row in rows] == [proposed] * 3
    assert [row["share"] * row["proposed"] for row in rows] == [taken] * 3
    assert all((row["z"] == row["embedding"]) is (taken == 0.0) for row in rows)
    assert all(("guard" in row) is (proposed > 0.0) for row in rows)


def test_half_a_step_lies_between_the_head_and_what_was_tuned(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(learning, "guard", lambda _, step, protection, *more, **__: seen.append(
        (step.candidate, step.present, protection.tasks)) or judged(0.5)())  # fmt: skip
    rows = walked(material, journal, tmp_path, GUARDED)
    assert [row["share"] for row in rows] == [0.5] * 3
    for row, (candidate, present, _) in zip(rows, seen, strict=True):
        assert row["head"] == hypernetwork_digest(between(present, candidate, 0.5))
        assert row["z"] != row["embedding"]
    shipped = [source.name for source in material.base.sources]
    assert [task.name for task in seen[-1][2]] == [*shipped, *in_order(NAMES, 0)[:2]]
    origins = [hypernetwork_digest(task.reference) for task in seen[-1][2]]
    assert origins == [hypernetwork_digest(material.engine.hypernetwork)] * 2 + [row["head"] for row in rows[:2]]


def test_the_regulariser_holds_what_came_before_and_naive_tuning_holds_nothing(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    real = as_a_job.tune

    def counted(engine: Any, training_set: Any, z: Any, protection: Any, *more: Any) -> Any:
        held.append(len(protection.tasks))
        return real(engine, training_set, z, protection, *more)

    monkeypatch.setattr(as_a_job, "tune", counted)
    walked(material, journal, tmp_path, REGULARISED)
    walked(material, journal, tmp_path, NAIVE)
    assert held == [2, 3, 4, 0, 0, 0]


def test_a_tuning_that_diverges_leaves_the_embedding_alone(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverges(*_: Any, **__: Any) -> Any:
        raise JobFailedError("Tuning the hypernetwork diverged.")

    monkeypatch.setattr(as_a_job, "tune", diverges)
    rows = walked(material, journal, tmp_path, NAIVE)
    assert all(row["share"] == 0 and row["z"] == row["embedding"] and row["trouble"] for row in rows)


def test_a_lora_of_each_task_leaves_the_others_answers_as_they_were(
    material: Material, journal: Journal, tmp_path: Path
) -> None:
    rows = walked(material, journal, tmp_path, LORA)
    assert [row["correct"][:2] for row in rows[1:]] == [rows[1]["correct"]] * 2
    assert rows[0]["parameters"] > 0


@pytest.mark.parametrize("method", [FROZEN, REGULARISED, LORA])
def test_a_stream_that_was_stopped_goes_on_to_the_same_end(
    material: Material, journal: Journal, tmp_path: Path, method: str
) -> None:
    stream = Stream(0, method)
    rows = walked(material, journal, tmp_path, method, time_is_up=lambda: len(journal.steps().get(stream, [])) == 2)
    assert len(rows) == 2
    with journal.path.open("a") as file:
        file.write('{"order": 0, "met')  # killed while writing
    on = walked(material, journal, tmp_path, method)
    other = Journal(tmp_path / "unbroken.jsonl", {method: {}})
    assert on == walked(material, other, tmp_path / "elsewhere", method)
    assert not [*tmp_path.rglob("*.safetensors")], "a stream at its end needs no hypernetworks"


def test_a_stream_whose_hypernetworks_are_gone_starts_anew(
    material: Material, journal: Journal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Stream(0, NAIVE)
    walked(material, journal, tmp_path, NAIVE, time_is_up=lambda: len(journal.steps().get(stream, [])) == 2)
    rows = walked(material, journal, tmp_path / "elsewhere", NAIVE)
    assert "starts anew" in capsys.readouterr().out
    other = Journal(tmp_path / "unbroken.jsonl", {NAIVE: {}})
    assert rows == walked(material, other, tmp_path / "other", NAIVE)


def test_a_stream_that_began_anew_and_was_stopped_again_has_no_step_of_its_first_walk(
    material: Material, journal: Journal, tmp_path: Path
) -> None:
    stream = Stream(0, NAIVE)
    for weights, steps in (("here", 2), ("elsewhere", 1)):
        begun = len(list(finished(journal.path)))
        walked(
            material, journal, tmp_path / weights, NAIVE,
            time_is_up=lambda end=begun + steps: len(list(finished(journal.path))) == end,
        )  # fmt: skip
    assert len(journal.steps()[stream]) == 1


def test_methods_share_probe_and_training_where_head_and_embeddings_are_the_same(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []
    real = walking.begin
    monkeypatch.setattr(walking, "begin", lambda *given: began.append(given[1]) or real(*given))
    tasks = in_order(NAMES, 0)
    frozen = walked(material, journal, tmp_path, FROZEN)
    assert began == tasks
    naive = walked(material, journal, tmp_path, NAIVE)
    assert began == [*tasks, *tasks[1:]]
    assert naive[0]["embedding"] == frozen[0]["embedding"]
    assert naive[1]["given"] != frozen[1]["given"]


def test_rows_of_other_settings_are_not_seen(material: Material, journal: Journal, tmp_path: Path) -> None:
    walked(material, journal, tmp_path, FROZEN)
    assert not Journal(journal.path, {FROZEN: {"steps": 5}}).steps()
    assert list(Journal(journal.path, {FROZEN: {}, NAIVE: {}}).steps()) == [Stream(0, FROZEN)]


def test_an_embedding_survives_its_digits() -> None:
    z = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    assert from_hex(to_hex(z)).tobytes() == z.tobytes()


def test_a_task_stores_less_than_4_kb_and_shares_the_rest(material: Material) -> None:
    half = [made_step((0.5,)), made_step((0.5, 0.5), share=0.0)]
    steps = {Stream(0, method): half for method in METHODS}
    stored = sizes(material, Results(steps, [NAMES[:2]]))
    frozen, _, guarded, two_kinds = stored[:4]
    assert version_bytes(material) == frozen.own < 4000
    assert frozen.of_task(1000) == pytest.approx(frozen.own + frozen.shared / 1000)
    tuned = guarded.shared - frozen.shared
    assert tuned > 4 * sum(parameter.numel() for parameter in material.engine.hypernetwork.parameters())
    assert two_kinds.own == frozen.own + tuned / 2, "half of the tasks have a hypernetwork of their own"
    assert stored[-1].own == 4 * half[0]["parameters"]


@pytest.fixture
def command(tiny_base: Base, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)

    def options(*more: str) -> list[str]:
        return [
            "--base", str(tiny_base.folder), "--data", str(data), "--orders", "2", "--shots", "12",
            "--test-rows", "10", "--tasks", *NAMES[:2], "--weights", str(tmp_path / "weights"),
            "--output", str(tmp_path / "stream.jsonl"), "--table", str(tmp_path / "stream.md"), *more,
        ]  # fmt: skip

    return options


def test_the_command_measures_goes_on_and_writes_page_and_heat_map(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--part", "2/2")) == 0
    part = [json.loads(line) for line in (tmp_path / "stream.jsonl").read_text().splitlines()]
    assert {(row["method"], row["order"]) for row in part} == {
        (AUTO, 0), (REGULARISED, 0), (LORA, 0), (AUTO, 1), (REGULARISED, 1), (LORA, 1),
    }  # fmt: skip
    assert "not measured yet" in (tmp_path / "stream.md").read_text()
    assert bench.main(command()) == 0
    rows = (tmp_path / "stream.jsonl").read_text().splitlines()
    assert len(rows) == 2 * 6 * 2
    assert bench.main(command()) == 0
    assert (tmp_path / "stream.jsonl").read_text().splitlines() == rows
    page = (tmp_path / "stream.md").read_text()
    assert "not measured yet" not in page
    assert all(f"| {method.title} |" in page for method in METHODS.values())
    assert "2 of 2 earlier tasks are generated the same | met |" in page
    assert (tmp_path / "stream-1.svg").read_text().startswith("<svg")
    assert not (tmp_path / "stream-2.svg").exists()  # no page embeds it
    assert "24 of 24 steps" in capsys.readouterr().out


def test_the_plan_tells_what_is_missing_and_measures_nothing(
    command: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(command("--methods", FROZEN, LORA)) == 0
    capsys.readouterr()
    assert bench.main(command("--methods", FROZEN, NAIVE, "--plan")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["naive", "4"], ["all", "4"]]
    assert bench.main(command("--methods", FROZEN, "--plan")) == 0
    assert capsys.readouterr().out == "everything is there\n"
    assert len((tmp_path / "stream.jsonl").read_text().splitlines()) == 8


def test_without_the_datasets_it_is_skipped_and_the_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.main(["--data", str(tmp_path / "nowhere")]) == 0
    assert f"skipped: the datasets are not here ({tmp_path / 'nowhere'})" in capsys.readouterr().out


def test_every_method_says_what_its_numbers_depend_on() -> None:
    settings = {name: bench.settings_of(name, 32) for name in METHODS}
    assert set(settings[FROZEN]) == {"embedding", "probe", "step"}
    assert set(settings[GUARDED]) == {"embedding", "probe", "tuning", "guard", "step"}
    assert set(settings[AUTO]) == {*settings[GUARDED], "rule"}
    assert settings[NAIVE]["tuning"]["beta"] == 0 < settings[REGULARISED]["tuning"]["beta"]
    assert set(settings[LORA]) == {"recipe"}
    assert isinstance(METHODS[FROZEN], Method)
