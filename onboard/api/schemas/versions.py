"""Tasks, versions, aliases, comparisons, lineage, hypernetworks and bases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from onboard.domain.lineage import EdgeKind, NodeKind

Label = str | bool | int | float
Metrics = dict[str, Any]
Pairs = Annotated[
    bool | None,
    Field(description="Whether it takes text_a and text_b instead of text; null where that was never noted."),
]
Names = Annotated[
    list[list[Label]] | None,
    Field(
        description="Pairs of a label of the version and what the alias calls it; null where it calls none otherwise."
    ),
]


class VersionDocument(BaseModel):
    """An immutable version with everything that it is pinned to; only the mark `provisional` may go."""

    task: str
    version: int
    kind: Literal["source", "onboarded", "carried", "relabeled"]
    method: Annotated[str, Field(description="What made it: the base's own for an embedding, or of docs/methods.md.")]
    artifact: Annotated[
        str, Field(description="Digest of embedding.safetensors; without an embedding of weights.safetensors.")
    ]
    embedding_digest: Annotated[str, Field(description="Digest of the numbers alone.")]
    backbone_digest: str
    base_digest: str
    hypernetwork_version: Annotated[
        int, Field(description="What it is served with, for ever; 1 where no hypernetwork has a part in it.")
    ]
    learned_under: Annotated[
        int | None, Field(description="The version that a carried one was learned under; null of all others.")
    ]
    dataset_digest: str
    parent: str
    mixed_from: Annotated[
        dict[str, float], Field(description="Weight of each embedding where `parent` is a mixture; else empty.")
    ]
    task_kind: str
    labels: list[Label]
    words: list[str]
    low: float | None
    high: float | None
    pairs: Pairs
    readout: Annotated[str | None, Field(description="Digest of readout.safetensors; null where there is none.")]
    prior_version: Annotated[
        int | None, Field(description="Version of the base's prior that its readout was drawn towards; null of none.")
    ]
    prior_digest: Annotated[str | None, Field(description="Digest of that version of the prior.")]
    temperature: Annotated[float, Field(description="Of its probabilities: above 1 they are made less sure.")]
    stored_bytes: Annotated[int | None, Field(description="Of its files together, without the base's.")]
    seeds: list[int]
    code_version: str
    metrics: Metrics
    weak: bool
    unmeasured: Annotated[
        bool, Field(description="Whether no rows say how good it is, neither of validation nor of a test split.")
    ]
    provisional: Annotated[
        bool, Field(description="Whether it is a readout that its job published before it had learned an embedding.")
    ]
    change: Annotated[
        dict[str, Any] | None, Field(description="How its rows or labels were made of an earlier version's.")
    ] = None
    job: str | None
    created_at: str | None


class EmbeddingDocument(VersionDocument):
    """A version with its numbers."""

    z: Annotated[list[float] | None, Field(description="The task embedding, float32; null without one.")]


class ListedEmbedding(EmbeddingDocument):
    """The same in a list, with the file where it was asked for."""

    file: Annotated[str | None, Field(description="embedding.safetensors in Base64; its SHA-256 is `artifact`.")]


class CurrentEmbeddings(BaseModel):
    """What one alias names in every task that has it."""

    ref: str
    embeddings: list[ListedEmbedding]


class TaskDocument(BaseModel):
    """A task with its latest version."""

    task: str
    kind: str
    labels: list[Label]
    words: list[str]
    low: float | None
    high: float | None
    source: bool
    created_at: str | None
    version: int | None
    weak: bool
    pairs: Pairs
    latest: VersionDocument | None


class TaskDetail(TaskDocument):
    """A task with its aliases."""

    aliases: dict[str, int]


class TaskList(BaseModel):
    """A page of tasks; `next` is the cursor of the page after."""

    tasks: list[TaskDocument]
    next: str | None


class VersionList(BaseModel):
    """The newest versions of a task, or those before the cursor; `next` leads to older ones."""

    task: str
    aliases: dict[str, int]
    versions: list[VersionDocument]
    next: str | None


class AliasWanted(BaseModel, extra="forbid"):
    """Which version an alias is to mean."""

    version: Annotated[int, Field(ge=1, le=999_999_999)]
    if_better: Annotated[
        bool, Field(description="Only if it is significantly better than what the alias means now.")
    ] = False
    as_before: Annotated[
        bool, Field(description="Answer with the labels of before, where labels were renamed since.")
    ] = False


class AliasMoveDocument(BaseModel):
    """One move of an alias."""

    task: str
    alias: str
    version: int
    previous: int | None
    at: str | None
    actor: str | None
    reason: str
    names: Names = None


class AliasDocument(BaseModel):
    """What an alias means, and its last moves, newest first."""

    task: str
    alias: str
    version: int
    names: Names = None
    history: list[AliasMoveDocument]


class LineageNode(BaseModel):
    """A dataset, an init, a hypernetwork or a version."""

    id: str
    kind: NodeKind
    label: str
    facts: dict[str, Any]


class LineageEdge(BaseModel):
    """`target` was made with `source`."""

    source: str
    target: str
    kind: EdgeKind
    share: Annotated[float | None, Field(description="Weight of the source in a mixture that `target` started from.")]


class LineageDocument(BaseModel):
    """The graph of a task's versions and of all that they come from."""

    task: str
    aliases: dict[str, int]
    nodes: list[LineageNode]
    edges: list[LineageEdge]
    left_out: bool


class HypernetworkDocument(BaseModel):
    """One link of a base's line of hypernetworks."""

    base_digest: str
    version: int
    artifact: Annotated[str | None, Field(description="Null once its bytes were collected.")]
    digest: Annotated[str, Field(description="Of its file, whether that is still there or not.")]
    parent: Annotated[int | None, Field(description="The version that it was tuned from.")]
    job: str | None
    metrics: Metrics
    created_at: str | None
    collected_at: str | None
    head: bool
    pinned: Annotated[int, Field(description="How many versions of tasks are served with it.")]


class PinnedDocument(BaseModel):
    """What stands under a hypernetwork version."""

    tasks: int
    in_use: Annotated[list[str], Field(description="The pinned versions that an alias names, 200 at most.")]
    learned: Annotated[int, Field(description="Versions that were learned under it and carried to a later one since.")]


class HypernetworkDetail(HypernetworkDocument):
    """One link with what is pinned to it and the guard's verdict, a row per earlier task."""

    base: str
    pinned_by: PinnedDocument
    guard: dict[str, Any] | None


class HypernetworkReverted(BaseModel):
    """The head of a base now, and before."""

    base: str
    base_digest: str
    version: int
    previous: int


class HypernetworkList(BaseModel):
    """The line of a base, oldest first."""

    base: str
    base_digest: str
    hypernetworks: list[HypernetworkDocument]


class BaseFileDocument(BaseModel):
    """One file of a base."""

    name: str
    digest: str
    size_bytes: int


class BaseFacts(BaseModel, extra="allow"):
    """A base as `onboard base show --json` prints it; its base.json adds members."""

    base: str
    digest: str
    backbone_digest: str
    folder: Annotated[str | None, Field(description="Null: it lies on the machine of the service.")]
    size_bytes: int
    anchors: list[str]


class BaseList(BaseModel):
    """The bases that jobs can name."""

    bases: list[BaseFacts]


class BaseDocument(BaseModel):
    """A base and its files; its digest follows from their names and digests."""

    digest: str
    name: str
    backbone_digest: str
    files: list[BaseFileDocument]
