"""The last round and the choice: alarm, ties, mixture, and that nobody is judged on what it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from evaluators import evaluator_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.published import embedding_of

from onboard.contract.report import CandidateScore
from onboard.data.hashes import row_hashes
from onboard.data.splits import fair_order
from onboard.domain.dataset import Dataset, Example, Label
from onboard.domain.init import MEAN, RANDOM
from onboard.model.engine import Engine
from onboard.probe import choice, finals
from onboard.probe.candidates import MIXTURE, Candidate, ProbeResult
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator
from onboard.probe.finals import Finalist, TriedFinalist, try_finalists
from onboard.probe.racing import Raced
from onboard.probe.settings import FinalSettings, ProbeSettings
from onboard.statistics.student import paired

SIZE = 16
WORDS = ("yes", "no")
LIKED, DISLIKED = ("good", "fine", "great", "happy", "best"), ("bad", "poor", "awful", "sad", "worst")
ROWS = [
    Example(f"{word} {thing}", None, label)
    for thing in ("film", "plot")
    for pair in zip(LIKED, DISLIKED, strict=True)
    for label, word in zip(WORDS, pair, strict=True)
]
ORDER = np.arange(len(ROWS))
FAST = ProbeSettings(finals=FinalSettings(steps=2))
Make = Callable[..., Evaluator]


@pytest.fixture
def evaluator(tiny_engine: Engine) -> Make:
    def make(rows: Sequence[Example] = ROWS, words: Sequence[str] = WORDS, **options: Any) -> Evaluator:
        return evaluator_of(tiny_engine, rows, words, **options)

    return make


def candidates() -> list[Candidate]:
    tasks = [Candidate(f"t{seed}@v1", embedding_of(seed), words=("good", "bad")) for seed in range(5)]
    return [*tasks, Candidate(RANDOM, embedding_of(50)), Candidate(MEAN, np.mean([task.z for task in tasks], axis=0))]


def tried(name: str, losses: Sequence[float], weights: dict[str, float] | None = None) -> TriedFinalist:
    return TriedFinalist(Finalist(Candidate(name, embedding_of(1)), WORDS), np.array(losses), weights)


def scored(name: str, rows: int) -> CandidateScore:
    return CandidateScore(embedding=name, loss=1.0, low=0.9, high=1.1, rows=rows, overlap=0, words=WORDS)


def decided(monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator, *ended: TriedFinalist) -> ProbeResult:
    """The choice after a last round that ended like this."""
    scores = tuple(scored(trial.name, len(ROWS)) for trial in ended if not trial.weights)
    standing = tuple(trial.finalist.candidate for trial in ended if not trial.weights)
    monkeypatch.setattr(choice, "race", lambda *_: Raced(standing, scores, np.zeros((len(standing), len(ROWS)))))
    monkeypatch.setattr(choice, "try_finalists", lambda *_: list(ended))
    return choose(evaluator, list(standing), ORDER)


def level(mean: float, seed: int, noise: float = 0.05) -> list[float]:
    difficulty = np.random.default_rng(0).uniform(0.0, 3.0, len(ROWS))
    losses: list[float] = (difficulty + mean + np.random.default_rng(seed).normal(0, noise, len(ROWS))).tolist()
    return losses


def test_a_start_that_is_better_than_knowing_nothing_is_chosen_without_an_alarm(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    outcome = decided(monkeypatch, evaluator(), tried("a@v1", level(0.0, 1)), tried(RANDOM, level(0.5, 2)))
    assert (outcome.chosen.embedding, outcome.alarm, outcome.ties) == ("a@v1", None, ())


def test_where_nothing_beats_random_by_more_than_the_noise_it_starts_there_and_says_so(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    noisy = level(-0.05, 1, noise=1.0)
    outcome = decided(
        monkeypatch, evaluator(), tried("a@v1", noisy), tried(MEAN, level(0.3, 2)), tried(RANDOM, level(0, 3))
    )
    assert outcome.chosen.embedding == RANDOM
    assert outcome.alarm is not None
    assert "a@v1" in outcome.alarm
    assert "random" in outcome.alarm
    assert "a@v1" in outcome.ties


def test_where_random_itself_is_best_the_alarm_says_that(monkeypatch: pytest.MonkeyPatch, evaluator: Make) -> None:
    outcome = decided(monkeypatch, evaluator(), tried("a@v1", level(1.0, 1)), tried(RANDOM, level(0.0, 2)))
    assert outcome.chosen.embedding == RANDOM
    assert outcome.alarm == "No earlier embedding is a better start than random."
    assert outcome.ties == ()


def test_two_starts_that_the_rows_cannot_tell_apart_are_called_a_tie(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    ended = [tried("a@v1", level(0.0, 1)), tried("b@v1", level(0.001, 2)), tried("c@v1", level(0.4, 3))]
    outcome = decided(monkeypatch, evaluator(), *ended, tried(RANDOM, level(1.0, 4)))
    assert {outcome.chosen.embedding, *outcome.ties} == {"a@v1", "b@v1"}


def test_a_mixture_that_is_best_is_chosen_with_its_weights_and_its_words(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    mixed = tried(MIXTURE, level(-0.5, 4), {"a@v1": 0.7, "b@v1": 0.3})
    ended = [tried("a@v1", level(0.0, 1)), tried("b@v1", level(0.1, 2)), tried(RANDOM, level(1.0, 3)), mixed]
    outcome = decided(monkeypatch, evaluator(), *ended)
    assert outcome.chosen.embedding == MIXTURE
    assert outcome.weights == {"a@v1": 0.7, "b@v1": 0.3}
    assert outcome.chosen.words == WORDS
    assert outcome.chosen.loss == outcome.chosen.tuned == pytest.approx(np.mean(mixed.losses))
    assert outcome.scores[0] == outcome.chosen


def test_every_row_is_judged_by_a_z_that_was_not_trained_on_it(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    trained: list[set[int]] = []
    judged: list[list[int]] = []
    train, weigh, judge = finals.train_side_by_side, finals._weights, finals._held_out_losses

    def watch_training(engine: Any, runs: Any, *more: Any) -> Any:
        trained.extend({int(row) for batch in run.batches for row in batch} for run in runs)
        return train(engine, runs, *more)

    def watch_weights(evaluator: Any, parts: Any, trie: Any, batches: Any, rate: float) -> Any:
        trained.extend({int(row) for batch in of_run for row in batch} for of_run in batches)
        return weigh(evaluator, parts, trie, batches, rate)

    def watch_judging(evaluator: Any, of_halves: Any, held: Any, *rest: Any) -> Any:
        judged.extend(rows.tolist() for rows in held)
        return judge(evaluator, of_halves, held, *rest)

    monkeypatch.setattr(finals, "train_side_by_side", watch_training)
    monkeypatch.setattr(finals, "_weights", watch_weights)
    monkeypatch.setattr(finals, "_held_out_losses", watch_judging)
    few = [Finalist(candidate, WORDS) for candidate in candidates()[:2]]
    trials = try_finalists(evaluator(), few, ORDER, FinalSettings(steps=2))
    first, second = trained[0], trained[2]  # of the first finalist's two halves
    assert not first & second
    assert trained[:4] == [first, first, second, second]
    assert trained[4:6] == [first, second]  # the mixture's, before that of all rows
    for rows in judged[::2]:
        assert not first & set(rows)
    for rows in judged[1::2]:
        assert not second & set(rows)
    for earlier, later in zip(judged[::2], judged[1::2], strict=True):
        assert sorted([*earlier, *later]) == ORDER.tolist()
    assert [trial.name for trial in trials] == ["t0@v1", "t1@v1", MIXTURE]


def test_the_weights_of_a_mixture_are_convex_and_its_z_lies_between(evaluator: Make) -> None:
    few = [Finalist(candidate, WORDS) for candidate in candidates()[:3]]
    *_, mixture = try_finalists(evaluator(), few, ORDER, FinalSettings(steps=3, mixed=3))
    assert mixture.weights is not None
    assert sum(mixture.weights.values()) == pytest.approx(1.0, abs=1e-5)
    assert min(mixture.weights.values()) > 0
    expected = sum(mixture.weights[finalist.candidate.embedding] * finalist.candidate.z for finalist in few)
    np.testing.assert_allclose(mixture.finalist.candidate.z, expected, atol=1e-5)


def test_finalists_with_other_words_are_not_mixed(evaluator: Make) -> None:
    first, second, third = candidates()[:3]
    few = [Finalist(first, WORDS), Finalist(second, ("good", "bad")), Finalist(third, WORDS)]
    *_, mixture = try_finalists(evaluator(), few, ORDER, FinalSettings(steps=1))
    assert mixture.weights is not None
    assert set(mixture.weights) == {"t0@v1", "t2@v1"}
    assert [trial.name for trial in try_finalists(evaluator(), few[:2], ORDER, FinalSettings(steps=1))] == [
        "t0@v1", "t1@v1",
    ]  # fmt: skip


def test_a_mixture_is_not_judged_on_rows_that_any_of_its_parts_was_trained_on(evaluator: Make) -> None:
    measured = evaluator()
    hashes = np.array(row_hashes(ROWS), dtype=np.int64)
    first, second = candidates()[:2]
    knowing = [replace(first, trained_rows=np.sort(hashes[:4])), replace(second, trained_rows=np.sort(hashes[6:8]))]
    *_, mixture = try_finalists(
        measured, [Finalist(candidate, WORDS) for candidate in knowing], ORDER, FinalSettings(steps=1)
    )
    assert np.flatnonzero(np.isnan(mixture.losses)).tolist() == [0, 1, 2, 3, 6, 7]
    all_but_three = replace(second, trained_rows=np.sort(hashes[3:]))
    few = [Finalist(first, WORDS), Finalist(all_but_three, WORDS)]
    assert [trial.name for trial in try_finalists(measured, few, ORDER, FinalSettings(steps=1))] == ["t0@v1"]


def test_the_temperature_of_a_finalist_is_fitted_on_rows_that_it_does_not_know(
    evaluator: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted: list[int] = []
    fit = finals.at_best_temperature
    monkeypatch.setattr(
        finals, "at_best_temperature", lambda scores, targets: fitted.append(len(scores)) or fit(scores, targets)
    )
    hashes = np.array(row_hashes(ROWS), dtype=np.int64)
    knowing = replace(candidates()[0], trained_rows=np.sort(hashes[:5]))
    (tried,) = try_finalists(evaluator(), [Finalist(knowing, WORDS)], ORDER, FinalSettings(steps=1))
    assert fitted == [len(ROWS) - 5]
    assert int(np.isnan(tried.losses).sum()) == 5


def test_one_that_stood_to_the_end_of_the_race_may_tie_with_the_chosen_one(evaluator: Make) -> None:
    twins = [Candidate(f"t{number}@v1", candidates()[0].z, candidates()[0].words) for number in range(6)]
    settings = replace(FAST, race=replace(FAST.race, finalists=6), finalists=2)
    outcome = choose(evaluator(), twins, ORDER, settings)
    assert {outcome.chosen.embedding, *outcome.ties} >= {twin.embedding for twin in twins}


def test_below_sixteen_rows_nothing_is_trained(evaluator: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "try_finalists", None)
    outcome = choose(evaluator(ROWS[:8]), candidates(), np.arange(8))
    assert all(score.tuned is None for score in outcome.scores)
    assert len(outcome.scores) == 7


@pytest.mark.parametrize(("errors", "chosen"), [(2.0, RANDOM), (5.0, "t0@v1")])
def test_below_sixteen_rows_the_best_of_many_must_be_ahead_by_more_than_luck(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make, errors: float, chosen: str
) -> None:
    names = [RANDOM, *(f"t{number}@v1" for number in range(40))]
    losses = np.ones((len(names), 8))
    losses[1] += np.array([0.1, -0.1] * 4)
    _, error = paired(losses[0], losses[1])
    losses[1] -= errors * error
    scores = tuple(scored(name, 8) for name in names)
    standing = tuple(Candidate(name, embedding_of(1)) for name in names)
    monkeypatch.setattr(choice, "race", lambda *_: Raced(standing, scores, losses))
    outcome = choose(evaluator(ROWS[:8]), standing, np.arange(8))
    assert outcome.chosen.embedding == chosen
    assert (outcome.alarm is None) == (chosen != RANDOM)


def test_where_all_know_nearly_all_rows_they_are_measured_on_what_they_know(evaluator: Make) -> None:
    hashes = np.sort(np.array(row_hashes(ROWS), dtype=np.int64))
    knowing = [replace(candidate, trained_rows=hashes[:-1]) for candidate in candidates()]
    outcome = choose(evaluator(), knowing, ORDER, FAST)
    assert outcome.overlap == len(ROWS) - 1
    assert outcome.chosen.rows == len(ROWS)


def test_exhaustively_every_candidate_is_measured_on_every_row(evaluator: Make) -> None:
    measured = evaluator()
    outcome = choose(measured, candidates(), ORDER, replace(FAST, exhaustive=True))
    assert {score.rows for score in outcome.scores} == {len(ROWS)}
    assert {score.embedding for score in outcome.scores} == {candidate.embedding for candidate in candidates()} | {
        MIXTURE
    }
    finalists, mixed = 3, 1  # every finalist is trained on both halves; so is the mixture, and on all rows besides
    assert measured.passes == len(ROWS) * (len(candidates()) + finalists + mixed)
    assert measured.trained == FAST.finals.steps * FAST.finals.batch * (2 * finalists + 3 * mixed)


def test_a_choice_among_nothing_is_an_error_of_the_caller(evaluator: Make) -> None:
    with pytest.raises(ValueError, match="candidate"):
        choose(evaluator(), [], ORDER)


def probed(make: Make, rows: Sequence[Example], labels: tuple[Label, ...], words: Sequence[str]) -> ProbeResult:
    """As the pipeline does it: rows in the fair order, one word a label."""
    order = fair_order(Dataset(kind="classification", train=tuple(rows), labels=labels), 0)
    named = [replace(rows[row], label=words[labels.index(rows[row].label)]) for row in order]
    measured = make(named, words)
    return choose(measured, candidates(), np.arange(len(named)), FAST)


def alike(one: ProbeResult, other: ProbeResult) -> None:
    assert other.chosen.embedding == one.chosen.embedding
    assert other.ties == one.ties
    assert [score.embedding for score in other.scores] == [score.embedding for score in one.scores]
    for first, second in zip(one.scores, other.scores, strict=True):
        assert second.loss == pytest.approx(first.loss, abs=1e-4)
        assert second.round == first.round
    np.testing.assert_allclose(other.z, one.z, atol=1e-4)


RARELY = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@RARELY
@given(st.permutations(range(len(ROWS))))
def test_the_order_of_the_rows_changes_nothing(evaluator: Make, order: list[int]) -> None:
    expected = probed(evaluator, ROWS, WORDS, WORDS)
    alike(expected, probed(evaluator, [ROWS[index] for index in order], WORDS, WORDS))


def test_the_order_of_the_labels_changes_nothing(evaluator: Make) -> None:
    expected = probed(evaluator, ROWS, WORDS, WORDS)
    turned = probed(evaluator, ROWS, WORDS[::-1], WORDS[::-1])
    alike(expected, turned)
    assert turned.chosen.words == expected.chosen.words[::-1]


@RARELY
@given(st.lists(st.text("abcdef", min_size=1, max_size=6), min_size=2, max_size=2, unique=True))
def test_the_names_of_the_labels_change_nothing_where_the_words_are_the_same(evaluator: Make, names: list[str]) -> None:
    expected = probed(evaluator, ROWS, WORDS, WORDS)
    renamed = [replace(row, label=names[WORDS.index(str(row.label))]) for row in ROWS]
    alike(expected, probed(evaluator, renamed, tuple(names), WORDS))


def test_the_better_of_those_that_know_nothing_is_tuned_beside_the_best(
    monkeypatch: pytest.MonkeyPatch, evaluator: Make
) -> None:
    names = ("a@v1", "b@v1", "c@v1", "d@v1", MEAN, RANDOM)
    standing = tuple(Candidate(name, embedding_of(1)) for name in names)
    scores = tuple(scored(name, len(ROWS)) for name in names)
    few: list[str] = []

    def watch(_: Any, finalists: Sequence[Finalist], *more: Any) -> list[TriedFinalist]:
        few.extend(finalist.candidate.embedding for finalist in finalists)
        return [TriedFinalist(finalist, np.array(level(0.0, place))) for place, finalist in enumerate(finalists)]

    monkeypatch.setattr(choice, "race", lambda *_: Raced(standing, scores, np.zeros((len(names), len(ROWS)))))
    monkeypatch.setattr(choice, "try_finalists", watch)
    choose(evaluator(), list(standing), ORDER)
    assert few == ["a@v1", "b@v1", "c@v1", MEAN]
