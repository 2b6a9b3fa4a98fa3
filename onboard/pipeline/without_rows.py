"""A job without labeled rows: its readout is made of the words of its labels, and of what earlier tasks teach of words.

What it answers before there is a row is a start, and nobody knows how good it is unless there is a test split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onboard.contract.priors import PriorUse
from onboard.domain.report import WithoutRowsJson
from onboard.model.readout_features import blocks_of
from onboard.pipeline.generic_texts import generic_features
from onboard.pipeline.material import Workbench
from onboard.pipeline.prior import contributions
from onboard.statistics.readout import Readout
from onboard.statistics.zero_rows import FEWEST_TEXTS, readout_of_names


@dataclass(frozen=True)
class OfNames:
    """A readout without labeled rows, what it was made of, and what earlier tasks contributed; None without a prior."""

    readout: Readout
    made_of: WithoutRowsJson
    prior: PriorUse | None


def readout_without_rows(bench: Workbench, checkpoint: Callable[[], None]) -> OfNames:
    """The readout of the labels' words, drawn all the way towards what the prior says of them.

    Where the middle of the texts is the job's unlabelled ones say; with too few of them generic ones do, which ship
    with Onboard.

    Args:
        bench: the job's material.
        checkpoint: stops the work.
    """
    names, pairs = bench.names(checkpoint), bench.pairs
    submitted = len(bench.unlabelled) >= FEWEST_TEXTS
    texts = (
        bench.features(bench.unlabelled, checkpoint) if submitted else generic_features(bench, checkpoint, pairs=pairs)
    )
    blocks = blocks_of(pairs=pairs)
    prior = None if bench.prior is None else bench.prior.prior
    readout = readout_of_names(names, texts[:, : blocks * bench.width], blocks, prior)
    made_of: WithoutRowsJson = {
        "labels": len(bench.dataset.labels), "described": len(bench.descriptions), "texts": len(texts),
        "unlabelled": submitted,
    }  # fmt: skip
    return OfNames(readout, made_of, None if bench.prior is None else contributions(bench.prior, names, 1.0))
