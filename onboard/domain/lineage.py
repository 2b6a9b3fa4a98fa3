"""Where versions come from, as a graph: dataset, init and hypernetwork lead to a version, and it to others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from onboard.domain.documents import document_of

NodeKind = Literal["dataset", "init", "hypernetwork", "version"]
EdgeKind = Literal["trained_on", "started_from", "carried_from", "adapted_by", "tuned_from", "tuned_on", "made_of"]


@dataclass(frozen=True, slots=True)
class Node:
    """Something that a version was made of, or a version.

    Args:
        id: unique in the graph: a digest, "hypernetwork:…", a reference.
        label: a few words for people.
        facts: JSON-compatible.
    """

    id: str
    kind: NodeKind
    label: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """id, kind, label, facts."""
        return document_of(self)


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` was made with `source`.

    A dataset was made of an earlier one, and of the rows that it was changed by. A version was trained on a dataset,
    started or was carried from another version, and is adapted by a hypernetwork; a
    hypernetwork was tuned from another one, on a dataset.

    Args:
        share: weight of `source` in the mixture that `target` started from; None where it is no part of one.
    """

    source: str
    target: str
    kind: EdgeKind
    share: float | None = None

    def to_json(self) -> dict[str, Any]:
        """source, target, kind, share."""
        return document_of(self)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The graph of a task's versions and of all that they come from; it has no cycles.

    Args:
        task: whose versions it is about.
        aliases: of that task.
        left_out: whether older versions or ancestors are not shown.
    """

    task: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    aliases: dict[str, int]
    left_out: bool = False

    def to_json(self) -> dict[str, Any]:
        """The document of GET /v1/tasks/{task}/lineage."""
        return {
            "task": self.task,
            "aliases": self.aliases,
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
            "left_out": self.left_out,
        }
