"""Suspected label errors: rows whose label an embedding that was trained without them confidently contradicts.

Confident learning (arXiv 1911.00068) on out-of-fold predictions. Where these are hardly better than the commonest label
their doubts mean nothing, and none are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.data.previews import beginning, preview_texts
from onboard.domain.dataset import Dataset, Example, label_text
from onboard.domain.report import WarningJson

MOST: Final = 10
_MARGIN: Final = 0.6  # between the probability of the other label and of the given one
_LABEL_CHARACTERS: Final = 40  # of a label in the warning
_LEAST_GAIN: Final = 0.5  # of what the commonest label gets wrong, so much must be right


@dataclass(frozen=True)
class Suspect:
    """A training row (index), the label (index) that seems right, and the probabilities of both labels."""

    row: int
    seems: int
    probability: float
    given_probability: float


def suspected_errors(estimate: np.ndarray, targets: np.ndarray) -> list[Suspect]:
    """The most doubtful rows, the clearest first; ten at most.

    A label's only row is none of them: the embedding that was trained without it has never seen its label.

    Args:
        estimate: out-of-fold log-probabilities (n, K).
        targets: (n, K), one-hot.
    """
    probabilities, given = np.exp(estimate), targets.argmax(1)
    best, rows = probabilities.argmax(1), np.arange(len(targets))
    accuracy, commonest = float((best == given).mean()), float(targets.mean(0).max())
    if accuracy - commonest < _LEAST_GAIN * (1.0 - commonest):
        return []
    margin = probabilities[rows, best] - probabilities[rows, given]
    margin[targets.sum(0)[given] < 2] = 0.0
    doubted = [row for row in np.argsort(-margin, kind="stable").tolist() if margin[row] >= _MARGIN]
    return [
        Suspect(row, int(best[row]), float(probabilities[row, best[row]]), float(probabilities[row, given[row]]))
        for row in doubted[:MOST]
    ]


def suspected_rows(judged: np.ndarray, estimate: np.ndarray, targets: np.ndarray) -> list[Suspect]:
    """`suspected_errors` of some rows (m,) of all (n,), told by their index among all.

    Args:
        judged: indices of those that were predicted without themselves.
        estimate: their out-of-fold log-probabilities (m, K).
        targets: (n, K) of all, one-hot.
    """
    suspects = suspected_errors(estimate, targets[judged])
    return [replace(suspect, row=int(judged[suspect.row])) for suspect in suspects]


def warning_of(suspects: Sequence[Suspect], dataset: Dataset) -> WarningJson:
    """The warning about them (there is one at least) as the report shows it, which names every one.

    Args:
        suspects: the clearest first.
        dataset: whose training rows they are.
    """
    examples = [
        {
            "text": _shown(dataset.train[suspect.row]),
            "label": dataset.train[suspect.row].label,
            "likelier": dataset.labels[suspect.seems],
        }
        for suspect in suspects
    ]
    rows = "1 training row looks" if len(suspects) == 1 else f"{len(suspects)} training rows look"
    first, likelier = (beginning(label_text(examples[0][key]), _LABEL_CHARACTERS) for key in ("label", "likelier"))
    sentence = f"“{examples[0]['text']}” is labelled {first}; {likelier} looks likelier."
    return {
        "code": "contradicted_labels",
        "message": f"{rows} mislabelled to what was trained without them: {sentence}",
        "remedy": "Look at these rows; they are used as they are.",
        "count": len(suspects),
        "examples": examples,
    }


def _shown(row: Example) -> str:
    return preview_texts([row.text_a] if row.text_b is None else [row.text_a, row.text_b])
