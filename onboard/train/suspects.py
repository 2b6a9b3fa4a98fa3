"""Find suspected label errors: training rows that contradict confident out-of-fold answers.

The rule is that of `onboard.data.label_errors`, on the out-of-fold answers of the published version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from onboard.contract.checks import DatasetWarning
from onboard.data.label_errors import Doubt, doubted_rows
from onboard.data.previews import beginning, preview_texts
from onboard.domain.dataset import Dataset, Example, label_text

MOST: Final = 10
_LABEL_CHARACTERS: Final = 40  # of a label in the warning


def suspected_rows(judged: np.ndarray, estimate: np.ndarray, targets: np.ndarray) -> list[Doubt]:
    """Return the most doubtful of some rows (m,), by their index among all (n,), clearest first, at most ten.

    Args:
        judged: indices of the rows with out-of-fold predictions.
        estimate: their out-of-fold log-probabilities (m, K).
        targets: (n, K) of all rows, one-hot.
    """
    doubts = doubted_rows(np.exp(estimate), targets[judged].argmax(1))[:MOST]
    return [replace(doubt, row=int(judged[doubt.row])) for doubt in doubts]


def warning_of(suspects: Sequence[Doubt], dataset: Dataset) -> DatasetWarning:
    """Return the report's warning, which lists all of them (at least one).

    Args:
        suspects: clearest first.
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
    sentence = f"“{examples[0]['text']}” is labeled {first}; {likelier} looks more likely."
    return DatasetWarning(
        code="contradicted_labels",
        type="contradicted-labels",
        message=f"{rows} mislabeled to models trained without them: {sentence}",
        count=len(suspects),
        remedy="Check these rows; they are used unchanged.",
        examples=tuple(examples),
    )


def _shown(row: Example) -> str:
    return preview_texts([row.text_a] if row.text_b is None else [row.text_a, row.text_b])
