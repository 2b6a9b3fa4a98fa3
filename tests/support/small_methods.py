"""Settings with which the methods of tasks fit the tiny T5s."""

from __future__ import annotations

from typing import Any

SETTINGS: dict[str, dict[str, Any]] = {
    "adapters": {"reduction_factor": 4}, "adapters-dagger": {"reduction_factor": 2},
    "pfeiffer-adapter": {"reduction_factor": 8}, "adapter-drop": {"reduction_factor": 4},
    "adapter-low-rank": {"reduction_factor": 2}, "phm-adapter": {"reduction_factor": 4, "n": 2},
    "compacter": {"reduction_factor": 4, "n": 4}, "compacter++": {"reduction_factor": 8, "n": 2},
    "prompt-tuning-r": {"tokens": 5}, "prompt-tuning-t": {"tokens": 3}, "intrinsic-said": {"dimension": 300},
}  # fmt: skip
