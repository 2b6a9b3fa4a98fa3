"""TF-IDF features of texts and of pairs of texts, for the baseline in every report.

For pairs, the features are the n-grams of both texts, their product (shared n-grams), their absolute difference, and
six numbers about the overlap. The latter carry most of the information about entailment or paraphrase in such a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from onboard.domain.dataset import Example
from onboard.evaluate.metrics import FloatArray

TOKEN = r"\w+|[^\w\s]"  # includes one-letter words, punctuation and emoji, because few rows need all information

_PARTS_OF_PAIRS = 4  # both texts, their product and their difference


class TfidfFeatures:
    """Vectorizer fitted on the training rows: 1-2 grams, logarithmic counts.

    Args:
        train: training rows; all single texts or all pairs.
        most: maximum number of features; the most frequent n-grams are used.

    Raises:
        ValueError: all texts are blank.
    """

    def __init__(self, train: Sequence[Example], most: int) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not any(re.search(TOKEN, text) for example in train for text in (example.text_a, example.text_b or "")):
            raise ValueError("the training texts are all blank")
        self.pairs = train[0].text_b is not None
        grams = most // _PARTS_OF_PAIRS if self.pairs else most
        self._vectoriser = TfidfVectorizer(
            ngram_range=(1, 2), sublinear_tf=True, token_pattern=TOKEN, max_features=max(1, grams)
        )
        seconds = [example.text_b or "" for example in train] if self.pairs else []
        self._vectoriser.fit([example.text_a for example in train] + seconds)

    def __call__(self, rows: Sequence[Example]) -> Any:
        """Return features of rows as a sparse matrix (n, F); F = V for single texts and 4V + 6 for pairs."""
        from scipy.sparse import csr_matrix, hstack

        a = self._vectoriser.transform([row.text_a for row in rows])  # (n, V)
        if not self.pairs:
            return a
        b = self._vectoriser.transform([row.text_b or "" for row in rows])  # (n, V)
        both = a.multiply(b)
        return hstack([a, b, both, abs(a - b), csr_matrix(_overlap(a, b, both))], format="csr")


def _overlap(a: Any, b: Any, both: Any) -> FloatArray:
    """Return cosine, shared n-grams relative to a, b and all, signed and absolute difference in length, (n, 6)."""
    in_a, in_b, shared = _count(a), _count(b), _count(both)  # (n,)
    total = np.maximum(in_a + in_b, 1)
    longer = (in_a - in_b) / total
    columns = [
        np.asarray(both.sum(axis=1)).ravel(),
        shared / np.maximum(in_a, 1),
        shared / np.maximum(in_b, 1),
        shared / np.maximum(in_a + in_b - shared, 1),
        longer,
        np.abs(longer),
    ]
    return np.stack(columns, axis=1)


def _count(matrix: Any) -> FloatArray:
    """Return the number of non-zero entries per row, (n,)."""
    return np.asarray(np.diff(matrix.tocsr().indptr), dtype=np.float64)
