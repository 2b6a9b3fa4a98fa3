"""How good a version is under another hypernetwork: its metrics measured again, and both compared on the same rows."""

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
TAKEN_OVER: Final = "taken over from"  # how the note of a metric begins that was not measured again


@dataclass(frozen=True)
class Remeasured:
    """What was found under the other hypernetwork.

    Args:
        metrics: as a version has them; what could not be measured again is the version's own, with a note that says so.
        comparison: of the other hypernetwork against the one that the version is pinned to, on all rows that could be
            measured; None without any.
    """

    metrics: dict[str, Any]
    comparison: PairedComparison | None


def remeasure(services: Services, base: Base, version: EmbeddingVersion, head: int, known: np.ndarray) -> Remeasured:
    """Let a published version answer its held-out and test rows under hypernetwork version `head` of its base.

    Args:
        services: where it lies.
        base: that it belongs to.
        version: a published version.
        head: the other hypernetwork version.
        known: hashes of rows that are no evidence. Of many others some are drawn, always the same.

    Raises:
        PinMismatchError: the base has no such hypernetwork version.
        DamagedError: stored bytes are gone, or do not match their digest.
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
    """The metrics that the version has now, too where the job had to ask for one."""
    true = truth(rows, version.labels)
    if version.low is not None:
        return evaluate_regression(true, answers)
    return evaluate_classification(true, answers, "mcc" if "mcc" in present else None, version.labels)


def _taken_over(version: EmbeddingVersion) -> dict[str, Any]:
    """The version's metrics with a note that they were not measured again; what was noted so before stays as it is."""
    return {
        split: {name: _noted(version, metric) for name, metric in metrics.items()} if metrics else metrics
        for split, metrics in version.metrics.items()
    }


def _noted(version: EmbeddingVersion, metric: Mapping[str, Any]) -> dict[str, Any]:
    note = metric.get("note", "")
    if TAKEN_OVER in note:
        return dict(metric)
    said = f"{TAKEN_OVER} {version.reference}, measured under hypernetwork version {version.hypernetwork_version}"
    return {**metric, "note": f"{note}; {said}" if note else said}
