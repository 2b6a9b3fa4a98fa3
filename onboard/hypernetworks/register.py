"""Register a base: store its hypernetwork and its sources' embeddings as rows and artifacts."""

from __future__ import annotations

from dataclasses import replace

from onboard.bases import Base, SourceTask
from onboard.domain.release import code_version
from onboard.domain.task import BaseRecord, EmbeddingVersion, HypernetworkVersion, Task
from onboard.errors import NotFoundError
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding


def register_base(services: Services, base: Base) -> BaseRecord:
    """Register the base unless it is registered already; then this is fast. Concurrent calls are safe.

    Raises:
        BaseDamagedError: it is not registered, and one of its files is incomplete.
    """
    with services.database.read() as session:
        try:
            registered = BaseRepository(session).get(base.digest)
        except NotFoundError:
            registered = None
    if registered is not None and registered.location == str(base.folder):
        return registered
    base.require_whole()
    hypernetwork = _hypernetwork(services, base)
    sources = [_source(services, base, hypernetwork, source) for source in base.sources]
    record = BaseRecord(base.digest, base.name, str(base.folder), base.backbone_digest, base.document)
    with services.database.write() as session:
        BaseRepository(session).register(record, hypernetwork, sources)
        return BaseRepository(session).get(base.digest)


def _hypernetwork(services: Services, base: Base) -> HypernetworkVersion:
    artifact = services.store((base.folder / "hypernetwork.safetensors").read_bytes(), "hypernetwork")
    return HypernetworkVersion(base.digest, 1, artifact, artifact)


def _source(
    services: Services, base: Base, hypernetwork: HypernetworkVersion, source: SourceTask
) -> tuple[Task, EmbeddingVersion]:
    task = Task(source.name, source.kind, source.labels, source.words, source.low, source.high, source=True)
    z = base.embeddings[source.name]
    draft = EmbeddingVersion(
        task=source.name,
        kind="source",
        artifact="",
        embedding_digest=embedding_digest(z),
        backbone_digest=base.backbone_digest,
        base_digest=base.digest,
        hypernetwork_version=1,
        dataset_digest="",
        parent="",
        task_kind=source.kind,
        labels=source.labels,
        words=source.words,
        low=source.low,
        high=source.high,
        pairs=source.pairs,
        method=base.method,
        code_version=code_version(),
        metrics={"validation": None, "test": source.metrics.get("test")},
        version=1,
    )
    packed = pack_embedding(z, embedding_facts(draft, hypernetwork.digest))
    return task, replace(draft, artifact=services.store(packed, "embedding"))
