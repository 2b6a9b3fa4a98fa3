"""Tasks, their embedding versions, and the hypernetwork versions and bases these are pinned to."""

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
    from onboard.domain.change import ChangeJson
    from onboard.domain.dataset import Kind, Label

VersionKind = Literal["source", "onboarded", "carried", "relabeled"]

AliasNames = Sequence[Sequence[Any]]
"""Pairs of a label of a version and what an alias calls it."""

FIRST_HYPERNETWORK: Final = 1  # the version that every base brings
_NOT_TOLD: Final = frozenset({"fingerprint", "held_out", "lesson", "out_of_fold"})  # of a version, by its document


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
        return {"task": self.name, **document_of(self, "name")}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingVersion:
    """An immutable published version of a task, with everything it is pinned to, in the order of its document.

    Args:
        version: 1, 2, …; 0 until it is published.
        kind: shipped with a base, learned here, carried: an earlier version's numbers under a later hypernetwork, or
            relabeled: an earlier version's numbers with other names of its labels.
        method: name of the fine-tuning method that made it (`onboard.domain.methods`); `content` says what that is.
        artifact: digest of its tensors in the artifact store ("sha256:…").
        embedding_digest: digest of its numbers alone: of the embedding, or of what it has instead of one.
        backbone_digest: backbone it was trained on.
        base_digest: base it belongs to.
        hypernetwork_version: number in the base's line of hypernetworks; what it is served with, for ever. 1 where
            no hypernetwork has a part in it.
        learned_under: hypernetwork version that its numbers were learned under, where it was carried from that one to
            `hypernetwork_version`; None where the two are the same.
        dataset_digest: snapshot of the rows; for a shipped source what the base says, or "".
        parent: what it was initialised from: "sst2@v1", "random", "mean", "mixture", …; "(own)" without an embedding.
        task_kind: classification, regression or multilabel.
        labels: class labels of this version (empty for regression); `words` has one word for each.
        low: lowest value of a regression version, else None; `high` likewise.
        pairs: whether it takes two texts; None where that was never noted (earlier releases, imported bases).
        readout: digest of the file of its readout, which answers beside it; None where there is none.
        lesson: digest of what it teaches the prior of its base; None of a regression, a shipped source, and versions
            from before there was one.
        prior_version, prior_digest: the prior that its readout was drawn towards; None where it was towards none.
        temperature: of its probabilities, which it makes less sure where it is above 1; 1 of a regression, and of
            versions from before there was one.
        stored_bytes: of its files together, without the base's; None until it is published.
        seeds: every seed that had a part in it.
        code_version: version or digest of the code that made it.
        metrics: {"validation": {...} | None, "test": {...}} as in the result document.
        weak: no better than always answering the majority.
        fingerprint: of its dataset, packed; None of a shipped source, and of versions from before there were any.
        mixed_from: weight of each embedding by its name where it was initialised from a mixture; else empty.
        provisional: whether its job published it, a readout alone, before it had learned an embedding. The mark stays
            where the job then published a better version or ended early; where the job confirms the version it goes.
            No other fact of a version changes.
        held_out: places, in its stored dataset, of the training rows that were held out; None where that is not known.
        out_of_fold: its cross-validated answers, packed; None where it was not cross-validated, and of versions from
            before they were stored.
        change: how its rows or labels were made of an earlier version's; None where they were submitted as a whole.
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
    change: ChangeJson | None = None
    job: str | None = None
    created_at: float = 0.0

    @property
    def reference(self) -> str:
        """The reference that always means this version: `task@vN`."""
        return f"{self.task}@v{self.version}"

    @property
    def content(self) -> Content:
        """What it is made of. Raises InputError: of a method that this release does not know."""
        return content_of(self.method, self.reference)

    @property
    def has_embedding(self) -> bool:
        """Whether it is an embedding, as far as this release knows its method."""
        return self.method in WITH_EMBEDDING

    def require_embedding(self, purpose: str, remedy: str = "") -> None:
        """Raise ConflictError unless it is an embedding, which is what it takes `purpose` ("to start from").

        Args:
            remedy: what to do instead; empty lists the versions of the task.
        """
        content = self.content
        if content == "readout" and self.provisional:
            raise ConflictError(
                "version-provisional",
                version=self.reference,
                method=self.method,
                purpose=purpose,
                remedy=remedy or f"See whether the job has published another version: onboard jobs show {self.job}",
            )
        if content != "embedding":
            instead = "a readout alone" if content == "readout" else "weights of its own"
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
        """Whether it was learned here and no rows say how good it is, neither of validation nor of a test split."""
        return self.kind != "source" and not any(self.metrics.get(split) for split in ("validation", "test"))

    @property
    def origin(self) -> int:
        """The hypernetwork version that its numbers were learned under, however often they were carried since."""
        return self.hypernetwork_version if self.learned_under is None else self.learned_under

    @property
    def parents(self) -> tuple[str, ...]:
        """Everything that it was initialised from, by name; empty for a shipped source."""
        return tuple(self.mixed_from) or ((self.parent,) if self.parent else ())

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> EmbeddingVersion:
        """Read the document of a version, of here or of an older service: without mixtures, carried versions, `pairs`,
        readouts, priors, temperatures, bytes and provisional versions.

        Raises KeyError, TypeError, ValueError for anything else.
        """
        later = ("learned_under", "pairs", "readout", "prior_version", "prior_digest", "stored_bytes", "change")
        complete = {"mixed_from": {}, "temperature": 1.0, "provisional": False, **dict.fromkeys(later), **document}
        facts = {declared.name: complete[declared.name] for declared in fields(cls) if declared.name not in _NOT_TOLD}
        lists = {name: tuple(facts[name]) for name in ("labels", "words", "seeds")}
        return cls(**{**facts, **lists, "created_at": from_iso(facts["created_at"])})


@dataclass(frozen=True, slots=True)
class HypernetworkVersion:
    """One link of a base's line of hypernetworks: immutable, like an embedding version.

    Args:
        version: 1, 2, …; 0 until it is in the line. A number is never given out again.
        artifact: digest of its tensors in the artifact store; None once they were collected.
        digest: digest of its file, whether that is still there or not.
        parent: the version it was tuned from; None for the first.
        job: the job that tuned it; None for the first.
        metrics: {"guard": {...}} of the job that tuned it; empty for the first.
        created_at: epoch seconds.
        retired_at: epoch seconds at which it last stopped being the head; None where it never did.
        collected_at: epoch seconds at which its tensors were given up, because nothing needed them; None while it is
            there.
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
    """One entry of an alias's history: at `at` it moved from `previous` to `version`.

    `names` are labels of the version and what whoever asks the alias gets in their place; None where it answers with
    the version's own.
    """

    task: str
    alias: str
    version: int
    previous: int | None
    at: float
    actor: str | None = None
    reason: str = ""
    names: AliasNames | None = None


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


def marks(version: Mapping[str, Any]) -> str:
    """The marks of a version's document as they stand behind its number: " weak provisional", or nothing.

    A service of an earlier release knows only the first.
    """
    return "".join(f" {mark}" for mark in ("weak", "unmeasured", "provisional") if version.get(mark))


def texts_taken(pairs: bool) -> str:
    """What a version is asked with, in words."""
    return "a pair of texts: text_a and text_b" if pairs else "one text: text"


def label_keys(labels: Sequence[Label]) -> set[str]:
    """The labels as a set in which 1, "1" and true are three."""
    return {label_key(label) for label in labels}


def labels_called(labels: Sequence[Label], names: AliasNames) -> tuple[Label, ...]:
    """The labels as an alias calls them."""
    by_key = {label_key(label): name for label, name in names}
    return tuple(by_key.get(label_key(label), label) for label in labels)


def label_order(version: EmbeddingVersion, labels: Sequence[Label]) -> list[int]:
    """Places of these labels among the version's own; of a regression those of its buckets as they are."""
    if not version.labels:
        return list(range(len(version.words)))
    places = {label_key(label): place for place, label in enumerate(version.labels)}
    return [places[label_key(label)] for label in labels]


def words_in_order(version: EmbeddingVersion, labels: Sequence[Label]) -> list[str]:
    """The version's words in the order of these labels; of a regression all its words."""
    return [version.words[place] for place in label_order(version, labels)]
