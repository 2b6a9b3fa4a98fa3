"""Embeddings are exchanged among sources with equally many labels, and what that costs stands on the page."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import save_file

from bench.shuffled import SUITES, exchanged, main, page
from onboard.bases import Base, SourceTask


def source(name: str, labels: int) -> SourceTask:
    words = tuple(f"label {index}" for index in range(labels))
    return SourceTask(name, "classification", words, words, None, None, {})


def test_each_source_gets_the_embedding_of_another_with_as_many_labels() -> None:
    sources = [source(name, labels) for name, labels in (("a", 2), ("b", 2), ("c", 2), ("d", 3), ("e", 3), ("f", 7))]
    for seed in range(5):
        strangers = exchanged(sources, seed)
        assert set(strangers) == set(strangers.values()) == set("abcde"), "f has nobody to exchange with"
        assert all(name != other for name, other in strangers.items())
        assert {strangers[name] for name in "de"} == set("de")


def test_the_page_tells_the_mean_cost_and_each_source_the_costliest_first() -> None:
    figures = {
        "mild": {"labels": 2, "own": 0.7, "strangers": ["harsh", "harsh"], "others": [0.65, 0.65]},
        "harsh": {"labels": 2, "own": 0.9, "strangers": ["mild", "mild"], "others": [0.5, 0.6]},
    }
    lines = page(figures, "ours", "python -m bench.shuffled").splitlines()
    assert lines[-2:] == ["| harsh | 2 | 90.0 | 55.0 | +35.0 |", "| mild | 2 | 70.0 | 65.0 | +5.0 |"]
    (verdict,) = [line for line in lines if "at least 10 points" in line]
    assert "+20.0 (" in verdict
    assert verdict.endswith("| met |")


def with_poems(base: Base, folder: Path) -> Path:
    """A copy with a second source of two labels, of whose embedding nothing is known."""
    shutil.copytree(base.folder, folder)
    sources = {**base.document["sources"], "poems": base.document["sources"]["sst2"]}
    (folder / "base.json").write_text(json.dumps({**base.document, "sources": sources}), encoding="utf-8")
    save_file({**base.embeddings, "poems": base.embeddings["topics-2"]}, folder / "embeddings.safetensors")
    return folder


def test_a_base_with_nothing_to_exchange_says_so(
    tiny_base: Base, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suite in SUITES:
        (tmp_path / suite).mkdir()
    assert main(["--base", str(tiny_base.folder), "--data", str(tmp_path), "--output", str(tmp_path / "it.json")]) == 1
    assert "no two sources" in capsys.readouterr().out
    assert not (tmp_path / "it.json").exists()


def test_rows_are_answered_under_every_embedding(
    tiny_base: Base, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for suite in SUITES:
        (tmp_path / "data" / suite).mkdir(parents=True)
    for task in ("sst2", "poems"):
        folder = tmp_path / "data" / "wide" / task
        folder.mkdir()
        rows = [{"text": f"film {index}", "label": ("negative", "positive")[index % 2]} for index in range(6)]
        with gzip.open(folder / "test.jsonl.gz", "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in rows)
    output, base = tmp_path / "it.json", with_poems(tiny_base, tmp_path / "base")
    words = ["--base", str(base), "--data", str(tmp_path / "data"), "--rows", "4", "--output", str(output)]
    assert main([*words, "--table", str(tmp_path / "it.md")]) == 0
    sources = json.loads(output.read_text(encoding="utf-8"))["sources"]
    assert set(sources) == {"sst2", "poems"}
    assert all(len(facts["others"]) == 3 and 0 <= facts["own"] <= 1 for facts in sources.values())
    assert "on the mean of tasks" in capsys.readouterr().out
