"""Tasks, their embedding versions, and the hypernetwork versions and bases these are pinned to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from onboard.domain.moment import from_iso, to_iso

if TYPE_CHECKING:
    from onboard.domain.dataset import Kind, Label

VersionKind = Literal["source", "onboarded"]


@dataclass(frozen=True, slots=True)
class Task:
    """A task by its name, with the label set that a resubmission has to match.

    Args:
        labels: class labels in their canonical order; empty for regression.
        words: the verbaliser's word per label; for regression the word of each bucket.
        low: lowest value of a regression task, else None.
        high: highest value of a regression task, else None.
        source: whether it was shipped with a base.
    """

    name: str
    kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    source: bool = False
    created_at: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The task as a JSON-compatible document; times are ISO 8601 in UTC."""
        return {
            "task": self.name,
            "kind": self.kind,
            "labels": list(self.labels),
            "words": list(self.words),
            "low": self.low,
            "high": self.high,
            "source": self.source,
            "created_at": to_iso(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class EmbeddingVersion:
    """An immutable published version of a task, with everything it is pinned to.

    Args:
        version: 1, 2, …; 0 until it is published.
        kind: shipped with a base, or learned here.
        method: name of the fine-tuning method that made it.
        artifact: digest of its tensors in the artifact store ("sha256:…").
        embedding_digest: digest of the embedding's numbers alone.
        backbone_digest: backbone it was trained on.
        base_digest: base it belongs to.
        hypernetwork_version: number in the base's line of hypernetworks.
        dataset_digest: snapshot of the rows; for a shipped source what the base says, or "".
        parent: what it was initialised from: "sst2@v1", "random", "mean", "mixture", …
        task_kind: classification or regression.
        labels: class labels of this version (empty for regression); `words` has one word for each.
        low: lowest value of a regression version, else None; `high` likewise.
        seeds: every seed that had a part in it.
        code_version: version or digest of the code that made it.
        metrics: {"validation": {...} | None, "test": {...}} as in the result document.
        weak: no better than always answering the majority.
        fingerprint: of its dataset, packed; None where the base has no fingerprints, or has its own of a source.
        mixed_from: weight of each embedding by its name where it was initialised from a mixture; else empty.
        job: id of the job that published it; None for a shipped source.
        created_at: epoch seconds; 0 until it is published.
    """

    task: str
    kind: VersionKind
    artifact: str
    embedding_digest: str
    backbone_digest: str
    base_digest: str
    hypernetwork_version: int
    dataset_digest: str
    parent: str
    task_kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    code_version: str
    method: str = ""
    seeds: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    weak: bool = False
    fingerprint: str | None = None
    mixed_from: dict[str, float] = field(default_factory=dict)
    job: str | None = None
    version: int = 0
    created_at: float = 0.0

    @property
    def reference(self) -> str:
        """The reference that always means this version: `task@vN`."""
        return f"{self.task}@v{self.version}"

    @property
    def parents(self) -> tuple[str, ...]:
        """Everything that it was initialised from, by name; empty for a shipped source."""
        return tuple(self.mixed_from) or ((self.parent,) if self.parent else ())

    def to_json(self) -> dict[str, Any]:
        """The version as a JSON-compatible document, without the fingerprint; times are ISO 8601 in UTC."""
        return {
            "task": self.task,
            "version": self.version,
            "kind": self.kind,
            "method": self.method,
            "artifact": self.artifact,
            "embedding_digest": self.embedding_digest,
            "backbone_digest": self.backbone_digest,
            "base_digest": self.base_digest,
            "hypernetwork_version": self.hypernetwork_version,
            "dataset_digest": self.dataset_digest,
            "parent": self.parent,
            "mixed_from": self.mixed_from,
            "task_kind": self.task_kind,
            "labels": list(self.labels),
            "words": list(self.words),
            "low": self.low,
            "high": self.high,
            "seeds": list(self.seeds),
            "code_version": self.code_version,
            "metrics": self.metrics,
            "weak": self.weak,
            "job": self.job,
            "created_at": to_iso(self.created_at),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EmbeddingVersion:
        """Read what `to_json` wrote, here or in a service that knew no mixtures yet.

        Raises KeyError, TypeError, ValueError for anything else.
        """
        told = {**document, "mixed_from": document.get("mixed_from", {})}
        facts = {each.name: told[each.name] for each in fields(cls) if each.name != "fingerprint"}
        lists = {name: tuple(facts[name]) for name in ("labels", "words", "seeds")}
        return cls(**{**facts, **lists, "created_at": from_iso(facts["created_at"])})


@dataclass(frozen=True, slots=True)
class HypernetworkVersion:
    """One link of a base's line of hypernetworks.

    Args:
        artifact: digest of its tensors in the artifact store.
        digest: digest of its weights.
        parent: the version it was tuned from; None for the first.
        job: the job that tuned it; None for the first.
    """

    base_digest: str
    version: int
    artifact: str
    digest: str
    parent: int | None = None
    job: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The hypernetwork version as a JSON-compatible document; the time is ISO 8601 in UTC."""
        return {
            "base_digest": self.base_digest,
            "version": self.version,
            "artifact": self.artifact,
            "digest": self.digest,
            "parent": self.parent,
            "job": self.job,
            "metrics": self.metrics,
            "created_at": to_iso(self.created_at),
        }


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """A registered base.

    Args:
        digest: digest of the folder's content; its identity.
        name: what `--base` calls it.
        location: folder or URL of its files on this machine.
        backbone_digest: digest of the backbone in it.
        document: its base.json.
        head: hypernetwork version that new tasks are learned with.
    """

    digest: str
    name: str
    location: str
    backbone_digest: str
    document: dict[str, Any]
    head: int = 1
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class AliasMove:
    """One entry of an alias's history: at `at` it moved from `previous` to `version`."""

    task: str
    alias: str
    version: int
    previous: int | None
    at: float
    actor: str | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """The move as a JSON-compatible document; the time is ISO 8601 in UTC."""
        return {
            "task": self.task,
            "alias": self.alias,
            "version": self.version,
            "previous": self.previous,
            "at": to_iso(self.at),
            "actor": self.actor,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A stored, immutable dataset: what a job was trained on.

    Args:
        digest: digest of its content; its identity.
        artifact: digest of its bytes in the artifact store.
        row_hashes: digest of the artifact that holds one hash per row.
        labels: class labels in canonical order; empty for regression.
        rows: number of rows per split: {"train": n, "validation": n, "test": n}.
    """

    digest: str
    artifact: str
    row_hashes: str
    kind: Kind
    labels: tuple[Label, ...]
    rows: dict[str, int]
    name: str = ""
    created_at: float = 0.0
