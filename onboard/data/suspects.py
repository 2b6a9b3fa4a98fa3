"""Suspected label errors: rows whose label a bag of words confidently contradicts.

Confident learning (arXiv 1911.00068) with TF-IDF features and cross-validated logistic regression. Where that model is
hardly better than the majority its doubts mean nothing, and none are told.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from onboard.domain.dataset import Example, label_key

if TYPE_CHECKING:
    import numpy as np

LEAST_ROWS: Final = 60
MOST_ROWS: Final = 2_000
_MOST_CLASSES: Final = 40
_LEAST_CLASS_ROWS: Final = 10
_FOLDS: Final = 5
_LEAST_GAIN: Final = 0.5  # of what the majority gets wrong, so much must be right
# Between the probability of the other label and of the given one. With every 20th label flipped on purpose (400 rows
# each; words tell 2 of 21 tasks that bases are trained on apart well enough) 88% of the suspects were flipped ones, and
# 0.8% of unflipped rows are suspected. At 0.6 it was 72% and 2.1%; but three times as many flipped rows were found.
_MARGIN: Final = 0.85
_MOST_CHARACTERS: Final = 500


def suspected_errors(examples: Sequence[Example]) -> list[tuple[int, str]]:
    """Indices of suspected rows with the key of the label that seems right, the clearest first.

    Empty for pairs (what decides them is between the texts), when there are too few or too many rows or classes, or
    when words say too little about the labels.
    """
    if any(example.text_b is not None for example in examples[:1]):
        return []
    counts = Counter(label_key(example.label) for example in examples)
    usable = [index for index, row in enumerate(examples) if counts[label_key(row.label)] >= _LEAST_CLASS_ROWS]
    classes = {label_key(examples[index].label) for index in usable}
    if not LEAST_ROWS <= len(usable) <= MOST_ROWS or not 2 <= len(classes) <= _MOST_CLASSES:
        return []
    return _disagreements([examples[index] for index in usable], usable)


def _disagreements(examples: Sequence[Example], indices: Sequence[int]) -> list[tuple[int, str]]:
    import numpy as np

    names, given = np.unique([label_key(example.label) for example in examples], return_inverse=True)
    probabilities = _out_of_fold([example.text_a[:_MOST_CHARACTERS] for example in examples], given)  # (N, K)
    accuracy = float((probabilities.argmax(1) == given).mean())
    majority = float(np.bincount(given).max() / len(given))
    if accuracy - majority < _LEAST_GAIN * (1 - majority):
        return []
    usual = np.array([probabilities[given == k, k].mean() for k in range(len(names))])  # (K,)
    likely = np.where(probabilities >= usual, probabilities, 0.0)
    other = likely.argmax(1)
    rows = np.arange(len(given))
    margin = probabilities[rows, other] - probabilities[rows, given]
    doubted = (other != given) & (likely.max(1) > 0) & (margin >= _MARGIN)
    ranked = sorted(map(int, np.flatnonzero(doubted)), key=lambda row: -margin[row])
    return [(indices[row], str(names[other[row]])) for row in ranked]


def _out_of_fold(texts: Sequence[str], given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\w+|[^\w\s]"),
        LogisticRegression(C=10.0, max_iter=300),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an unconverged model only doubts less well
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
        return np.asarray(cross_val_predict(model, list(texts), given, cv=folds, method="predict_proba"))
