"""What rows of common and of rare labels count where something is trained or chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tiny_base import make_tiny_base

from onboard.bases.load import load_engine
from onboard.data.targets import label_weights
from onboard.domain.dataset import Dataset, Example
from onboard.pipeline.material import Workbench


def dataset(*counts: int) -> Dataset:
    labels = tuple(str(label) for label in range(len(counts)))
    rows = tuple(
        Example(f"text {label} {row}", None, labels[label])
        for label, count in enumerate(counts)
        for row in range(count)
    )
    return Dataset("classification", labels, rows)


def test_rows_count_by_the_root_of_their_label_and_one_on_the_mean() -> None:
    rows = dataset(16, 4, 1)
    weights = label_weights(rows)
    assert weights[1] == pytest.approx(2 * weights[0])
    assert weights[2] == pytest.approx(4 * weights[0])
    assert np.dot(weights, [16, 4, 1]) == pytest.approx(21)


@pytest.mark.parametrize("counts", [(8, 8), (11, 11, 11), (1, 1, 1, 1, 1)])
def test_balanced_rows_count_as_before_to_the_last_bit(counts: tuple[int, ...]) -> None:
    assert (label_weights(dataset(*counts)) == 1.0).all()


def test_what_a_job_trains_and_chooses_by_is_weighted_and_its_targets_are_not(tmp_path: Path) -> None:
    base, rows = make_tiny_base(tmp_path / "tiny"), dataset(9, 1)
    bench = Workbench(base, load_engine(base, "cpu"), rows, ("a", "b"))
    assert (bench.targets(rows.train).sum(1) == 1.0).all()
    counted = bench.labelled(rows.train).targets.sum(1)
    assert counted[-1] == pytest.approx(3 * counted[0])
    assert (bench.weighted(rows.train).sum(1) == counted).all()


def test_values_of_a_scale_count_alike(tmp_path: Path) -> None:
    base = make_tiny_base(tmp_path / "tiny")
    scale = Dataset(
        "regression", (), tuple(Example(f"t{row}", None, str(row % 3)) for row in range(9)), low=0.0, high=2.0
    )
    bench = Workbench(base, load_engine(base, "cpu"), scale, ("a", "b"))
    assert np.array_equal(bench.weighted(scale.train), bench.targets(scale.train))
    assert replace(bench, dataset=dataset(2, 1)).weighted(dataset(2, 1).train).sum() == pytest.approx(3.0)
