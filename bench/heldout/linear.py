"""Logistic and ridge regression on features: what one would do with an encoder that others give away."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from onboard.statistics.blocks import lengths_of_blocks

INVERSE_PENALTY: Final = 10.0  # of features that are centred and of mean squared length 1
RIDGE: Final = 0.3
_STEPS: Final = 1000


def scaled(train: np.ndarray, test: np.ndarray, blocks: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, h) and (m, h), centred on the first and of mean squared length 1 there, as is each of the blocks."""
    mean = train.mean(0)
    lengths = lengths_of_blocks(train - mean, blocks)
    return (train - mean) / lengths, (test - mean) / lengths


def logistic(
    train: Any, labels: np.ndarray, test: Any, *, balanced: bool = False, inverse_penalty: float = INVERSE_PENALTY
) -> np.ndarray:
    """Probabilities (m, K) of test rows.

    Args:
        train: features (n, h), dense or sparse.
        labels: index of each row's label (n,), all of 0 … K - 1 among them.
        test: features (m, h).
        balanced: whether the rows of a rare label count for more.
        inverse_penalty: of the weights.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=inverse_penalty, max_iter=_STEPS, class_weight="balanced" if balanced else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes")  # a row each is what few rows come to
        model.fit(train, labels)
    return np.asarray(model.predict_proba(test), dtype=np.float64)


def ridge(train: np.ndarray, values: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Values (m,) of test rows; arguments as of `logistic`."""
    from sklearn.linear_model import Ridge

    return np.asarray(Ridge(alpha=RIDGE).fit(train, values).predict(test), dtype=np.float64)
