"""A home with many tasks that nobody learned: versions put straight into its registry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onboard.domain.task import EmbeddingVersion, Task
from onboard.hypernetworks.register import register_base
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding

_AT_ONCE = 500  # versions that one transaction takes


def services_of(base: Any, folder: Path, device: str) -> Services:
    """The services of a new home; nothing of the environment counts."""
    settings = Settings(
        home=folder, base=str(base.folder), device=device, start_worker=False,
        database_url="", broker_url="", artifact_url="",
    )  # fmt: skip
    services = open_services(settings)
    register_base(services, base)
    return services


def store_tasks(services: Services, base: Any, tasks: int, words: Sequence[Sequence[str]]) -> list[str]:
    """Store so many tasks with random embeddings; `words` are their label words, in turn. Returns their names."""
    size = len(next(iter(base.embeddings.values())))
    rng = np.random.default_rng(1)
    drafts = [
        _draft(services, base, task, rng.standard_normal(size), words[task % len(words)]) for task in range(tasks)
    ]
    for start in range(0, tasks, _AT_ONCE):
        with services.database.write() as session:
            versions = VersionRepository(session)
            for draft in drafts[start : start + _AT_ONCE]:
                versions.add(draft, Task(draft.task, draft.task_kind, draft.labels, draft.words))
    return [draft.task for draft in drafts]


def _draft(services: Services, base: Any, task: int, numbers: np.ndarray, words: Sequence[str]) -> EmbeddingVersion:
    z = numbers.astype(np.float32)
    facts: dict[str, Any] = {
        "task": f"task-{task}", "kind": "onboarded", "embedding_digest": embedding_digest(z),
        "backbone_digest": base.backbone_digest, "base_digest": base.digest, "hypernetwork_version": 1,
        "dataset_digest": "", "parent": "random", "task_kind": "classification", "labels": tuple(words),
        "words": tuple(words), "code_version": "",
    }  # fmt: skip
    draft = EmbeddingVersion(artifact="", **facts)
    content = pack_embedding(z, embedding_facts(draft, ""))
    return EmbeddingVersion(artifact=services.store(content, "embedding"), **facts)
