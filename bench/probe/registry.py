"""The cost of a registry of thousands of versions for the probe before anything is measured."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.probe.pool import Known
from onboard.bases import Base
from onboard.bases.fingerprints import pack_fingerprint
from onboard.domain.task import EmbeddingVersion, Task
from onboard.hypernetworks.register import register_base
from onboard.pipeline.candidates import collect_candidates
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.embedding import embedding_digest, pack_embedding

REPEATED: Final = 5
STORED: Final = 100  # different artifacts; versions share them, as storing thousands would take minutes
WORDS: Final = ("good", "bad")


def measure(base: Base, known: Sequence[Known]) -> dict[str, Any]:
    """Seconds of the SELECT of all fingerprints, and of everything up to the candidates (the median of five each).

    Args:
        base: that the versions belong to.
        known: an embedding and a fingerprint for each version; the first one's fingerprint is requested.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder) / "home", base=str(base.folder), device="cpu")
        with closing(open_services(settings)) as services:
            register_base(services, base)
            _publish(services, base, known)

            def select() -> int:
                with services.database.read() as session:
                    return len(VersionRepository(session).startable(base.digest))

            def collect() -> int:
                return len(collect_candidates(services, base, 0, known[0].fingerprint).candidates)

            selected, collected = _timed(select), _timed(collect)
    return {
        "versions": selected[0], "candidates": collected[0],
        "select_seconds": selected[1], "collect_seconds": collected[1],
    }  # fmt: skip


def _publish(services: Services, base: Base, known: Sequence[Known]) -> None:
    """A task with one version for each; all in one transaction."""
    stored = [services.store(pack_embedding(embedding.candidate.z, {}), "embedding") for embedding in known[:STORED]]
    with services.database.write() as session:
        versions = VersionRepository(session)
        for number, embedding in enumerate(known):
            task = Task(f"task{number}", "classification", WORDS, WORDS)
            versions.add(
                EmbeddingVersion(
                    task=task.name, kind="onboarded", artifact=stored[number % STORED],
                    embedding_digest=embedding_digest(embedding.candidate.z), backbone_digest=base.backbone_digest,
                    base_digest=base.digest, hypernetwork_version=1, dataset_digest="", parent="random",
                    task_kind="classification", labels=WORDS, words=WORDS, code_version="bench",
                    fingerprint=pack_fingerprint(embedding.fingerprint),
                ),
                task,
            )  # fmt: skip


def _timed(work: Callable[[], int]) -> tuple[int, float]:
    seconds = []
    for _ in range(REPEATED):
        started = time.monotonic()
        count = work()
        seconds.append(time.monotonic() - started)
    return count, round(statistics.median(seconds), 4)
