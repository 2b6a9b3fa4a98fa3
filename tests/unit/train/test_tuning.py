"""Tuning hypernetwork and embedding: a copy learns the new task, and earlier tasks hold it in place."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.published import embedding_of
from support.refusals import refused

from onboard.bases import Base
from onboard.bases.load import fresh_engine
from onboard.errors import CancelledError
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.memory import RowsAtOnce
from onboard.model.protected import ProtectedTask, Protection
from onboard.model.scoring import LabelTrie
from onboard.train.holding import DrawnPairs, Holding, draws
from onboard.train.settings import Regulariser, TuningSettings
from onboard.train.tuning import Tuned, tune

SIZE = 16
SHORT = TuningSettings(
    steps=5, batch=4, learning_rate=3e-3, z_learning_rate=1e-2, beta=1.0, regulariser="divergence", sampled=4
)
CANARIES = ["the film was good", "it is not a plot", "no", "same and other", "a sad and awful film"]


@pytest.fixture
def canaries(tiny_engine: Engine) -> list[list[int]]:
    return tiny_engine.encoder.encode([(text, None) for text in CANARIES])


@pytest.fixture
def z() -> np.ndarray:
    return embedding_of(0)


@pytest.fixture
def earlier(tiny_engine: Engine) -> list[ProtectedTask]:
    """Tasks of two and of three labels."""
    words = (["good", "bad"], ["same", "other", "not"], ["positive", "negative"])
    return [
        ProtectedTask(f"task{number}@v1", embedding_of(number), tiny_engine.trie(labels), tiny_engine.hypernetwork)
        for number, labels in enumerate(words, 1)
    ]


def state(*modules: torch.nn.Module) -> list[bytes]:
    return [value.detach().numpy().tobytes() for module in modules for value in module.state_dict().values()]


def changed(hypernetwork: Hypernetwork, amount: float = 0.02) -> Hypernetwork:
    """A copy with other weights."""
    copied = copy.deepcopy(hypernetwork)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in copied.parameters():
            weight.add_(amount * torch.randn(weight.shape, generator=generator))
    return copied


def moved_answers(engine: Engine, tuned: Tuned, earlier: list[ProtectedTask], texts: list[list[int]]) -> float:
    """Mean divergence of the answers under earlier embeddings, in nats."""
    moves = []
    for task in earlier:
        before = log_probabilities(engine, texts, task.z, task.trie)
        generated = tuned.hypernetwork(torch.from_numpy(task.z)[None])
        with torch.inference_mode():
            after = engine.score(texts, generated, [task.trie]).numpy()
        moves.append((np.exp(before) * (before - after)).sum(1).mean())
    return float(np.mean(moves))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_ones(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]],
) -> None:  # fmt: skip
    first, again, other = (
        tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), SHORT, seed) for seed in (3, 3, 4)
    )
    assert state(first.hypernetwork) == state(again.hypernetwork)
    assert first.z.tobytes() == again.z.tobytes()
    assert first.facts() == again.facts()
    assert state(first.hypernetwork) != state(other.hypernetwork)
    assert first.z.tobytes() != other.z.tobytes()


def test_a_copy_is_tuned_and_nothing_of_the_engine_or_the_start_moves(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]],
) -> None:  # fmt: skip
    before, began = state(tiny_engine.backbone, tiny_engine.hypernetwork), z.copy()
    frozen = [parameter.requires_grad for parameter in tiny_engine.hypernetwork.parameters()]
    tuned = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), SHORT, 0)
    assert state(tiny_engine.backbone, tiny_engine.hypernetwork) == before
    assert [parameter.requires_grad for parameter in tiny_engine.hypernetwork.parameters()] == frozen
    assert not any(parameter.grad is not None for parameter in tiny_engine.backbone.parameters())
    np.testing.assert_array_equal(z, began)
    assert state(tuned.hypernetwork) != state(tiny_engine.hypernetwork)
    assert not any(parameter.requires_grad for parameter in tuned.hypernetwork.parameters())
    assert tuned.z.dtype == np.float32
    assert tuned.z.shape == (SIZE,)
    assert (tuned.z != z).all()


def test_tuning_lowers_the_loss_of_the_new_task(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]],
) -> None:  # fmt: skip
    tuned = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), replace(SHORT, steps=25), 0)
    assert np.mean(tuned.losses[-5:]) < np.mean(tuned.losses[:5]) - 0.05
    assert len(tuned.losses) == len(tuned.penalties) == 25


@pytest.mark.parametrize("regulariser", ["divergence", "drift"])
def test_a_regulariser_keeps_the_answers_of_earlier_tasks_on_texts_that_nobody_has_seen(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]], regulariser: Regulariser,
) -> None:  # fmt: skip
    settings = replace(SHORT, steps=20, regulariser=regulariser)
    free = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), replace(settings, beta=0.0), 0)
    held = tune(
        tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), replace(settings, beta=1000.0), 0
    )
    fresh = tiny_engine.encoder.encode([("the plot was poor", None), ("happy", None), ("a fine film", None)])
    assert moved_answers(tiny_engine, held, earlier, fresh) < 0.5 * moved_answers(tiny_engine, free, earlier, fresh)
    assert regulariser == "divergence" or held.drift < 0.5 * free.drift


def test_without_earlier_tasks_or_weight_nothing_is_held_and_no_texts_are_needed(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask]
) -> None:
    alone = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(), SHORT, 0)
    assert alone.penalties == (0.0,) * SHORT.steps
    assert alone.drift == 0.0
    with pytest.raises(ValueError, match="canary"):
        tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier), SHORT, 0)
    unheld = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier), replace(SHORT, beta=0.0), 0)
    assert state(unheld.hypernetwork) == state(alone.hypernetwork)
    assert unheld.drift > 0.0


@pytest.mark.parametrize("regulariser", ["divergence", "drift"])
def test_an_earlier_task_is_held_to_the_hypernetwork_that_it_was_learned_under(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]], regulariser: Regulariser,
) -> None:  # fmt: skip
    settings = replace(SHORT, steps=1, regulariser=regulariser)
    older = changed(tiny_engine.hypernetwork)
    from_head = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(earlier, canaries), settings, 0)
    assert from_head.penalties[0] == pytest.approx(0.0, abs=1e-9)
    mixed = [earlier[0], *(replace(task, reference=older) for task in earlier[1:])]
    from_older = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(mixed, canaries), settings, 0)
    assert from_older.penalties[0] > 1e-6
    longer = replace(settings, steps=30, beta=100.0)
    back = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(mixed, canaries), longer, 0)
    assert np.mean(back.penalties[-5:]) < 0.5 * back.penalties[0]


def test_parts_of_a_batch_add_up_to_the_same_step(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask],
    canaries: list[list[int]],
) -> None:  # fmt: skip
    mixed = [replace(earlier[0], reference=changed(tiny_engine.hypernetwork)), *earlier[1:]]
    whole = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(mixed, canaries), SHORT, 0)
    parts = tune(
        tiny_engine,
        TrainingSet(rows, trie),
        z,
        Protection(mixed, canaries),
        SHORT,
        0,
        Execution(trained_at_once=RowsAtOnce(1)),
    )
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-3)
    np.testing.assert_allclose(parts.penalties, whole.penalties, rtol=1e-2)
    np.testing.assert_allclose(parts.z, whole.z, atol=1e-3)


def test_z_stays_within_its_bound(tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray) -> None:
    tuned = tune(tiny_engine, TrainingSet(rows, trie), 10 * z, Protection(), replace(SHORT, steps=2), 0)
    assert float(np.linalg.norm(tuned.z)) <= 2.0 * SIZE**0.5 * (1 + 1e-5)


def test_a_tuning_that_diverges_fails_with_a_remedy(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray
) -> None:
    with refused("tuning-diverged", step=1) as caught:
        tune(tiny_engine, TrainingSet(rows, trie), np.full_like(z, np.nan), Protection(), SHORT, 0)
    assert caught.value.remedy
    with refused("tuned-weight-not-finite"):
        tune(tiny_engine, TrainingSet(rows, trie), z, Protection(), replace(SHORT, steps=1, learning_rate=np.inf), 0)


def test_every_step_is_told_and_tuning_can_be_stopped_at_any(
    tiny_engine: Engine, rows: LabelledRows, trie: LabelTrie, z: np.ndarray
) -> None:
    steps: list[tuple[int, float]] = []

    def stop_at_the_third(step: int, loss: float) -> None:
        steps.append((step, loss))
        if step == 3:
            raise CancelledError("The job was cancelled.")

    with pytest.raises(CancelledError):
        tune(tiny_engine, TrainingSet(rows, trie), z, Protection(), SHORT, 0, Execution(on_step=stop_at_the_third))
    whole = tune(tiny_engine, TrainingSet(rows, trie), z, Protection(), SHORT, 0)
    assert steps == [(step, whole.losses[step - 1]) for step in (1, 2, 3)]


def test_the_drift_of_weights_that_all_grew_by_a_tenth_is_a_hundredth(
    tiny_engine: Engine, earlier: list[ProtectedTask]
) -> None:
    grown = copy.deepcopy(tiny_engine.hypernetwork)
    with torch.no_grad():
        for stack in (grown.encoder, grown.decoder):
            for name in ("down", "down_bias", "up", "up_bias", "gamma", "beta"):
                for weight in stack.get_submodule(name).parameters():
                    weight.mul_(1.1)
    assert Holding(tiny_engine, Protection(earlier), "drift").drift(grown) == pytest.approx(0.01, rel=1e-4)


def test_weights_that_are_all_zero_leave_the_drift_a_number(
    tiny_base: Base, rows: LabelledRows, trie: LabelTrie, z: np.ndarray, earlier: list[ProtectedTask]
) -> None:
    engine = fresh_engine(tiny_base)
    earlier = [replace(task, reference=engine.hypernetwork) for task in earlier]
    with torch.no_grad():
        for weight in engine.hypernetwork.get_submodule("encoder.down_bias").parameters():
            weight.zero_()
    assert Holding(engine, Protection(earlier), "drift").drift(engine.hypernetwork) == 0.0
    tuned = tune(engine, TrainingSet(rows, trie), z, Protection(earlier), replace(SHORT, regulariser="drift"), 0)
    assert np.isfinite(tuned.penalties).all()


def test_the_divergence_is_that_of_the_answers_before_from_those_after(
    tiny_engine: Engine, earlier: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    other = changed(tiny_engine.hypernetwork).requires_grad_(True)
    drawn = DrawnPairs(np.array([0, 1, 2, 1]), np.array([4, 0, 2, 3]))
    divergence = Holding(tiny_engine, Protection(earlier, canaries), "divergence").backward(
        other, drawn, 1.0, RowsAtOnce()
    )
    expected = []
    for index, text in zip(drawn.embeddings, drawn.texts, strict=True):
        task = earlier[index]
        before = np.exp(log_probabilities(tiny_engine, [canaries[text]], task.z, task.trie)[0].astype(np.float64))
        with torch.inference_mode():
            generated = other(torch.from_numpy(task.z)[None])
            after = np.exp(tiny_engine.score([canaries[text]], generated, [task.trie])[0].double().numpy())
        expected.append((before * np.log(before / after)).sum())
    assert divergence == pytest.approx(np.mean(expected), rel=1e-3)
    assert divergence > 1e-6


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20), st.integers(1, 12), st.integers(0, 5))
def test_no_embedding_and_no_text_is_drawn_much_more_often_than_another(
    embeddings: int, texts: int, sampled: int, steps: int, seed: int
) -> None:
    drawn_steps = draws(embeddings, texts, sampled, steps, seed)
    drawn_embeddings, drawn_texts = [step.embeddings for step in drawn_steps], [step.texts for step in drawn_steps]
    assert [*map(len, drawn_embeddings)] == [*map(len, drawn_texts)] == [sampled] * steps
    for drawn, count in ((drawn_embeddings, embeddings), (drawn_texts, texts)):
        often = np.bincount(np.concatenate(drawn), minlength=count)
        assert len(often) == count
        assert often.max() - often.min() <= 1


@pytest.mark.parametrize(("rows", "steps"), [(8, 80), (64, 80), (65, 82), (100, 125), (320, 400), (100_000, 400)])
def test_every_row_is_seen_ten_times_while_there_are_few(rows: int, steps: int) -> None:
    assert TuningSettings().for_rows(rows) == replace(TuningSettings(), steps=steps)


@pytest.mark.parametrize(("rows", "of", "steps"), [(24, 32, 60), (12, 16, 60), (75, 100, 94), (100, 100, 125)])
def test_a_part_of_the_rows_is_seen_as_often_as_all_of_them(rows: int, of: int, steps: int) -> None:
    assert TuningSettings().for_part(rows, of) == replace(TuningSettings(), steps=steps)
