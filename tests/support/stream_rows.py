"""Small datasets for every task of the stream, and finished steps of a stream without a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.rows import Row, packed
from bench.stream.tasks import SUITE
from support.tiny_training import FILLERS, write_split

TELLING = ("great", "awful", "happy", "sad", "poor", "fine")  # a word per label
DATASETS: Mapping[str, tuple[bool, Sequence[str]]] = {
    "airline_sentiment": (False, ("positive", "negative", "neutral")),
    "causal_language": (False, ("direct", "conditional", "none")),
    "dailydialog_act": (False, ("inform", "question", "directive")),
    "dailydialog_emotion": (True, ("joy", "anger", "none")),
    "edos_sexism": (False, ("sexist", "not_sexist")),
    "emotion_cause": (True, ("cause", "no_cause")),
    "imppres_presupposition": (True, ("entailment", "contradiction", "neutral")),
    "indian_court_role": (False, ("facts", "ruling", "argument")),
    "it_ticket": (False, ("hardware", "access", "storage", "travel")),
    "jfleg_corrected": (True, ("first", "second")),
    "kpa_keypoint_match": (True, ("match", "no_match")),
    "nfcats_question": (False, ("reason", "experience", "debate")),
    "strategyqa_facts": (True, ("yes", "no")),
    "suggestion_mining": (False, ("suggestion", "other")),
    "twitter_url_paraphrase": (True, ("paraphrase", "not_paraphrase")),
}


def make_datasets(folder: Path, rows: int = 48) -> Path:
    """Three splits of every dataset; one word of a row tells its label."""
    rng = np.random.default_rng(0)
    for name, (pairs, labels) in DATASETS.items():
        for split in ("train", "validation", "test"):
            mark = f"{name[:2]}{split[:2]}"
            write_split(
                folder / SUITE / name, split, [_row(rng, pairs, labels, f"{mark}{row}", row) for row in range(rows)]
            )
    return folder


def _row(rng: np.random.Generator, pairs: bool, labels: Sequence[str], mark: str, row: int) -> dict[str, Any]:
    place = row % len(labels)
    text = f"{' '.join(rng.permutation([*rng.choice(FILLERS, 2), TELLING[place]]))} {mark}"
    if pairs:
        return {"text_a": f"the {mark}", "text_b": text, "label": labels[place]}
    return {"text": text, "label": labels[place]}


def made_step(accuracies: Sequence[float], *, start: float = 0.5, rows: int = 40, **more: Any) -> Row:
    """A step after which each task so far has this share of right answers; the start of the last one has `start`."""
    correct = [packed(np.arange(rows) < round(share * rows)) for share in accuracies]
    begins = packed(np.arange(rows) < round(start * rows))
    chance = packed(np.arange(rows) < rows // 4)
    return {"correct": correct, "rows": [rows] * len(correct), "start": begins, "random": chance, "share": 1.0,
            "seconds": {"train": 2.0, "test": 1.0}, "unchanged": len(correct) - 1, "parameters": 1000,
            "task": "it_ticket", **more}  # fmt: skip
