"""The measurement of tuning: tasks by rules that can be read, and a page that shows what the guard lets through."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_base import with_fingerprints

from bench.harness.page import ANOTHER_BASE
from bench.harness.unseen import KINDS, make
from bench.tuning.__main__ import BaseWithSources
from bench.tuning.page import page, taken
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.dataset import Example
from onboard.train.settings import TuningSettings

TASK = "airline_sentiment"
SOURCES = {
    "cola": [Example(f"He goes home {number}.", None, "acceptable") for number in range(8)],
    "sst2": [
        Example(f"film {number} " + "and so on " * (number % 2 * 8), None, ("negative", "positive")[number // 2 % 2])
        for number in range(32)
    ],
    "mnli": [Example(f"We talked {number} " + "a while " * 4, f"We talked {number}", "neutral") for number in range(8)],
    "qnli": [
        Example(f"{asks} was it{f', number {number}' * (number % 2)}?", f"It was {number}.", "entailment")
        for asks in ("Who", "Where", "When", "Why", "How many")
        for number in range(6)
    ],
    "qqp": [Example(f"why {number}", f"why is it so {number} that we do not ask", "duplicate") for number in range(8)],
    "mrpc": [
        Example(f"It rose{' 5' * (number % 2)} {'a' * number}", f"It{' 4' * (number // 2 % 2)}", "paraphrase")
        for number in range(16)
    ],
    "stsb": [Example(f"Line {'b' * number}", "Other", "4.0") for number in range(8)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_balanced_rows_to_train_on_and_others_to_test_on(kind: str) -> None:
    task = make(kind, SOURCES, 12)
    counts = [sum(row.label == label for row in task.train) for label in task.labels]
    assert len(set(counts)) == 1
    assert counts[0] >= 1
    assert 0 < len(task.test) <= 12
    assert not {(row.text_a, row.text_b) for row in task.train} & {(row.text_a, row.text_b) for row in task.test}
    assert {row.label for row in task.test} <= set(task.labels)


def test_the_labels_follow_from_the_texts() -> None:
    def labelled(kind: str) -> set[tuple[str, str | None, Any]]:
        task = make(kind, SOURCES, 100)
        return {(row.text_a, row.text_b, row.label) for row in (*task.train, *task.test)}

    for text, _, label in labelled("answer"):
        opening = text.lower().split()[0]
        assert label == {"who": "person", "where": "place", "when": "time", "why": "reason", "how": "number"}[opening]
    for first, second, label in labelled("figures"):
        there = any(map(str.isdigit, first)), any(map(str.isdigit, second or ""))
        assert there == {"left": (True, False), "right": (False, True), "both": (True, True)}.get(label, (False, False))
    for first, second, label in labelled("asked"):
        assert label == ("before" if first.endswith("?") else "after")
        assert (second or "").endswith("." if label == "before" else "?")
    for first, second, label in labelled("longer"):
        assert (label == "first") == (len(first.split()) > len((second or "").split()))
    for text, _, label in labelled("mood"):
        assert label.startswith("long" if len(text.split()) >= 20 else "brief")


def measured(accuracy: float, increase: float = 0.0) -> dict[str, Any]:
    return {"accuracy": accuracy, "loss": 1.0, "training": 0.5, "sources": {"sst2": {"increase": increase}}}


def tuned(recipe: str, task: str, share: float, **ends: Any) -> dict[str, Any]:
    return {"variant": f"{recipe}/{task}", "seed": 0, "share": share, "tune_seconds": 9.0, **ends}


def alone(task: str, accuracy: float) -> dict[str, Any]:
    run = {"variant": task, "seed": 0, "tfidf": 0.4, "auto": True}
    return {**run, **measured(accuracy)}


def test_what_is_taken_is_the_whole_step_or_a_share_of_it_or_the_embedding_alone() -> None:
    before, whole, half = alone("asked", 0.5), measured(0.9, 0.1), measured(0.7, 0.01)
    assert taken(tuned("a", "asked", 1.0, whole=whole), before)["accuracy"] == 0.9
    assert taken(tuned("a", "asked", 0.5, whole=whole, kept=half), before)["accuracy"] == 0.7
    refused = taken(tuned("a", "asked", 0.0, whole=whole), before)
    assert refused["accuracy"] == 0.5
    assert refused["sources"] == {}


def test_the_page_shows_gains_and_what_the_sources_lose() -> None:
    runs = [
        alone("asked", 0.5), alone("origin", 0.6),
        tuned("drift", "asked", 0.5, whole=measured(0.9, 0.2), kept=measured(0.7, 0.01)),
        tuned("drift", "origin", 0.0, whole=measured(0.8, 0.3)),
    ]  # fmt: skip
    facts = {"command": "bench", "base": "sha256:0", "shots": 32, "test_rows": 300, "source_rows": 150}
    shown = page({**facts, "runs": runs})
    assert shown.split("\n\n")[1].startswith(f"**{ANOTHER_BASE} (`sha256:0`)")
    (line,) = [line_of_page for line_of_page in shown.splitlines() if line_of_page.startswith("| drift |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    half = 1.96 * np.array([40.0, 20.0]).std(ddof=1) / 2**0.5
    assert cells[1] == f"+30.0 ± {half:.1f}"
    assert cells[2:4] == ["+0.2500", "+0.300"]
    assert cells[4:6] == ["1 of 2", "0.25"]
    assert cells[6].startswith("+10.0")
    assert cells[7:9] == ["+0.0050", "+0.010"]
    assert "| asked 0 | 40.0 | 50.0 | yes | 70.0 (0.5) |" in shown
    assert "| origin 0 | 40.0 | 60.0 | yes | 60.0 (0) |" in shown


@pytest.fixture
def place(tiny_base: Base, tmp_path: Path) -> BaseWithSources:
    """The tiny base, and rows of its two sources and of a held-out task."""
    for split in ("train", "test"):
        reviews = [
            {"text": f"{split}: the film was {word} {'and fine ' * (number % 7)}", "label": label}
            for number in range(20)
            for word, label in (("bad", "negative"), ("good", "positive"))
        ]
        pairs = [{"text_a": f"a {split}", "text_b": "the plot", "label": str(number / 2)} for number in range(10)]
        for folder, rows in (("source/sst2", reviews), ("source/stsb", pairs), (f"wide/{TASK}", reviews)):
            (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
            with gzip.open(tmp_path / "data" / folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as lines:
                lines.write("".join(json.dumps(row) + "\n" for row in rows))
    base = with_fingerprints(tiny_base, tmp_path / "base")
    return BaseWithSources(base, load_engine(base, "cpu"), tmp_path / "data", 32)


def test_a_task_is_learned_and_tuned_and_the_guards_share_of_the_step_is_measured_at_both_ends(
    place: BaseWithSources,
) -> None:
    assert {name: lost["increase"] for name, lost in place.sources.losses(place.engine.hypernetwork).items()} == {
        "sst2": 0.0, "stsb": 0.0,
    }  # fmt: skip
    begun = place.learn_alone(TASK, 0)
    assert begun["majority"] <= 0.6
    gentle = TuningSettings(steps=2, most_steps=2, learning_rate=1e-5)
    violent = TuningSettings(steps=4, most_steps=4, learning_rate=1.0, beta=0.0)
    gentle_run, refused = (place.tune(begun, tuning, f"recipe/{TASK}", 0) for tuning in (gentle, violent))
    assert gentle_run["share"] == 1.0
    assert all(abs(lost["increase"]) < 0.01 for lost in gentle_run["whole"]["sources"].values())
    assert refused["share"] < 1.0
    assert taken(refused, begun)["accuracy"] in (begun["accuracy"], refused.get("kept", {}).get("accuracy"))
