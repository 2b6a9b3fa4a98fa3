"""A job without labeled rows: its readout is made of the words of its labels, and of what earlier tasks teach of words.

What it answers before there is a row is a start, and nobody knows how good it is unless there is a test split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Example
from onboard.domain.report import WithoutRowsJson
from onboard.guard.canaries import canaries_of
from onboard.pipeline.label_features import label_features
from onboard.pipeline.material import Workbench
from onboard.statistics.readout import Readout
from onboard.statistics.zero_rows import FEWEST_TEXTS, readout_of_names

MOST_GENERIC: Final = 96  # more move the middle little, and every one is a pass of the encoder


def readout_without_rows(bench: Workbench, checkpoint: Callable[[], None]) -> tuple[Readout, WithoutRowsJson]:
    """The readout, and what it was made of.

    Where the middle of the texts is the job's unlabelled ones say; with too few of them generic ones do, which ship
    with Onboard.

    Args:
        bench: the job's material.
        checkpoint: stops the work.
    """
    names = label_features(bench, checkpoint)
    submitted = len(bench.unlabelled) >= FEWEST_TEXTS
    texts: Sequence[Example] = bench.unlabelled
    if not submitted:
        generic = canaries_of(pairs=bench.pairs)
        texts = [Example(*generic[place], label="") for place in evenly_spaced(len(generic), MOST_GENERIC)]
    features = bench.own_features(texts, checkpoint)
    readout = readout_of_names(names, features, features.shape[1] // bench.width)
    return readout, {
        "labels": len(bench.dataset.labels), "described": len(bench.descriptions), "texts": len(texts),
        "unlabelled": submitted,
    }  # fmt: skip
