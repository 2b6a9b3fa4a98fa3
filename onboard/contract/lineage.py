"""Where versions come from, as a graph: dataset, init, hypernetwork and prior lead to a version, and it to others.

A dataset was made of an earlier one and of the rows that changed it. A version was trained on a dataset, started or was
carried from another version, and is adapted by a hypernetwork; its readout was drawn towards a prior. A hypernetwork
was tuned from another one, on a dataset. The document of a prior lists the tasks that taught it.
If the head moved during the tuning, it comes from two: the one that was tuned and the one the step was moved onto.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from onboard.contract.document import Document, later

NodeKind = Literal["dataset", "init", "hypernetwork", "prior", "version"]
EdgeKind = Literal[
    "trained_on", "started_from", "carried_from", "adapted_by", "drawn_towards", "tuned_from", "tuned_on", "made_of"
]  # fmt: skip
_ALL_SENT: Final = ConfigDict(json_schema_serialization_defaults_required=True)


class LineageNode(Document):
    """A dataset, an init, a hypernetwork, a prior or a version."""

    model_config = _ALL_SENT

    id: Annotated[str, Field(description="Unique in the graph: a digest, hypernetwork:…, prior:…, a reference.")]
    kind: NodeKind
    label: str
    facts: dict[str, Any] = Field(default_factory=dict)


class LineageEdge(Document):
    """`target` was made with `source`."""

    model_config = _ALL_SENT

    source: str
    target: str
    kind: EdgeKind
    share: float | None = later(description="Weight of the source in a mixture that `target` started from.")


class LineageDocument(Document):
    """The graph of a task's versions and of all that they come from."""

    model_config = _ALL_SENT

    task: str
    aliases: dict[str, int]
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]
    left_out: bool = later(False, "Whether older versions or ancestors are omitted.")
