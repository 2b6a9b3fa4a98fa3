"""Suspected label errors in the check: rows whose label contradicts a bag of words.

The rule is that of `onboard.data.label_errors`, on a cross-validated logistic regression of TF-IDF features.
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
_MOST_CHARACTERS: Final = 500


def contradicted_by_words(examples: Sequence[Example]) -> list[tuple[int, str]]:
    """Return indices of suspected rows with the key of the label that seems right, clearest first.

    Empty for pairs (which depend on the relation of two texts), for too few or too many rows or classes, and if words
    are not informative.
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

    from onboard.data.label_errors import doubted_rows

    names, given = np.unique([label_key(example.label) for example in examples], return_inverse=True)
    probabilities = _out_of_fold([example.text_a[:_MOST_CHARACTERS] for example in examples], given)  # (N, K)
    return [(indices[doubt.row], str(names[doubt.seems])) for doubt in doubted_rows(probabilities, given)]


def _out_of_fold(texts: Sequence[str], given: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\w+|[^\w\s]"),
        LogisticRegression(C=10.0, max_iter=300),
    )
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):  # for products this small, threads cost 7 ×
        warnings.simplefilter("ignore", ConvergenceWarning)  # an unconverged model only detects fewer errors
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
        return np.asarray(cross_val_predict(model, list(texts), given, cv=folds, method="predict_proba"))
