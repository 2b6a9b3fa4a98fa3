"""Versions put straight into a registry, without a job: what serving and fetching need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onboard.bases import Base
from onboard.data.regression import Buckets
from onboard.domain.dataset import Label
from onboard.domain.task import EmbeddingVersion, Task
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.statistics.novelty import Novelty
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.storage.novelty import novelty_facts, novelty_tensors


def embedding_of(seed: int, size: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def add_version(
    services: Services,
    base: Base,
    task: str,
    labels: Sequence[Label] = (),
    words: Sequence[str] = (),
    *,
    z: np.ndarray | None = None,
    bounds: tuple[float, float] | None = None,
    pinned: str = "sha256:0",
    novelty: Novelty | None = None,
    **changes: object,
) -> EmbeddingVersion:
    """The task's next version; a regression where `bounds` are given.

    Args:
        pinned: digest of the hypernetwork, as its file names it.
        novelty: what it knows of texts.
        changes: overwrite fields of the version.
    """
    z = embedding_of(0) if z is None else z
    low, high = bounds or (None, None)
    draft = EmbeddingVersion(
        task=task,
        kind="onboarded",
        artifact="",
        embedding_digest=embedding_digest(z),
        backbone_digest=base.backbone_digest,
        base_digest=base.digest,
        hypernetwork_version=1,
        dataset_digest="",
        parent="random",
        task_kind="regression" if bounds else "classification",
        labels=tuple(labels),
        words=Buckets(*bounds).words if bounds else tuple(words),
        low=low,
        high=high,
        method="hyperformer++",
        seeds=(0,),
        code_version="0.1.0",
        metrics={"validation": None, "test": None},
    )
    with services.database.read() as session:
        number = VersionRepository(session).next_number(task)
    draft = replace(draft, **{"version": number, **changes})  # type: ignore[arg-type]  # fields by their names
    facts = {**embedding_facts(draft, pinned), **novelty_facts(novelty)}
    content = pack_embedding(z, facts, novelty_tensors(novelty))
    stored = replace(draft, artifact=services.store(content, "embedding"))
    with services.database.write() as session:
        owner = Task(task, draft.task_kind, draft.labels, draft.words, low, high)
        return VersionRepository(session).add(stored, owner)
