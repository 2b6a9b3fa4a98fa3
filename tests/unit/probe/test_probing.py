"""Candidates measured on the new task's rows, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from evaluators import evaluator_of
from support.published import embedding_of

from onboard.data.hashes import row_hashes
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example
from onboard.domain.init import RANDOM
from onboard.errors import CancelledError
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.probe import evaluator as evaluators
from onboard.probe.candidates import Candidate, ProbeResult, mean_candidate, random_candidate
from onboard.probe.choice import choose, measure_named
from onboard.probe.evaluator import MINIMUM_ROWS, Evaluator, ProbedTask, at_best_temperature
from onboard.probe.settings import ProbeSettings

SIZE = 16
WORDS = ("yes", "no")
TEXTS = ["good film", "bad plot", "fine and great", "awful plot", "happy film", "sad film", "great film", "poor plot"]
ROWS = [Example(text, None, WORDS[index % 2]) for index, text in enumerate(TEXTS)]
HASHES = np.array(row_hashes(ROWS), dtype=np.int64)

Make = Callable[..., Evaluator]


@pytest.fixture
def evaluator(tiny_engine: Engine) -> Make:
    def make(rows: Sequence[Example] = ROWS, **options: Any) -> Evaluator:
        return evaluator_of(tiny_engine, rows, WORDS, **options)

    return make


def exhaustively(measured: Evaluator, candidates: Sequence[Candidate]) -> ProbeResult:
    return choose(measured, candidates, everything(measured), ProbeSettings(exhaustive=True))


def everything(evaluator: Evaluator) -> np.ndarray:
    return np.arange(evaluator.rows)


def test_the_loss_is_that_of_the_labels_under_the_candidates_embedding(evaluator: Make, tiny_engine: Engine) -> None:
    candidate = Candidate("a@v1", embedding_of(1))
    score = evaluator().score(candidate, np.arange(8))
    ids = tiny_engine.encoder.encode([(text, None) for text in TEXTS])
    scores = log_probabilities(tiny_engine, ids, candidate.z, tiny_engine.trie(WORDS))
    expected = at_best_temperature(scores, np.eye(2)[[0, 1] * 4]).mean()
    assert score is not None
    assert score.loss == pytest.approx(expected, abs=1e-5)
    assert score.low < score.loss < score.high
    assert (score.rows, score.overlap, score.words) == (8, 0, WORDS)
    assert score.accuracy == pytest.approx((scores.argmax(1) == [0, 1] * 4).mean())


def test_the_order_of_the_rows_changes_neither_the_losses_nor_the_choice(evaluator: Make) -> None:
    candidates = [Candidate(f"t{seed}@v1", embedding_of(seed), words=("good", "bad")) for seed in range(3)]
    first = exhaustively(evaluator(), candidates)
    order = np.random.default_rng(5).permutation(8)
    second = exhaustively(evaluator([ROWS[index] for index in order]), candidates)
    assert second.chosen.embedding == first.chosen.embedding
    for one, other in zip(first.scores, second.scores, strict=True):
        assert (one.embedding, one.words) == (other.embedding, other.words)
        assert one.loss == pytest.approx(other.loss, abs=1e-5)


def test_rows_that_a_candidate_was_trained_on_are_left_out_and_counted(evaluator: Make) -> None:
    measured = evaluator()
    known = Candidate("a@v1", embedding_of(1), trained_rows=np.sort(HASHES[:3]))
    score = measured.score(known, everything(measured))
    alone = measured.score(Candidate("a@v1", embedding_of(1)), np.arange(3, 8))
    assert score is not None
    assert alone is not None
    assert (score.rows, score.overlap) == (5, 3)
    assert score.loss == pytest.approx(alone.loss, abs=1e-6)


def test_a_candidate_with_too_few_unknown_rows_is_not_measured_unless_it_was_asked_for(evaluator: Make) -> None:
    measured = evaluator()
    known = Candidate("a@v1", embedding_of(1), trained_rows=np.sort(HASHES[: 8 - MINIMUM_ROWS + 1]))
    assert measured.score(known, everything(measured)) is None
    asked = measured.score(known, everything(measured), known_too=True)
    assert asked is not None
    assert (asked.rows, asked.overlap) == (8, 8 - MINIMUM_ROWS + 1)
    enough = Candidate("a@v1", embedding_of(1), trained_rows=np.sort(HASHES[: 8 - MINIMUM_ROWS]))
    assert measured.score(enough, everything(measured)) is not None


def test_fewer_rows_than_the_minimum_are_measured_when_all_of_them_are_unknown(evaluator: Make) -> None:
    measured = evaluator(ROWS[:2])
    assert measured.score(Candidate("a@v1", embedding_of(1)), np.arange(2)) is not None
    assert measured.score(Candidate("a@v1", embedding_of(1), trained_rows=HASHES[:1]), np.arange(2)) is None


def test_the_least_loss_wins_and_the_scores_come_best_first(evaluator: Make) -> None:
    candidates = [Candidate(f"t{seed}@v1", embedding_of(seed)) for seed in range(5)]
    result = exhaustively(evaluator(), candidates)
    losses = [score.loss for score in result.scores]
    assert losses == sorted(losses)
    assert result.chosen == result.scores[0]
    number = int(result.chosen.embedding[1])
    np.testing.assert_array_equal(result.z, candidates[number].z)
    again = exhaustively(evaluator(), candidates[::-1]).chosen
    rounded = {name: getattr(result.chosen, name) for name in ("loss", "low", "high")}
    assert {name: getattr(again, name) for name in rounded} == pytest.approx(rounded, rel=0, abs=1.1e-6)
    assert again.model_copy(update=rounded) == result.chosen  # but for a rounding that tips over, all of it is the same


def test_equal_losses_are_told_apart_by_name(evaluator: Make) -> None:
    same = [Candidate(name, embedding_of(1)) for name in ("b@v1", "a@v1")]
    assert exhaustively(evaluator(), same).chosen.embedding == "a@v1"


def test_a_candidate_that_knows_all_rows_is_out_of_the_race_but_its_overlap_is_told(evaluator: Make) -> None:
    measured = evaluator()
    candidates = [
        Candidate("mine@v1", embedding_of(1), trained_rows=np.sort(HASHES)),
        Candidate("other@v1", embedding_of(2)),
    ]
    result = exhaustively(measured, candidates)
    assert [score.embedding for score in result.scores] == ["other@v1"]
    assert result.overlap == 8


def test_where_every_candidate_knows_the_rows_all_are_measured_on_what_they_know(evaluator: Make) -> None:
    candidates = [Candidate(f"t{seed}@v1", embedding_of(seed), trained_rows=np.sort(HASHES)) for seed in range(3)]
    result = exhaustively(evaluator(), candidates)
    assert len(result.scores) == 3
    assert {score.overlap for score in result.scores} == {8}
    assert (result.overlap, result.known_too) == (8, True)


def test_rows_that_trained_the_head_are_known_to_every_candidate(evaluator: Make) -> None:
    measured = evaluator(known_to_all=np.sort(HASHES[:3]))
    of_none = measured.score(Candidate("a@v1", embedding_of(1)), everything(measured))
    of_its_own = measured.score(
        Candidate("b@v1", embedding_of(1), trained_rows=np.sort(HASHES[2:4])), everything(measured)
    )
    assert of_none is not None
    assert of_its_own is not None
    assert [(score.rows, score.overlap) for score in (of_none, of_its_own)] == [(5, 3), (4, 4)]


def test_one_that_was_asked_for_is_measured_on_what_it_knows(evaluator: Make) -> None:
    asked = measure_named(evaluator(), Candidate("a@v1", embedding_of(1), trained_rows=np.sort(HASHES)))
    assert (asked.chosen.rows, asked.overlap, asked.known_too) == (8, 8, True)
    np.testing.assert_array_equal(asked.z, embedding_of(1))
    assert not measure_named(evaluator(), Candidate("a@v1", embedding_of(1))).known_too


def test_the_tree_of_the_same_words_is_grown_once(evaluator: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, grown = evaluator(), []
    grow = measured.engine.trie
    monkeypatch.setattr(measured.engine, "trie", lambda words: grown.append(words) or grow(words))
    measured.measure([Candidate(f"t{seed}@v1", embedding_of(seed)) for seed in range(4)], everything(measured))
    assert grown == [WORDS]


def test_a_small_memory_budget_measures_fewer_candidates_at_once_and_the_same(
    evaluator: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, at_once = [Candidate(f"t{seed}@v1", embedding_of(seed), WORDS) for seed in range(5)], []
    real = evaluators.mixed_edge_logits

    def watched(engine: Engine, ids: Any, generated: Any, tries: Sequence[Any], *rest: Any) -> np.ndarray:
        at_once.append(len(tries))
        return real(engine, ids, generated, tries, *rest)

    monkeypatch.setattr(evaluators, "mixed_edge_logits", watched)
    generous, tight = evaluator(ROWS), evaluator(ROWS, generated_bytes=1)
    rows = np.arange(len(ROWS))
    for measured in (generous, tight):
        measured.measure(known, rows)
    assert at_once == [5, 1, 1, 1, 1, 1]
    for candidate in known:
        one, other = (measured.losses(candidate, rows) for measured in (generous, tight))
        np.testing.assert_allclose(other, one, atol=1e-4)


def test_a_probe_of_nothing_is_an_error_of_the_caller(evaluator: Make) -> None:
    with pytest.raises(ValueError, match="candidate"):
        exhaustively(evaluator(), [])


def test_a_candidates_words_may_stand_for_the_labels(evaluator: Make) -> None:
    measured = evaluator()
    score = measured.score(Candidate("a@v1", embedding_of(1), words=("good", "bad")), everything(measured))
    plain = measured.score(Candidate("a@v1", embedding_of(1)), everything(measured))
    assert score is not None
    assert plain is not None
    assert set(score.words) <= {"yes", "no", "good", "bad"}
    assert score.words != WORDS[::-1]
    assert plain.words == WORDS


def test_a_scale_takes_the_words_of_another_scale_in_their_order(tiny_engine: Engine) -> None:
    ours, theirs = Buckets(0.0, 10.0), Buckets(0.0, 5.0)
    targets = np.array([ours.soft_target(float(index)) for index in range(8)], dtype=np.float32)
    ids = tiny_engine.encoder.encode([(text, None) for text in TEXTS])
    measured = Evaluator(tiny_engine, ProbedTask(ids, targets, ours.words, HASHES, mapped=False))
    scale = measured.score(Candidate("stsb@v1", embedding_of(1), words=theirs.words, ordered=True), np.arange(8))
    classes = measured.score(Candidate("sst2@v1", embedding_of(1), words=("good", "bad")), np.arange(8))
    assert scale is not None
    assert classes is not None
    assert scale.words == theirs.words
    assert classes.words == ours.words
    assert scale.accuracy is None


def test_the_random_candidate_is_the_same_for_a_seed_and_another_for_another() -> None:
    first, again, other = random_candidate(SIZE, 3), random_candidate(SIZE, 3), random_candidate(SIZE, 4)
    assert first.embedding == RANDOM
    assert first.z.dtype == np.float32
    assert first.z.tobytes() == again.z.tobytes()
    assert first.z.tobytes() != other.z.tobytes()
    many = random_candidate(20_000, 0).z
    assert abs(float(many.mean())) < 0.05
    assert float(many.std()) == pytest.approx(1.0, abs=0.05)


def test_the_mean_candidate_is_the_mean_of_all() -> None:
    embeddings = [embedding_of(1), embedding_of(2), embedding_of(3)]
    candidate = mean_candidate(embeddings)
    np.testing.assert_allclose(candidate.z, (embedding_of(1) + embedding_of(2) + embedding_of(3)) / 3, rtol=1e-6)
    assert candidate.z.dtype == np.float32
    assert mean_candidate(embeddings).z.tobytes() == candidate.z.tobytes()


def test_the_probe_can_be_stopped_before_every_batch(evaluator: Make) -> None:
    calls: list[int] = []

    def stop_at_the_second() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise CancelledError("The job was cancelled.")

    measured = evaluator(execution=Execution(before_batch=stop_at_the_second))
    with pytest.raises(CancelledError):
        exhaustively(measured, [Candidate(f"t{seed}@v1", embedding_of(seed)) for seed in range(20)])
    assert len(calls) == 2
