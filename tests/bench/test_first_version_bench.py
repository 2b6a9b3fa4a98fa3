"""The measurement of a newcomer's first minutes: a verdict that can be red, and a wheel of this checkout alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import first_version

SECONDS = {"environment": 5.0, "torch": 40.0, "install": 60.0, "check": 8.0, "submit": 40.0, "predict": 7.0}


def job(seconds: float) -> dict[str, Any]:
    return {"job_seconds": seconds, "stages": {"probe": 8.0, "train": 20.0}, "version": "reviews@v1"}


@pytest.mark.parametrize(
    ("install", "spent", "code", "verdicts"),
    [(60.0, 45.0, 0, ["met", "met"]), (81.0, 45.0, 1, ["**not met**", "met"]), (60.0, 45.1, 1, ["met", "**not met**"])],
)
def test_it_fails_when_all_of_it_or_the_job_took_longer_than_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: float, spent: float, code: int, verdicts: list[str]
) -> None:
    measured = ({**SECONDS, "install": install}, job(spent))
    monkeypatch.setattr(first_version, "first_version", lambda folder, rows: measured)
    monkeypatch.setattr(first_version, "first_versions", lambda *_: runs())
    output, table = tmp_path / "found.json", tmp_path / "found.md"
    assert first_version.main(["--output", str(output), "--table", str(table)]) == code
    assert json.loads(output.read_text(encoding="utf-8"))["kept"] is (code == 0)
    lines = table.read_text(encoding="utf-8").splitlines()
    assert [line.split(" | ")[-1].removesuffix(" |") for line in lines if line.startswith("| at most")] == verdicts


def runs(**slower: float) -> list[dict[str, Any]]:
    """Of two draws, as fast as wanted; `slower` has the first version's seconds by how it was submitted."""
    first = {"cold": 7.0, "warm": 2.5, "fast": 2.5, **slower}
    return [
        {"how": how, "draw": draw, "first": seconds, "whole": 24.0, "job": 22.0, "cpu": 30.0, "confirmed": draw == 0}
        for draw in range(2)
        for how, seconds in first.items()
    ]


@pytest.mark.parametrize(("slower", "code"), [({}, 0), ({"cold": 8.1}, 1), ({"warm": 3.1}, 1)])
def test_without_pip_it_fails_when_a_first_version_takes_longer_than_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slower: dict[str, float], code: int
) -> None:
    monkeypatch.setattr(first_version, "first_versions", lambda *_: runs(**slower))
    table = tmp_path / "found.md"
    assert first_version.main(["--here", "--table", str(table)]) == code
    text = table.read_text(encoding="utf-8")
    assert ("**not met**" in text) is (code == 1)
    assert "pip install` of the wheel" not in text
    assert "| warm, `--fast` | 2.5 s (2.5) | 24.0 s (24.0) | 22.0 s (22.0) | 30.0 s (30.0) | 9.6 | 1 of 2 |" in text
