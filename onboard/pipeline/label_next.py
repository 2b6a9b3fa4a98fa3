"""The report on unlabeled texts: which to label next, and how the version answers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from onboard.contract.report import AnsweredShare, LabelNext, LikelyLabel, NextRow
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, Label
from onboard.domain.report import decimals_of
from onboard.model.readout import probabilities_of
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.calibration import temperature_of
from onboard.pipeline.material import Workbench
from onboard.pipeline.novelty import novelty_of
from onboard.pipeline.outputs import TrainOutput
from onboard.pipeline.readout import together
from onboard.pipeline.stored_weights import answering
from onboard.statistics.temperature import tempered
from onboard.train.labelling import Next, Unlike, by_worth, suggested

_SHOWN_CHARACTERS: Final = 1_000  # of each text: enough to find it, and the report stays small


def labelling(attempt: Attempt, bench: Workbench, words: Sequence[str], trained: TrainOutput) -> LabelNext | None:
    """Return the report's `label_next`; None without unlabeled texts.

    Args:
        attempt: the current attempt; supplies the counts of the texts and stops the work.
        bench: the job's material with its unlabeled texts, under the version's hypernetwork.
        words: words that represent the labels.
        trained: the published training, with its folds and readout.
    """
    if not bench.unlabelled:
        return None
    trie, ids = bench.engine.trie(words), bench.encode(bench.unlabelled)
    task = answering(bench.engine, trained)
    both = together(bench, words, trained, task, attempt.job.spec.readout, attempt.checkpoint)
    how = (attempt.checkpoint, bench.scored_at_once)

    def predict(places: Sequence[int]) -> np.ndarray:
        rows = bench.encode([bench.dataset.validation[row] for row in places])
        return probabilities_of(bench.engine, rows, task, trie, both.readout, *how)

    temperature, _, _ = temperature_of(bench, both.folds, predict)
    probabilities = probabilities_of(bench.engine, ids, task, trie, both.readout, *how)
    suggestions = suggested(bench.engine, ids, probabilities, bench.scored_at_once, _unlike(attempt, bench))
    as_answered = [suggestion.at(temperature) for suggestion in suggestions]
    rows = tuple(_row(suggestion, bench) for suggestion in sorted(as_answered, key=by_worth))
    pool = attempt.job.spec.options["unlabelled"]
    counts = {name: pool[name] for name in ("read", "known", "repeated", "considered")}
    if bench.buckets:
        return LabelNext(**counts, rows=rows)
    return LabelNext(**counts, rows=rows, shares=_shares(bench, tempered(probabilities, temperature)))


def _unlike(attempt: Attempt, bench: Workbench) -> Unlike | None:
    """Return a test of whether texts resemble the training rows; None if there are too few rows."""
    novelty = novelty_of(bench, attempt.checkpoint)
    if novelty is None:
        return None

    def unlike(places: np.ndarray) -> np.ndarray:
        texts = [bench.unlabelled[place] for place in places.tolist()]
        return novelty.unknown(bench.features(texts, attempt.checkpoint))

    return unlike


def _shares(bench: Workbench, probabilities: np.ndarray) -> tuple[AnsweredShare, ...]:
    """Return how often each label is the answer."""
    labels = bench.dataset.labels
    counts = np.bincount(probabilities.argmax(1), minlength=len(labels))
    return tuple(
        AnsweredShare(label=label, share=round(count / len(probabilities), 4), mean_probability=round(float(mean), 4))
        for label, count, mean in zip(labels, counts.tolist(), probabilities.mean(0), strict=True)
    )


def _row(suggestion: Next, bench: Workbench) -> NextRow:
    if bench.buckets:
        answers: dict[str, Any] = number_answer(suggestion, bench.buckets)
    else:
        answers = {"answers": _likeliest(suggestion, bench.dataset.labels)}
    unlike = {"unlike": True} if suggestion.unlike else {}
    text = _text(bench.unlabelled[suggestion.row])
    return NextRow(**text, uncertainty=round(suggestion.uncertainty, 4), **answers, **unlike)


def _text(row: Example) -> dict[str, Any]:
    if row.text_b is None:
        return {"text": row.text_a[:_SHOWN_CHARACTERS]}
    return {"text_a": row.text_a[:_SHOWN_CHARACTERS], "text_b": row.text_b[:_SHOWN_CHARACTERS]}


def _likeliest(suggestion: Next, labels: Sequence[Label]) -> tuple[LikelyLabel, ...]:
    best = np.argsort(-suggestion.probabilities, kind="stable")[:2]
    return tuple(
        LikelyLabel(label=labels[label], probability=round(float(suggestion.probabilities[label]), 4)) for label in best
    )


def number_answer(suggestion: Next, buckets: Buckets) -> dict[str, float]:
    """Return the expected number of a text and its probable error, rounded to the precision of the scale."""
    values = np.array(buckets.values)
    mean = float(suggestion.probabilities @ values)
    spread = float(np.sqrt(suggestion.probabilities @ (values - mean) ** 2))
    decimals = decimals_of(buckets.width, 4)
    return {"value": round(mean, decimals), "spread": round(spread, decimals)}
