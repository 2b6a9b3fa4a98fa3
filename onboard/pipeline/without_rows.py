"""A job without labeled rows: its readout comes from the words of its labels and the prior of earlier tasks.

Such answers are a start. Their quality is unknown unless there is a test split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onboard.contract.priors import PriorUse
from onboard.contract.report import WithoutRows
from onboard.model.readout_features import blocks_of
from onboard.pipeline.generic_texts import generic_features
from onboard.pipeline.material import Workbench
from onboard.pipeline.prior import contributions
from onboard.statistics.readout import Readout
from onboard.statistics.zero_rows import FEWEST_TEXTS, readout_of_names


@dataclass(frozen=True)
class OfNames:
    """A readout without labeled rows, its inputs, and what earlier tasks contributed; None without a prior."""

    readout: Readout
    made_of: WithoutRows
    prior: PriorUse | None


def readout_without_rows(bench: Workbench, checkpoint: Callable[[], None]) -> OfNames:
    """Return the prior's readout for the labels' words.

    The job's unlabeled texts define the center of the texts; if there are too few, the generic texts of Onboard do.

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
    made_of = WithoutRows(
        labels=len(bench.dataset.labels), described=len(bench.descriptions), texts=len(texts), unlabelled=submitted
    )
    return OfNames(readout, made_of, None if bench.prior is None else contributions(bench.prior, names, 1.0))
