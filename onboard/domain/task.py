"""Tasks, their versions, and the hypernetwork versions and bases that these are pinned to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from onboard.domain.dataset import label_key
from onboard.domain.documents import document_of
from onboard.domain.methods import WITH_EMBEDDING, Content, content_of
from onboard.domain.moment import from_iso
from onboard.errors import ConflictError

if TYPE_CHECKING:
    from onboard.domain.dataset import Kind, Label

VersionKind = Literal["source", "onboarded", "carried", "relabeled"]

AliasNames = Sequence[Sequence[Any]]
"""Pairs of a version's label and its name in an alias."""

FIRST_HYPERNETWORK: Final = 1  # the version that every base ships with
_NOT_TOLD: Final = frozenset({"fingerprint", "held_out", "lesson", "out_of_fold"})  # of a version, by its document


@dataclass(frozen=True, slots=True)
class Task:
    """A task, with the label set that a resubmission has to match.

    Args:
        labels: class labels in canonical order; empty for regression.
        words: the verbalizer's word per label; for regression, of each bucket.
        low: lowest value of a regression task, else None.
        high: highest value of a regression task, else None.
        source: whether it ships with a base.
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
        """Return the task as a JSON-compatible document; times are ISO 8601 in UTC."""
        return {"task": self.name, **document_of(self, "name")}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingVersion:
    """An immutable published version of a task, with everything it is pinned to, in the order of its document.

    Args:
        version: 1, 2, …; 0 until it is published.
        kind: shipped with a base, learned here, carried (an earlier version's numbers under a later hypernetwork) or
            relabeled (an earlier version's numbers with other label names).
        method: name of its fine-tuning method (`onboard.domain.methods`), which determines `content`.
        artifact: digest of its tensors in the artifact store ("sha256:…").
        embedding_digest: digest of its numbers alone: of the embedding, or of its weights or readout.
        hypernetwork_version: the hypernetwork of the base that it is always served with. 1 if it uses none.
        learned_under: hypernetwork version that its numbers were learned under, if it was carried from that one to
            `hypernetwork_version`; None if both are the same.
        dataset_digest: snapshot of the rows; for a shipped source from the base, or "".
        parent: what it was initialized from: "sst2@v1", "random", "mean", "mixture", …; "(own)" without an embedding.
        task_kind: classification, regression or multilabel.
        labels: class labels of this version (empty for regression), each with a word in `words`.
        low: lowest value of a regression version, else None; `high` likewise.
        pairs: whether it takes two texts; None if unknown (earlier releases, imported bases).
        readout: digest of its readout's file; None without one.
        lesson: digest of its lesson for the base's prior; None for a regression, a shipped source, and older versions.
        prior_version, prior_digest: the prior of its readout; None without one.
        temperature: of its probabilities; above 1 they become less certain. 1 for a regression and older versions.
        stored_bytes: size of its files, without the base's; None until it is published.
        code_version: version or digest of the code that made it.
        metrics: {"validation": {...} | None, "test": {...}} as in the result document.
        weak: not better than the most frequent label.
        fingerprint: of its dataset, packed; None for a shipped source and older versions.
        mixed_from: weight of each embedding by name if it was initialized from a mixture; else empty.
        provisional: whether its job published it, a readout alone, before it had learned an embedding. The mark stays
            if the job then published a better version or ended early, and is removed if the job confirms the version.
            No other fact of a version changes.
        held_out: indices, in its stored dataset, of the held-out training rows; None if unknown.
        out_of_fold: its cross-validated answers, packed; None without a cross-validation and for older versions.
        change: how its rows or labels were made from an earlier version's; None if they were submitted as a whole.
        job: id of the job that published it; None for a shipped source.
        created_at: epoch seconds; 0 until it is published.
    """

    task: str
    version: int = 0
    kind: VersionKind
    method: str = ""
    artifact: str
    embedding_digest: str
    backbone_digest: str
    base_digest: str
    hypernetwork_version: int
    learned_under: int | None = None
    dataset_digest: str
    parent: str
    mixed_from: dict[str, float] = field(default_factory=dict)
    task_kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    pairs: bool | None = None
    readout: str | None = None
    lesson: str | None = None
    prior_version: int | None = None
    prior_digest: str | None = None
    temperature: float = 1.0
    stored_bytes: int | None = None
    seeds: tuple[int, ...] = ()
    code_version: str
    metrics: dict[str, Any] = field(default_factory=dict)
    weak: bool = False
    fingerprint: str | None = None
    held_out: tuple[int, ...] | None = None
    out_of_fold: str | None = None
    provisional: bool = False
    change: Mapping[str, Any] | None = None
    job: str | None = None
    created_at: float = 0.0

    @property
    def reference(self) -> str:
        """The reference of this version: `task@vN`."""
        return f"{self.task}@v{self.version}"

    @property
    def content(self) -> Content:
        """The kind of its content. Raises InputError: this release does not support its method."""
        return content_of(self.method, self.reference)

    @property
    def has_embedding(self) -> bool:
        """Whether it is an embedding, as far as this release knows its method."""
        return self.method in WITH_EMBEDDING

    def require_embedding(self, purpose: str, remedy: str = "") -> None:
        """Raise ConflictError unless it is an embedding, which `purpose` ("to start from") requires.

        Args:
            remedy: an alternative; empty lists the versions of the task.
        """
        content = self.content
        if content == "readout" and self.provisional:
            raise ConflictError(
                "version-provisional",
                version=self.reference,
                method=self.method,
                purpose=purpose,
                remedy=remedy or f"Check whether the job has published another version: onboard jobs show {self.job}",
            )
        if content != "embedding":
            instead = "a readout alone" if content == "readout" else "task-specific weights"
            raise ConflictError(
                "version-without-embedding",
                version=self.reference,
                method=self.method,
                purpose=purpose,
                instead=instead,
                remedy=remedy or f"onboard versions {self.task}",
            )

    @property
    def unmeasured(self) -> bool:
        """Whether it was learned here and neither validation nor test rows show how good it is."""
        return self.kind != "source" and not any(self.metrics.get(split) for split in ("validation", "test"))

    @property
    def origin(self) -> int:
        """The hypernetwork version that its numbers were learned under, regardless of how often they were carried."""
        return self.hypernetwork_version if self.learned_under is None else self.learned_under

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of everything that it was initialized from; empty for a shipped source."""
        return tuple(self.mixed_from) or ((self.parent,) if self.parent else ())

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EmbeddingVersion:
        """Read the document of a version, of this release or an older one, which may lack fields.

        Raises KeyError, TypeError, ValueError if it is invalid.
        """
        later = ("learned_under", "pairs", "readout", "prior_version", "prior_digest", "stored_bytes", "change")
        complete = {"mixed_from": {}, "temperature": 1.0, "provisional": False, **dict.fromkeys(later), **document}
        facts = {declared.name: complete[declared.name] for declared in fields(cls) if declared.name not in _NOT_TOLD}
        lists = {name: tuple(facts[name]) for name in ("labels", "words", "seeds")}
        return cls(**{**facts, **lists, "created_at": from_iso(facts["created_at"])})


@dataclass(frozen=True, slots=True)
class HypernetworkVersion:
    """An immutable version of a base's hypernetwork.

    Args:
        version: 1, 2, …; 0 until it is registered. Numbers are never reused.
        artifact: digest of its tensors in the artifact store; None after they were deleted.
        digest: digest of its file, even if that was deleted.
        parent: the version it was tuned from, or onto which its tuning was moved; None for the first.
        job: the job that tuned it; None for the first.
        metrics: {"guard": {...}, "tuning": {...}} of the job that tuned it; empty for the first.
        created_at: epoch seconds.
        retired_at: epoch seconds at which it last stopped being the head; None if it never did.
        collected_at: epoch seconds at which its tensors were deleted because nothing needed them; None while they
            exist.
    """

    base_digest: str
    version: int
    artifact: str | None
    digest: str
    parent: int | None = None
    job: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    retired_at: float | None = None
    collected_at: float | None = None

    @property
    def moved_from(self) -> int | None:
        """The version it was tuned from, if the head moved meanwhile; otherwise None, and `parent` is that version."""
        return (self.metrics.get("tuning") or {}).get("moved_from")


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """A registered base.

    Args:
        digest: digest of the folder's content; its identity.
        name: its name for `--base`.
        location: folder or URL of its files on this machine.
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
    """An entry of an alias's history: at `at` it moved from `previous` to `version`, or its canary changed.

    Args:
        names: labels of the version with their names in the alias; None if it uses the version's own.
        canary: the second version of the alias from then on; None without one.
        share: fraction of the texts that the canary answers.
    """

    task: str
    alias: str
    version: int
    previous: int | None
    at: float
    actor: str | None = None
    reason: str = ""
    names: AliasNames | None = None
    canary: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A stored, immutable dataset that a job was trained on.

    Args:
        digest: digest of its content; its identity.
        artifact: digest of its bytes in the artifact store.
        row_hashes: digest of the artifact with one hash per row.
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

    @property
    def artifacts(self) -> tuple[str, str]:
        """The digests of its bytes."""
        return self.artifact, self.row_hashes


def marks(version: Mapping[str, Any]) -> str:
    """Return the marks of a version's document that follow its number: " weak provisional", or "".

    Services of earlier releases only know the first.
    """
    return "".join(f" {mark}" for mark in ("weak", "unmeasured", "provisional") if version.get(mark))


def texts_taken(pairs: bool) -> str:
    """Describe the texts that a version takes."""
    return "a pair of texts: text_a and text_b" if pairs else "one text: text"


def label_keys(labels: Sequence[Label]) -> set[str]:
    """Return the labels as a set in which 1, "1" and true are three."""
    return {label_key(label) for label in labels}


def labels_called(labels: Sequence[Label], names: AliasNames) -> tuple[Label, ...]:
    """Return the labels with their names in an alias."""
    by_key = {label_key(label): name for label, name in names}
    return tuple(by_key.get(label_key(label), label) for label in labels)


def fitting_names(labels: Sequence[Label], names: AliasNames | None) -> AliasNames | None:
    """Return the names of an alias for a version with these labels; None if it lacks one of the renamed labels."""
    if not names:
        return None
    return names if label_keys([label for label, _ in names]) <= label_keys(labels) else None


def label_order(version: EmbeddingVersion, labels: Sequence[Label]) -> list[int]:
    """Return the indices of these labels among the version's own; for a regression, of its buckets in order."""
    if not version.labels:
        return list(range(len(version.words)))
    places = {label_key(label): place for place, label in enumerate(version.labels)}
    return [places[label_key(label)] for label in labels]


def words_in_order(version: EmbeddingVersion, labels: Sequence[Label]) -> list[str]:
    """Return the version's words in the order of these labels; for a regression, all its words."""
    return [version.words[place] for place in label_order(version, labels)]
