"""The report of a run: accuracy, macro-F1, loss, calibration, labels that are never answered."""

from __future__ import annotations

import numpy as np

from bench.harness.rows import Row
from bench.heldout.material import Cell, rows_of_labels
from bench.heldout.plan import MANY_ROWS
from onboard.evaluate.metrics import Margins, calibration_error, confusion, row_log_loss, spearman


def measured(cell: Cell, answers: np.ndarray) -> Row:
    """The metrics, accuracy and the like in per cent.

    Args:
        cell: the rows.
        answers: probabilities (m, K) of the test rows in the draw's labels; of a regression values (m,).
    """
    if cell.regression:
        return {"spearman": round(100 * spearman(cell.truth, answers), 2)}
    probabilities = np.zeros((len(answers), len(cell.labels)))
    probabilities[:, cell.columns] = answers
    return of_classes(cell.truth, probabilities, np.array(rows_of_labels(cell))) | {
        "unanswered": _unanswered(cell, probabilities.argmax(1))
    }


def of_classes(truth: np.ndarray, probabilities: np.ndarray, rows: np.ndarray) -> Row:
    """Accuracy, macro-F1 and calibration over all test rows; the loss over those whose label has a training row.

    Args:
        truth: index of the label (m,).
        probabilities: (m, K), zero of a label without a training row.
        rows: how many training rows each label has (K,).
    """
    margins = Margins.of(confusion(truth, probabilities.argmax(1), len(rows)))
    known = rows[truth] > 0
    loss = float(row_log_loss(truth[known], probabilities[known]).mean()) if known.any() else None
    return {
        "accuracy": round(100 * float(margins.accuracy()), 2), "macro_f1": round(100 * float(margins.macro_f1()), 2),
        "log_loss": None if loss is None else round(loss, 4),
        "mcc": round(100 * float(margins.mcc()), 2),
        "calibration": round(calibration_error(truth, probabilities), 4),
    }  # fmt: skip


def _unanswered(cell: Cell, answered: np.ndarray) -> list[str]:
    """Labels with many training rows that no test row got as its answer."""
    counts = rows_of_labels(cell)
    given = set(answered.tolist())
    return [str(label) for place, label in enumerate(cell.labels) if counts[place] > MANY_ROWS and place not in given]
