"""Tasks, versions, aliases and bases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from onboard.contract.changes import TaskChange
from onboard.contract.document import Document, Label, Metrics, later
from onboard.domain.dataset import Kind

if TYPE_CHECKING:
    from onboard.domain.task import EmbeddingVersion, Task

_PAIRS: Final = "Whether it takes text_a and text_b instead of text; null if unknown."
Names = Annotated[
    tuple[tuple[Label, ...], ...] | None,
    Field(description="Pairs of a label of the version and its name under the alias; null if they are the same."),
]
_SHARE: Final = "Fraction of the alias's texts that its canary answers; null without one."
_CANARY: Final = "The version that answers a share of the alias's texts; null if there is none."
_ALL_SENT: Final = ConfigDict(json_schema_serialization_defaults_required=True)


class VersionDocument(Document):
    """An immutable version with everything that it is pinned to; only its mark `provisional` may be removed."""

    model_config = _ALL_SENT

    task: str
    version: int
    kind: Literal["source", "onboarded", "carried", "relabeled"] | SkipJsonSchema[None] = later()
    method: str | SkipJsonSchema[None] = later(
        description="The method, as in docs/reference/methods.md; for an embedding, that of the base."
    )
    artifact: str = later("", "Digest of embedding.safetensors, or of weights.safetensors without an embedding.")
    embedding_digest: str = later("", "Digest of the numbers without metadata.")
    backbone_digest: str = later("")
    base_digest: str = later("")
    hypernetwork_version: Annotated[
        int, Field(description="The hypernetwork version that it is pinned to; 1 if it does not use one.")
    ]
    learned_under: int | None = later(
        description="The hypernetwork version that a carried version was learned under; null for others."
    )
    dataset_digest: str = later("")
    init: Annotated[str, Field(alias="parent")]
    mixed_from: dict[str, float] = Field(
        default_factory=dict, description="Weight of each embedding if `parent` is a mixture; otherwise empty."
    )
    task_kind: str = later("")
    labels: tuple[Label, ...]
    words: tuple[str, ...] = later(())
    low: float | None = later()
    high: float | None = later()
    pairs: bool | None = later(description=_PAIRS)
    readout: str | None = later(description="Digest of readout.safetensors; null if there is none.")
    prior_version: int | None = later(
        description="Version of the base's prior that its readout was drawn towards; null if there is none."
    )
    prior_digest: str | None = later(description="Digest of that version of the prior.")
    temperature: float = later(1.0, "Temperature of its probabilities; above 1, answers are less certain.")
    stored_bytes: int | None = later(description="Size of its files together, without the base.")
    seeds: tuple[int, ...] = later(())
    code_version: str = later("")
    metrics: Metrics
    weak: bool
    unmeasured: bool = later(False, "Whether there are neither validation nor test rows to measure it.")
    provisional: bool = later(False, "Whether it is a readout that its job published before it learned an embedding.")
    change: TaskChange | None = later(description="How its rows or labels were made from those of an earlier version.")
    job: str | None = later()
    created_at: str | None

    @property
    def reference(self) -> str:
        """The reference of this version: `task@vN`."""
        return f"{self.task}@v{self.version}"


class EmbeddingDocument(VersionDocument):
    """A version with its numbers."""

    z: Annotated[tuple[float, ...] | None, Field(description="The task embedding, float32; null if there is none.")]


class ListedEmbedding(EmbeddingDocument):
    """An embedding in a list, with its file if the request includes it."""

    file: Annotated[str | None, Field(description="embedding.safetensors in Base64; its SHA-256 is `artifact`.")]


class CurrentEmbeddings(Document):
    """The versions that one alias names, in every task that has the alias."""

    ref: str
    embeddings: tuple[ListedEmbedding, ...]


class TaskDocument(Document):
    """A task with its latest version."""

    model_config = _ALL_SENT

    name: Annotated[str, Field(alias="task")]
    kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...] = later(())
    low: float | None = later()
    high: float | None = later()
    source: bool = later(False)
    created_at: str | None = later()
    version: int | None
    weak: bool
    pairs: bool | None = later(description=_PAIRS)
    latest: VersionDocument | None = later()

    @classmethod
    def with_latest(cls, task: Task, latest: EmbeddingVersion | None, **more: Any) -> Self:
        """The document of a task and its latest version, if it has one."""
        return cls.of(
            task, **more, version=latest and latest.version, weak=bool(latest and latest.weak),
            pairs=latest and latest.pairs, latest=latest and VersionDocument.of(latest),
        )  # fmt: skip


class CanaryDocument(Document):
    """A version that answers a share of an alias's texts."""

    version: int
    share: Annotated[float, Field(description="Fraction of the texts, above 0 and below 1.")]


_CANARIES: Final = "Canary of each alias that has one."


class TaskDetail(TaskDocument):
    """A task with its aliases."""

    aliases: dict[str, int] = Field(default_factory=dict)
    canaries: dict[str, CanaryDocument] = Field(default_factory=dict, description=_CANARIES)


class TaskList(Document):
    """A page of tasks; `next` is the cursor of the following page."""

    tasks: tuple[TaskDocument, ...]
    next: str | None


class VersionList(Document):
    """The newest versions of a task, or those before the cursor; `next` is the cursor for older ones."""

    task: str
    aliases: dict[str, int]
    canaries: dict[str, CanaryDocument] = Field(default_factory=dict, description=_CANARIES)
    versions: tuple[VersionDocument, ...]
    next: str | None


class AliasWanted(BaseModel, extra="forbid"):
    """The version that an alias is to name."""

    version: Annotated[int, Field(ge=1, le=999_999_999)]
    if_better: Annotated[
        bool, Field(description="Move the alias only to a version that is significantly better than its current one.")
    ] = False
    as_before: Annotated[
        bool, Field(description="Keep answering with the previous label names if labels were renamed.")
    ] = False
    share: Annotated[
        float | None,
        Field(
            strict=True,
            json_schema_extra={"minimum": 0, "exclusiveMaximum": 1},
            description="Fraction of the alias's texts that the version answers as its canary, such as 0.1 for 10%; "
            "0 ends the canary. Without it the alias moves to the version.",
        ),
    ] = None


class AliasMoveDocument(Document):
    """One move of an alias, from `previous` (null if it is new) to `version`, or a change of its canary."""

    task: str
    alias: str
    version: int
    previous: int | None
    at: str | None
    actor: str | None
    reason: str
    names: Names = None
    canary: int | None = later(description=_CANARY)
    share: float | None = later(description=_SHARE)


class AliasDocument(Document):
    """The version that an alias names, its canary, and the last moves of the alias, newest first."""

    task: str
    alias: str
    version: int
    names: Names = None
    canary: int | None = later(description=_CANARY)
    share: float | None = later(description=_SHARE)
    history: tuple[AliasMoveDocument, ...]


class BaseFileDocument(Document):
    """One file of a base."""

    name: str
    digest: str
    size_bytes: int


class BaseFacts(BaseModel, extra="allow"):
    """A base, as printed by `onboard base show --json`; its base.json adds members."""

    base: str
    digest: str
    backbone_digest: str
    folder: Annotated[str | None, Field(description="Null for paths on the machine of the service.")]
    size_bytes: int
    anchors: tuple[str, ...]


class BaseList(Document):
    """The bases that jobs can name."""

    bases: tuple[BaseFacts, ...]


class BaseDocument(Document):
    """A base and its files. Its digest is computed from their names and digests."""

    digest: str
    name: str
    backbone_digest: str
    files: tuple[BaseFileDocument, ...]


class PushedFiles(Document):
    """The files of a version on the hub: place and commit together identify them."""

    place: Annotated[str, Field(description="hf://OWNER/NAME@COMMIT")]
    commit: str
    files: Annotated[dict[str, str], Field(description="The digest of each file by its name.")]
    base: Annotated[bool, Field(description="Whether the base is included.")]
    signed: bool
