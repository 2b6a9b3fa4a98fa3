"""Source tasks as they lie in a folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from bench.harness.source_folders import read_source
from onboard.errors import NotFoundError


def write_source(
    folder: Path, rows: list[dict[str, object]], splits: tuple[str, ...] = ("train", "validation")
) -> Path:
    folder.mkdir(parents=True)
    for split in splits:
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def test_a_source_is_read_with_its_kind_labels_words_and_both_splits(tmp_path: Path) -> None:
    classes = write_source(tmp_path / "rte", [{"text_a": "a", "text_b": "b", "label": label} for label in
                                              ("not_entailment", "entailment", "entailment")])  # fmt: skip
    source = read_source(classes)
    assert (source.name, source.kind, source.pairs) == ("rte", "classification", True)
    assert source.labels == ("entailment", "not_entailment")
    assert source.words == ("entailment", "not entailment")
    assert source.values().tolist() == [1, 0, 0]
    assert source.targets().tolist() == [[0, 1], [1, 0], [1, 0]]
    assert source.validation == source.train
    scale = read_source(write_source(tmp_path / "stsb", [{"text": "a", "label": step / 5} for step in range(26)]))
    assert (scale.kind, scale.labels, scale.low, scale.high, scale.pairs) == ("regression", (), 0.0, 5.0, False)
    assert len(scale.words) == scale.targets().shape[1] == 21
    np.testing.assert_allclose(scale.targets() @ np.linspace(0, 5, 21), [step / 5 for step in range(26)], atol=1e-6)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_split_that_is_missing_is_named(tmp_path: Path, split: str) -> None:
    folder = write_source(tmp_path / "sst2", [{"text": "a", "label": "x"}])
    (folder / f"{split}.jsonl.gz").unlink()
    with pytest.raises(NotFoundError, match=f"sst2 has no {split} split"):
        read_source(folder)
