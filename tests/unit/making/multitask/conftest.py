"""A tiny T5 and its sources, made once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.tiny_training import make_sources, make_tiny_t5

SECTION = {
    "reduction_factor": 4, "task_embedding_size": 8, "projector_width": 8, "steps": 6, "batch": 8,
    "learning_rate": 3e-3, "warmup_steps": 2, "validate_every": 3,
}  # fmt: skip


@pytest.fixture(scope="session")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a T5 with random weights."""
    return make_tiny_t5(tmp_path_factory.mktemp("t5"))


@pytest.fixture(scope="session")
def tiny_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two source tasks."""
    return make_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture
def document(tiny_t5: Path, tiny_sources: Path) -> dict[str, Any]:
    """A recipe for both, as TOML would give it; to be changed freely."""
    return {
        "name": "trial",
        "licence": "Apache-2.0",
        "backbone": {"from": str(tiny_t5), "max_tokens": 32},
        "sources": {name: {"from": str(tiny_sources / name)} for name in ("alike", "moods")},
        "hypernetwork": dict(SECTION),
    }
