"""What each method of the stream bench does to earlier tasks, and to the new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stream_walks import NAMES, walked

from bench.harness import as_a_job
from bench.harness.as_a_job import Lesson
from bench.harness.rows import packed
from bench.stream.figures import Results
from bench.stream.learning import advance, begin, right_of
from bench.stream.material import Material
from bench.stream.methods import FROZEN, GUARDED, LORA, METHODS, NAIVE, REGULARISED
from bench.stream.sharing import Journal, Stream
from bench.stream.state import State
from bench.stream.tasks import in_order
from onboard.contract.guard import GuardVerdict
from onboard.errors import DamagedError, JobFailedError
from onboard.guard import GuardSettings
from onboard.model.interpolate import between
from onboard.model.weights import hypernetwork_digest
from onboard.train import worth_tuning
from onboard.train.step_length import LossByShare
from onboard.train.worth_tuning import EmbeddingAlone, Worth


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
    begun = begin(material, "edos_sexism", 0, state)
    _, state = advance(material, FROZEN, "edos_sexism", 0, state, [], begun)
    other = replace(state, learned=tuple(replace(task, generated="0" * 64) for task in state.learned))
    begun = begin(material, "suggestion_mining", 0, other)
    with pytest.raises(DamagedError):
        advance(material, FROZEN, "suggestion_mining", 0, other, ["00"], begun)


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
    _, state = advance(material, FROZEN, "edos_sexism", 0, state, [], begin(material, "edos_sexism", 0, state))
    begun = begin(material, "suggestion_mining", 0, state)
    row, after = advance(material, NAIVE, "suggestion_mining", 0, state, ["what it was"], begun)
    engine = material.engine.under(after.hypernetwork)
    answers = [right_of(engine, material.of(task.task, 0), task.z, task.words) for task in after.learned]
    assert [packed(right) for right in answers] == row["correct"]
    row, _ = advance(material, FROZEN, "suggestion_mining", 0, state, ["what it was"], begun)
    assert row["correct"][0] == "what it was"


def judged(share: float) -> Callable[..., GuardVerdict]:
    verdict: Any = "accepted" if share else "rejected"
    return lambda *_, **__: GuardVerdict(verdict=verdict, share=share, reason="said so", margin=0.02)


def test_what_the_guard_rejects_is_published_as_the_embedding_alone_under_the_old_head(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(as_a_job, "guard", judged(0.0))
    rows, frozen = (walked(material, journal, tmp_path, method) for method in (GUARDED, FROZEN))
    assert [row["z"] for row in rows] == [row["embedding"] for row in rows] == [row["z"] for row in frozen]
    assert {row["head"] for row in rows} == {hypernetwork_digest(material.engine.hypernetwork)}
    assert rows[-1]["correct"] == frozen[-1]["correct"]


def test_the_rule_of_a_job_is_asked_about_rows_that_were_predicted_without_themselves(
    material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EmbeddingAlone] = []
    worth = Worth(True, "It is no better than TF-IDF.")
    monkeypatch.setattr(as_a_job, "worth_tuning", lambda alone: asked.append(alone) or worth)  # type: ignore[func-returns-value]
    words = material.of("edos_sexism", 0).bench.words
    start = np.zeros(int(material.base.document["task_embedding_size"]), dtype=np.float32)
    lesson = material.lesson("edos_sexism", 0, material.engine, start, words)
    assert lesson.worth() is worth
    (alone,) = asked
    assert alone.rows == 12
    assert alone.majority is not None
    assert alone.tfidf is not None
    monkeypatch.setattr(worth_tuning, "MOST_FITTED", 5)
    scored: list[int] = []
    monkeypatch.setattr(
        as_a_job, "log_probabilities", lambda _, ids, *__, **___: scored.append(len(ids)) or -np.ones((len(ids), 1))
    )  # type: ignore[func-returns-value]
    assert alone.training_loss() == 1.0
    assert scored == [5]


@pytest.mark.parametrize(
    ("losses", "proposed", "let"),
    [
        ({1.0: 8.0, 0.5: 7.0, 0.25: 9.0, 0.125: 9.0}, 0.125, 1.0),
        ({1.0: 0.1, 0.5: 7.0, 0.25: 9.0, 0.125: 9.0}, 1.0, 0.5),
        ({1.0: 0.2, 0.5: 0.1, 0.25: 0.2, 0.125: 0.3}, 0.5, 1.0),
    ],
)
def test_the_new_task_says_how_much_of_the_step_it_wants_before_the_guard(
    material: Material,
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    losses: dict[float, float],
    proposed: float,
    let: float,
) -> None:
    monkeypatch.setattr(
        Lesson, "losses", lambda _, shares, *__: LossByShare(5.0, {share: losses.get(share, 9.0) for share in shares})
    )
    monkeypatch.setattr(as_a_job, "guard", judged(let))
    rows = walked(material, journal, tmp_path, GUARDED)
    assert [row["proposed"] for row in rows] == [proposed] * 3
    assert [row["share"] for row in rows] == [let] * 3
    assert all(row["z"] != row["embedding"] and "guard" in row for row in rows)


def test_the_guard_looks_at_as_many_shipped_tasks_as_that_of_a_job(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(METHODS[GUARDED], guard=GuardSettings(most_sources=1))
    monkeypatch.setitem(METHODS, GUARDED, few)
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(as_a_job, "guard", lambda _, step, protection, *__, left_out, **___: seen.append(
        (len(protection.tasks), left_out)) or judged(1.0)())  # fmt: skip
    walked(material, journal, tmp_path, GUARDED)
    assert seen == [(1, 1), (2, 1), (3, 1)]


def test_half_a_step_lies_between_the_head_and_what_was_tuned(
    material: Material, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(as_a_job, "guard", lambda _, step, protection, *more, **__: seen.append(
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
