"""The choice does not depend on what the labels are called, where a candidate's own words can stand for them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Example
from onboard.domain.init import MEAN, RANDOM
from onboard.model.engine import Engine
from onboard.probe.candidates import Candidate, ProbeResult
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator, ProbedTask
from onboard.probe.settings import FinalSettings, ProbeSettings

ROWS = [Example(f"text {number}", None, "") for number in range(18)]
KNOWN = {"strong@v1": (("good", "bad", "fine"), 2.0), "weak@v1": (("great", "awful", "sad"), 0.5)}  # and how sure
NOTHING = np.zeros(16, dtype=np.float32)
CANDIDATES = [
    Candidate(RANDOM, NOTHING),
    Candidate(MEAN, NOTHING),
    *(Candidate(name, NOTHING, words=words) for name, (words, _) in KNOWN.items()),
]
NAMES = ["good", "bad", "great", "awful", "yes", "no", "same", "other", "film", "is"]  # one token each


def logit(candidate: str, row: int, word: str, label: int, labels: int) -> float:
    """What the candidate makes of a word for a row of that label: it knows its own words, all others are noise."""
    noise = np.random.default_rng(zlib.crc32(f"{candidate} {row} {word}".encode())).normal(0.0, 0.3)
    words, sure = KNOWN.get(candidate, ((), 0.0))
    speaks = (1.0 if words.index(word) == label else -1.0) if word in words[:labels] else 0.0
    return float(noise + sure * speaks)


@pytest.fixture
def _played(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's answers are made up: a tiny one knows nothing of its words."""

    def measure(self: Evaluator, missing: Sequence[tuple[Candidate, np.ndarray]]) -> None:
        labels = self.targets.shape[1]
        for candidate, rows in missing:
            seen = self._seen[candidate.embedding]
            words = [self.engine.encoder.tokenizer.decode([token]).strip() for token in seen.trie.edge_token]
            for row in rows:
                seen.logits[row] = [logit(candidate.embedding, row, word, row % labels, labels) for word in words]
            seen.there[rows] = True

    monkeypatch.setattr(Evaluator, "_measure", measure)


def chosen(engine: Engine, names: Sequence[str], order: Sequence[int] = ()) -> ProbeResult:
    """The choice for a task that calls its labels like this, in this order of the names."""
    order = order or range(len(names))
    ids = engine.encoder.encode([(row.text_a, None) for row in ROWS])
    targets = np.eye(len(names), dtype=np.float32)[np.arange(len(ROWS)) % len(names)]
    hashes = np.arange(len(ROWS), dtype=np.int64) + max(row_hashes(ROWS))
    called = [names[label] for label in order]
    candidates = [replace(candidate, words=tuple(candidate.words[: len(names)])) for candidate in CANDIDATES]
    evaluator = Evaluator(engine, ProbedTask(ids, targets[:, list(order)], called, hashes, mapped=True))
    return choose(evaluator, candidates, np.arange(len(ROWS)), ProbeSettings(finals=FinalSettings(steps=0)))


@pytest.mark.usefixtures("_played")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True))
@example(["bad", "good"])
@example(["fine", "good", "bad"])
def test_other_names_for_the_labels_change_nothing(tiny_engine: Engine, names: list[str]) -> None:
    expected, renamed = chosen(tiny_engine, ["yes", "no", "is"][: len(names)]), chosen(tiny_engine, names)
    alike(expected, renamed)
    assert renamed.chosen.embedding == "strong@v1"
    assert renamed.chosen.words == expected.chosen.words == KNOWN["strong@v1"][0][: len(names)]


@pytest.mark.usefixtures("_played")
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(3)))
def test_the_order_of_three_labels_changes_nothing(tiny_engine: Engine, order: list[int]) -> None:
    names = ["yes", "no", "is"]
    expected, reordered = chosen(tiny_engine, names), chosen(tiny_engine, names, order)
    alike(expected, reordered)
    assert reordered.chosen.words == tuple(expected.chosen.words[label] for label in order)


def alike(one: ProbeResult, other: ProbeResult) -> None:
    assert other.chosen.embedding == one.chosen.embedding
    assert other.chosen.loss == pytest.approx(one.chosen.loss, abs=1e-6)
    assert other.chosen.accuracy == one.chosen.accuracy
    assert (other.alarm, other.ties) == (one.alarm, one.ties)


def taken(engine: Engine, sure: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """How often the words of a candidate that is so sure of them stand for labels called yes and no, on 32 rows."""
    words = ("good", "bad", "yes", "no")
    labels = np.arange(32) % 2

    def measure(self: Evaluator, missing: Sequence[tuple[Candidate, np.ndarray]]) -> None:
        for candidate, rows in missing:
            seen = self._seen[candidate.embedding]
            tokens = [self.engine.encoder.tokenizer.decode([token]).strip() for token in seen.trie.edge_token]
            rng = np.random.default_rng(int(candidate.embedding))
            made = {word: rng.normal(0.0, 1.0, 32) for word in words}
            made["good"] += sure * (labels == 0)
            made["bad"] += sure * (labels == 1)
            seen.logits[rows] = np.stack([made[token] for token in tokens], axis=1)[rows]
            seen.there[rows] = True

    monkeypatch.setattr(Evaluator, "_measure", measure)
    ids = engine.encoder.encode([(f"text {row}", None) for row in range(32)])
    evaluator = Evaluator(engine, ProbedTask(ids, np.eye(2)[labels], ["yes", "no"], np.arange(32), mapped=True))
    candidates = [Candidate(str(seed), NOTHING, words=("good", "bad")) for seed in range(100)]
    return float(
        np.mean([evaluator.scores(candidate, np.arange(32))[0] == ("good", "bad") for candidate in candidates])
    )


def test_words_that_are_right_are_taken_before_it_is_certain_and_chance_alone_seldom_takes_any(
    tiny_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, chance = taken(tiny_engine, 1.0, monkeypatch), taken(tiny_engine, 0.0, monkeypatch)
    assert right > 0.75
    assert chance < 0.2
