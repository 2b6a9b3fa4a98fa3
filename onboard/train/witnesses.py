"""Warn about rows that cannot judge a training because they trained its start."""

from __future__ import annotations

from collections.abc import Mapping

from onboard.contract.checks import DatasetWarning
from onboard.data.problems import Finding


def known_finding(counts: Mapping[str, int]) -> list[DatasetWarning]:
    """Return a warning about known rows in these splits; empty if there are none."""
    parts = [f"{count} {split}" for split, count in counts.items() if count]
    if not parts:
        return []
    return [
        Finding(
            "known_rows",
            f"{' and '.join(parts)} rows were used to train the start or the hypernetwork, so estimates ignore them.",
            sum(counts.values()),
            "Pass rows that nothing was trained on: --test FILE.",
        ).to_document()
    ]
