"""The labels' own words as the frozen encoder reads them, and what labels were described as."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Example, label_key
from onboard.pipeline.material import Workbench


def label_features(bench: Workbench, checkpoint: Callable[[], None]) -> np.ndarray:
    """Features (K, 3h) of the words of every label; of one that is described the mean with its description's.

    Args:
        bench: the job's material; of a classification.
        checkpoint: stops the work.
    """
    labels = bench.dataset.labels
    words = bench.own_features([Example(words_of(label), None, label) for label in labels], checkpoint)
    described = [place for place, label in enumerate(labels) if label_key(label) in bench.descriptions]
    if not described:
        return words
    texts = [Example(bench.descriptions[label_key(labels[place])], None, labels[place]) for place in described]
    features = words.copy()
    features[described] = (words[described] + bench.own_features(texts, checkpoint)) / 2
    return features
