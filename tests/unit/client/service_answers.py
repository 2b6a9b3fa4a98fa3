"""Whole answers of a service: a checked dataset, two versions side by side, carried tasks."""

from __future__ import annotations

from typing import Any

PAIRED: dict[str, Any] = {
    "verdict": "better", "rows": 40, "newly_right": 9, "newly_wrong": 1, "p_value": 0.02, "loss": "log_loss",
    "increase": -0.2, "low": -0.3, "high": -0.1, "decided_by": "answers",
}  # fmt: skip
SIDE: dict[str, Any] = {
    "version": 1, "embedding_digest": "sha256:e", "dataset_digest": "sha256:d", "parent": "mrpc@v1", "weak": True,
    "metrics": {"validation": None, "test": {}}, "shared": {"accuracy": {"value": 0.5}}, "confusion": [[1, 2], [3, 4]],
}  # fmt: skip
COMPARED: dict[str, Any] = {
    "task": "paws", "a": SIDE, "b": {**SIDE, "version": 2, "weak": False}, "better": True, "reason": "It is better.",
    "comparison": PAIRED, "labels": [0, 1], "flipped": [{"label": 0, "a": 1, "b": 0, "count": 9}], "rows_left_out": 3,
}  # fmt: skip
INCOMPARABLE: dict[str, Any] = {
    **COMPARED, "a": {**SIDE, "shared": None, "confusion": None}, "b": {**SIDE, "shared": None, "confusion": None},
    "better": False, "reason": "Both are the same version.", "comparison": None, "labels": [], "flipped": [],
    "rows_left_out": 0,
}  # fmt: skip
GUARDED: dict[str, Any] = {
    "task": "paws", "verdict": "pass", "evidence": "held-out rows", "increase": 0, "low": -0.01, "high": 0.01,
    "rows": 40, "flipped": 1, "detectable": 0.01, "trouble": None,
}  # fmt: skip
CHECKED: dict[str, Any] = {
    "task": "rows", "source": "rows.jsonl", "kind": "classification", "kind_reason": "few values",
    "rows": {"train": 8, "validation": 0, "test": 2},
    "labels": [{"label": True, "word": "yes", "train": 8, "validation": 0, "test": 2}], "warnings": [],
    "digest": "sha256:d", "estimated_seconds": 60, "estimated_seconds_tuned": 90,
}  # fmt: skip
WARNING: dict[str, Any] = {
    "code": "many_integers", "message": "Numbers.", "count": 8, "remedy": "Say: kind=regression",
    "command": "Say: --kind regression", "examples": [{"label": 1}],
}  # fmt: skip


def carried_task(name: str, **others: Any) -> dict[str, Any]:
    return {
        "task": name, "from": 1, "version": 2, "hypernetwork_from": 1, "hypernetwork_version": 2, "reason": "Why.",
        "metrics": {"test": {}}, "guard": GUARDED, "comparison": PAIRED, **others,
    }  # fmt: skip


def carried_page(*names: str, refused: tuple[str, ...] = (), following: str | None = None) -> dict[str, Any]:
    return {
        "dry_run": False,
        "carried": [carried_task(name) for name in names],
        "refused": [carried_task(name, version=None) for name in refused],
        "next": following,
    }
