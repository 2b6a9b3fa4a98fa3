"""Measure a version under another hypernetwork, and compare both on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from onboard.bases import Base
from onboard.contract.evaluations import PairedComparison
from onboard.data.hashes import rows_without
from onboard.domain.dataset import Example
from onboard.domain.task import EmbeddingVersion
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
from onboard.evaluate.intervals import Metric
from onboard.evaluate.paired import compare_classification, compare_regression
from onboard.hypernetworks.engines import engine_at
from onboard.registry.services import Services
from onboard.storage.embedding import verified_embedding
from onboard.versions.answers import answers
from onboard.versions.compare import drawn, held_out
from onboard.versions.readouts import readout_of
from onboard.versions.side_by_side import truth

SPLITS: Final = ("validation", "test")
TAKEN_OVER: Final = "copied from"  # prefix of the note on a metric that was not measured again


@dataclass(frozen=True)
class Remeasured:
    """The result under the other hypernetwork.

    Args:
        metrics: as in a version; metrics that could not be measured again are the version's own, with a note.
        comparison: of the other hypernetwork with the pinned one, on all rows that could be measured; None without any.
    """

    metrics: dict[str, Any]
    comparison: PairedComparison | None


def remeasure(services: Services, base: Base, version: EmbeddingVersion, head: int, known: np.ndarray) -> Remeasured:
    """Measure a published version on its held-out and test rows under hypernetwork version `head` of its base.

    Args:
        head: the other hypernetwork version.
        known: hashes of rows to exclude. If many other rows remain, a fixed sample is used.

    Raises:
        PinMismatchError: the base has no such hypernetwork version.
        DamagedError: stored files are missing or do not match their digest.
    """
    splits = {name: drawn(rows_without(rows, known.tolist())) for name, rows in held_out(services, version).items()}
    rows = [row for name in SPLITS for row in splits[name]]
    metrics = _taken_over(version)
    if not rows:
        return Remeasured(metrics, None)
    z = verified_embedding(services.read(version.artifact), version)
    readout = readout_of(services, version)
    before, after = (
        answers(engine_at(services, base, number), version, z, version.words, rows, readout)
        for number in (version.hypernetwork_version, head)
    )
    answered = dict(zip(SPLITS, np.split(after, [len(splits[SPLITS[0]])]), strict=True))
    for name in SPLITS:
        if splits[name]:
            of_split = _evaluated(version, splits[name], answered[name], version.metrics.get(name) or {})
            metrics[name] = {key: metric.to_json() for key, metric in of_split.items()}
    compare = compare_classification if version.low is None else compare_regression
    return Remeasured(metrics, compare(truth(rows, version.labels), before, after))


def _evaluated(
    version: EmbeddingVersion, rows: Sequence[Example], answers: np.ndarray, present: Mapping[str, Any]
) -> dict[str, Metric]:
    """Compute the metrics that the version has now, including one that its job requested."""
    true = truth(rows, version.labels)
    if version.low is not None:
        return evaluate_regression(true, answers)
    return evaluate_classification(true, answers, "mcc" if "mcc" in present else None, version.labels)


def _taken_over(version: EmbeddingVersion) -> dict[str, Any]:
    """Return the version's metrics with a note that they were not measured again; existing notes are kept."""
    return {
        split: {name: _noted(version, metric) for name, metric in metrics.items()} if metrics else metrics
        for split, metrics in version.metrics.items()
    }


def _noted(version: EmbeddingVersion, metric: Mapping[str, Any]) -> dict[str, Any]:
    note = metric.get("note", "")
    if TAKEN_OVER in note:
        return dict(metric)
    origin = f"{TAKEN_OVER} {version.reference}, measured under hypernetwork version {version.hypernetwork_version}"
    return {**metric, "note": f"{note}; {origin}" if note else origin}
