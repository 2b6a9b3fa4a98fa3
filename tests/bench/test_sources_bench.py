"""The page of a base's sources says of each what base.json holds, and whether what was asked for came about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.sources import figures_of, main, page, verdicts
from onboard.bases import Base, find_base


def classified(value: float, tfidf: float, *, pairs: bool = False) -> dict[str, Any]:
    """A source of base.json."""

    def metrics(accuracy: float) -> dict[str, Any]:
        return {"accuracy": {"value": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05, "n": 400}}

    return {
        "kind": "classification", "labels": ["a", "b"], "words": ["a", "b"], "pairs": pairs, "rows": 1200,
        "family": "sentiment",
        "metrics": {
            "test": metrics(value),
            "baselines": {"majority": metrics(0.5), "tfidf_logistic_regression": metrics(tfidf)},
        },
    }  # fmt: skip


def base_of(tmp_path: Path, **sources: dict[str, Any]) -> Base:
    return Base(tmp_path, {"name": "ours", "sources": sources})


def test_glue_is_held_against_its_bars_and_the_others_against_tfidf_by_single_texts_and_pairs(tmp_path: Path) -> None:
    base = base_of(
        tmp_path, sst2=classified(0.82, 0.9), qqp=classified(0.7899, 0.5, pairs=True),
        poems=classified(0.7, 0.6), films=classified(0.7, 0.7), replies=classified(0.8, 0.7, pairs=True),
    )  # fmt: skip
    lines = verdicts(base, figures_of(base))[2:]
    assert lines == [
        "| sst2, accuracy at least 82.0 | 82.0 | met |",
        "| qqp, accuracy at least 79.0 | 79.0 | **not met** |",
        "| single texts of the other sources above TF-IDF, at least 80% | 1 of 2 (50%) | **not met** |",
        "| pairs of texts of the other sources above TF-IDF, at least 90% | 1 of 1 (100%) | met |",
    ]


def test_the_page_has_a_row_of_every_source_and_the_mean_of_every_family(tmp_path: Path) -> None:
    base = base_of(tmp_path, poems=classified(0.7, 0.6), films=classified(0.8, 0.9))
    text = page(base, figures_of(base), "python -m bench.sources")
    assert "| poems | sentiment | single | 1,200 | accuracy | 400 | 70.0 (65.0 to 75.0) | 50.0 | 60.0 |" in text
    assert "| sentiment | 2 | 75.0 | 50.0 | 75.0 | 1 of 2 |" in text


def test_the_figures_of_the_base_that_ships_are_those_of_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--output", str(tmp_path / "it.json"), "--table", str(tmp_path / "it.md")]) == 0
    document = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))
    base = find_base("mini")
    assert document["digest"] == base.digest
    assert {figures["source"] for figures in document["sources"]} == {source.name for source in base.sources}
    assert "stsb, Pearson at least 0.78" in capsys.readouterr().out
