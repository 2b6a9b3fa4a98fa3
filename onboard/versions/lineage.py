"""Use case: the lineage of a task's versions: dataset, init, hypernetwork and prior → version, with all ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from onboard.contract.lineage import EdgeKind, LineageDocument, LineageEdge, LineageNode, NodeKind
from onboard.contract.versions import VersionDocument
from onboard.domain.names import Reference
from onboard.domain.prior import form_of
from onboard.domain.task import EmbeddingVersion
from onboard.errors import InputError
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MOST_VERSIONS: Final = 50  # of the task itself, the newest
MOST_ANCESTORS: Final = 200
_SHIPPED: Final = "multi-task training"


def lineage(services: Services, task: str, versions: int = MOST_VERSIONS) -> LineageDocument:
    """Return the task's newest versions with all their ancestors, including versions of other tasks.

    Args:
        versions: maximum number of versions of the task itself.

    Raises:
        NotFoundError: the task does not exist.
    """
    with services.database.snapshot() as session:
        TaskRepository(session).get(task)
        repository = VersionRepository(session)
        aliases = AliasRepository(session).list(task)
        newest = repository.newest(task, versions)
        older = repository.newest(task, 1, before=newest[0].version) if newest else ()
        family, complete = _with_ancestors(repository, newest)
        nodes, edges = _graph(family)
        more_nodes, more_edges = _tuned(session, family)
    left_out = not complete or bool(older)
    nodes += tuple(node for node in more_nodes if node not in nodes)
    edges += more_edges
    return LineageDocument(task=task, aliases=aliases, nodes=nodes, edges=edges, left_out=left_out)


def _with_ancestors(
    repository: VersionRepository, own: Sequence[EmbeddingVersion]
) -> tuple[list[EmbeddingVersion], bool]:
    """Return versions with their ancestors, generation by generation, and whether these are all of them."""
    family = {version.reference: version for version in own}
    waiting = _parents(own, family)
    while waiting:
        room = len(own) + MOST_ANCESTORS - len(family)
        generation = repository.published(sorted(waiting)[:room])
        family |= {version.reference: version for version in generation}
        if len(waiting) > room:
            return list(family.values()), False
        waiting = _parents(generation, family)
    return list(family.values()), True


def _parents(versions: Iterable[EmbeddingVersion], known: Iterable[str]) -> set[tuple[str, int]]:
    references = (_reference(parent) for version in versions for parent in version.parents)
    known = set(known)
    return {
        (reference.task, reference.version)
        for reference in references
        if reference and reference.version and str(reference) not in known
    }


def _reference(parent: str) -> Reference | None:
    """Return the reference of a parent; None for random, mean, anchors and shipped sources."""
    try:
        reference = Reference.parse(parent) if "@" in parent else None
    except InputError:
        return None
    return reference if reference and reference.version else None


def _graph(versions: Sequence[EmbeddingVersion]) -> tuple[tuple[LineageNode, ...], tuple[LineageEdge, ...]]:
    nodes: dict[str, LineageNode] = {}
    edges: list[LineageEdge] = []
    references = {version.reference for version in versions}
    for version in versions:
        dataset, inits = _dataset(version.dataset_digest), _inits(version, references)
        hypernetwork = None  # task-specific weights use no hypernetwork
        if version.has_embedding:
            hypernetwork = _hypernetwork(version.base_digest, version.hypernetwork_version)
        prior = _prior(version)
        for node in (dataset, *inits.values(), hypernetwork, prior):
            if node is not None:
                nodes.setdefault(node.id, node)
        nodes[version.reference] = _node(version)
        if dataset is not None:
            edges.append(_edge(dataset.id, version.reference, "trained_on"))
        for dataset_part in _made_of(version):
            edge = _edge(dataset_part.id, version.dataset_digest, "made_of")
            if edge not in edges and not _leads(edges, edge.target, edge.source):
                nodes.setdefault(dataset_part.id, dataset_part)
                edges.append(edge)
        how: EdgeKind = "carried_from" if version.kind == "carried" else "started_from"
        edges += [
            _edge(init.id if init else parent, version.reference, how, version.mixed_from.get(parent))
            for parent, init in inits.items()
        ]
        if hypernetwork is not None:
            edges.append(_edge(hypernetwork.id, version.reference, "adapted_by"))
        if prior is not None:
            edges.append(_edge(prior.id, version.reference, "drawn_towards"))
    return tuple(nodes.values()), tuple(edges)


def _tuned(
    session: Session, versions: Iterable[EmbeddingVersion]
) -> tuple[tuple[LineageNode, ...], tuple[LineageEdge, ...]]:
    """Return the origin of these versions' hypernetworks: earlier ones, and the datasets that they were tuned on."""
    nodes: dict[str, LineageNode] = {}
    edges: dict[LineageEdge, None] = {}
    pinned = {(version.base_digest, version.hypernetwork_version) for version in versions if version.has_embedding}
    for base, number in sorted(pinned):
        for link in BaseRepository(session).line(base, number):
            if link.parent is None:
                continue
            node, before = _hypernetwork(base, link.version), _hypernetwork(base, link.parent)
            dataset = _dataset(JobRepository(session).get(link.job).spec.dataset) if link.job is not None else None
            nodes |= {drawn.id: drawn for drawn in (dataset, before, node) if drawn is not None}
            edges[_edge(before.id, node.id, "tuned_from")] = None
            if link.moved_from is not None:  # an ancestor, which is drawn in any case
                edges[_edge(_hypernetwork(base, link.moved_from).id, node.id, "tuned_from")] = None
            if dataset is not None:
                edges[_edge(dataset.id, node.id, "tuned_on")] = None
    return tuple(nodes.values()), tuple(edges)


def _dataset(digest: str) -> LineageNode | None:
    return _made(digest, "dataset", f"dataset {_short(digest)}", {"digest": digest}) if digest else None


def _leads(edges: Sequence[LineageEdge], source: str, target: str) -> bool:
    """Return whether a path of edges already exists: adding and removing the same rows would form a cycle."""
    reached, waiting = {source}, [source]
    while waiting:
        node = waiting.pop()
        following = {edge.target for edge in edges if edge.kind == "made_of" and edge.source == node} - reached
        reached |= following
        waiting += following
    return target in reached


def _made_of(version: EmbeddingVersion) -> list[LineageNode]:
    """Return the datasets that its dataset was made from: the previous one, and the submitted rows."""
    change: Mapping[str, Any] = version.change or {}
    digests = [str(change[part]) for part in ("dataset", "rows") if change.get(part)]
    return [node for digest in digests if digest != version.dataset_digest and (node := _dataset(digest)) is not None]


def _inits(version: EmbeddingVersion, present: set[str]) -> dict[str, LineageNode | None]:
    """Return the inits by name; None for versions in the graph. Empty without an embedding."""
    if not version.has_embedding:
        return {}
    return {
        name: None if name in present else _made(f"init:{name}", "init", name, {"init": name})
        for name in version.parents or (_SHIPPED,)
    }


def _hypernetwork(base: str, number: int) -> LineageNode:
    facts = {"version": number, "base_digest": base}
    return _made(f"hypernetwork:{base}:v{number}", "hypernetwork", f"hypernetwork v{number} of {_short(base)}", facts)


def _prior(version: EmbeddingVersion) -> LineageNode | None:
    """Return the prior of its readout, known by its digest, since another installation may have numbered it."""
    if version.prior_digest is None:
        return None
    form, number, base = form_of(pairs=bool(version.pairs)), version.prior_version, version.base_digest
    facts = {"version": number, "form": form, "digest": version.prior_digest, "base_digest": base}
    return _made(f"prior:{version.prior_digest}", "prior", f"prior v{number} ({form})", facts)


def _node(version: EmbeddingVersion) -> LineageNode:
    shown = ("version", "embedding_digest", "kind", "weak", "mixed_from", "job", "created_at", "metrics")
    document = VersionDocument.of(version).to_json()
    facts = {"task": version.task, **{key: document[key] for key in shown}}
    return _made(version.reference, "version", version.reference, facts)


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:8]


def _made(name: str, kind: NodeKind, label: str, facts: dict[str, Any]) -> LineageNode:
    return LineageNode(id=name, kind=kind, label=label, facts=facts)


def _edge(source: str, target: str, kind: EdgeKind, share: float | None = None) -> LineageEdge:
    return LineageEdge(source=source, target=target, kind=kind, share=share)
