"""The lineage of versions as a graph and as a picture."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from support.published import add_version
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.contract.lineage import EdgeKind, LineageDocument, LineageEdge, LineageNode, NodeKind
from onboard.domain.job import JobSpec
from onboard.registry.deleting import DeletingRepository
from onboard.registry.descent import DescentRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.report.lineage import render_lineage
from onboard.storage.artifacts import digest_of
from onboard.versions.lineage import lineage

LABELS = ("sad", "glad"), ("bad", "good")
ROWS = digest_of(b"rows")


def Node(name: str, kind: NodeKind, label: str, facts: dict[str, Any] | None = None) -> LineageNode:
    return LineageNode(id=name, kind=kind, label=label, facts=facts or {})


def Edge(source: str, target: str, kind: EdgeKind) -> LineageEdge:
    return LineageEdge(source=source, target=target, kind=kind)


def Lineage(
    task: str, nodes: tuple[LineageNode, ...], edges: tuple[LineageEdge, ...], aliases: dict[str, int]
) -> LineageDocument:
    return LineageDocument(task=task, aliases=aliases, nodes=nodes, edges=edges)


def test_a_version_leads_back_to_dataset_init_hypernetwork_and_all_ancestors(
    tiny_services: Services, tiny_base: Base
) -> None:
    add_version(tiny_services, tiny_base, "first", *LABELS, parent="sst2@v1", dataset_digest=ROWS)
    add_version(tiny_services, tiny_base, "second", *LABELS, parent="first@v1", dataset_digest=ROWS)
    graph = lineage(tiny_services, "second")
    kinds = {node.id: node.kind for node in graph.nodes}
    assert [name for name, kind in kinds.items() if kind == "version"] == ["second@v1", "first@v1", "sst2@v1"]
    assert kinds[ROWS] == "dataset"
    assert Edge("first@v1", "second@v1", "started_from") in graph.edges
    assert Edge("sst2@v1", "first@v1", "started_from") in graph.edges
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} == set(kinds)
    assert graph.aliases == {"latest": 1}
    assert not graph.left_out


def test_a_mixture_started_from_all_that_it_is_made_of(tiny_services: Services, tiny_base: Base) -> None:
    add_version(tiny_services, tiny_base, "first", *LABELS, parent="sst2@v1", dataset_digest=ROWS)
    weights = {"first@v1": 0.5, "stsb@v1": 0.3, "mean": 0.2}
    add_version(tiny_services, tiny_base, "second", *LABELS, parent="mixture", mixed_from=weights, dataset_digest=ROWS)
    graph = lineage(tiny_services, "second")
    started = {edge.source for edge in graph.edges if (edge.target, edge.kind) == ("second@v1", "started_from")}
    assert started == {"first@v1", "stsb@v1", "init:mean"}
    assert {"first@v1", "sst2@v1", "stsb@v1"} < {node.id for node in graph.nodes}
    assert [node.facts["mixed_from"] for node in graph.nodes if node.id == "second@v1"] == [weights]
    shares = {edge.source: edge.share for edge in graph.edges if edge.share is not None}
    assert shares == {"first@v1": 0.5, "stsb@v1": 0.3, "init:mean": 0.2}
    drawn = ElementTree.fromstring(render_lineage(graph))
    texts = [element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(text for text in texts if text and text.endswith("%")) == ["20%", "30%", "50%"]


def test_a_readout_leads_back_to_the_prior_it_was_drawn_towards(tiny_services: Services, tiny_base: Base) -> None:
    taught, tone = digest_of(b"lessons"), digest_of(b"lessons of pairs")
    add_version(tiny_services, tiny_base, "mood", *LABELS)
    add_version(tiny_services, tiny_base, "mood", *LABELS, prior_version=3, prior_digest=taught)
    add_version(tiny_services, tiny_base, "mood", *LABELS, prior_version=3, prior_digest=taught, pairs=False)
    add_version(tiny_services, tiny_base, "mood", *LABELS, prior_version=1, prior_digest=tone, pairs=True)
    graph = lineage(tiny_services, "mood")
    base = tiny_base.digest
    assert [node for node in graph.nodes if node.kind == "prior"] == [
        Node(f"prior:{taught}", "prior", "prior v3 (single)",
             {"version": 3, "form": "single", "digest": taught, "base_digest": base}),
        Node(f"prior:{tone}", "prior", "prior v1 (pairs)",
             {"version": 1, "form": "pairs", "digest": tone, "base_digest": base}),
    ]  # fmt: skip
    drawn = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "drawn_towards"}
    assert drawn == {(f"prior:{taught}", "mood@v2"), (f"prior:{taught}", "mood@v3"), (f"prior:{tone}", "mood@v4")}
    assert render_lineage(graph).count("<path") == len(graph.edges)


def test_of_a_deleted_ancestor_the_name_stands_in_the_lineage(tiny_services: Services, tiny_base: Base) -> None:
    add_version(tiny_services, tiny_base, "first", *LABELS)
    add_version(tiny_services, tiny_base, "second", *LABELS, parent="first@v1")
    with tiny_services.database.write() as session:
        DeletingRepository(session).remove(DescentRepository(session).root("first"))
    graph = lineage(tiny_services, "second")
    assert Edge("init:first@v1", "second@v1", "started_from") in graph.edges
    assert "first@v1" not in [node.id for node in graph.nodes]


def test_a_hypernetwork_leads_back_to_those_it_was_tuned_from_and_to_what_it_was_tuned_on(
    tiny_services: Services, tiny_base: Base
) -> None:
    with tiny_services.database.write() as session:
        job, _ = JobRepository(session).add(JobSpec(task="tuner", dataset=ROWS))
    tuned_head(tiny_services, tiny_base, job=job.id)
    tuned_head(tiny_services, tiny_base)
    add_version(tiny_services, tiny_base, "mood", *LABELS, hypernetwork_version=2)
    pins = {"kind": "carried", "hypernetwork_version": 3, "learned_under": 2, "parent": "mood@v1"}
    add_version(tiny_services, tiny_base, "mood", *LABELS, **pins)
    graph = lineage(tiny_services, "mood")
    first, second, third = (f"hypernetwork:{tiny_base.digest}:v{number}" for number in (1, 2, 3))
    assert set(graph.edges) >= {
        Edge("mood@v1", "mood@v2", "carried_from"), Edge(second, "mood@v1", "adapted_by"),
        Edge(third, "mood@v2", "adapted_by"), Edge(second, third, "tuned_from"), Edge(first, second, "tuned_from"),
        Edge(ROWS, second, "tuned_on"),
    }  # fmt: skip
    assert Edge(first, third, "tuned_from") not in graph.edges
    assert len({node.id for node in graph.nodes}) == len(graph.nodes)
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} == {
        node.id for node in graph.nodes
    }
    drawn = render_lineage(graph)
    assert drawn.count("<path") == len(graph.edges)


def test_a_hypernetwork_whose_head_moved_meanwhile_leads_back_to_the_tuned_one_and_to_the_new_head(
    tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base)
    tuned_head(tiny_services, tiny_base, moved_from=1)
    add_version(tiny_services, tiny_base, "mood", *LABELS, hypernetwork_version=3)
    graph = lineage(tiny_services, "mood")
    first, second, third = (f"hypernetwork:{tiny_base.digest}:v{number}" for number in (1, 2, 3))
    tuned = [(edge.source, edge.target) for edge in graph.edges if edge.kind == "tuned_from"]
    assert sorted(tuned) == [(first, second), (first, third), (second, third)]
    assert "<svg" in render_lineage(graph)


def test_older_versions_that_are_left_out_are_told(tiny_services: Services, tiny_base: Base) -> None:
    for _ in range(3):
        add_version(tiny_services, tiny_base, "mood", *LABELS)
    graph = lineage(tiny_services, "mood", versions=2)
    assert [node.id for node in graph.nodes if node.kind == "version"] == ["mood@v2", "mood@v3"]
    assert graph.left_out


HOSTILE = "\"><script>alert('1')</script>&amp;]]>\x00\x1b\ud800\N{RIGHT-TO-LEFT OVERRIDE}"


def test_no_name_breaks_out_of_the_picture() -> None:
    nodes = (
        Node(HOSTILE, "init", HOSTILE),
        Node(f"{HOSTILE}@v1", "version", HOSTILE, {"weak": True}),
    )
    edges = (Edge(HOSTILE, f"{HOSTILE}@v1", "started_from"),)
    drawn = render_lineage(Lineage(HOSTILE, nodes, edges, {HOSTILE: 1}))
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(drawn.encode()).iter()}
    assert tags == {"svg", "title", "rect", "path", "g", "text"}
    assert "<script" not in drawn
    titles = [title.text or "" for title in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}title")]
    assert all("<script>alert('1')</script>&amp;" in title for title in titles)


def test_the_picture_is_whole_and_its_texts_are_escaped() -> None:
    nodes = (
        Node("init:<b>", "init", "<script>alert(1)</script>"),
        Node("mood@v1", "version", "mood@v1", {"weak": True}),
        Node("mood@v2", "version", "mood@v2"),
    )
    edges = (Edge("init:<b>", "mood@v1", "started_from"), Edge("mood@v1", "mood@v2", "started_from"))
    drawn = render_lineage(Lineage("mood", nodes, edges, {"latest": 2}))
    assert "<script" not in drawn
    root = ElementTree.fromstring(drawn)
    boxes = [rect for rect in root.iter("{http://www.w3.org/2000/svg}rect") if rect.get("rx")]
    assert [box.get("x") for box in boxes] == ["20", "300", "580"]  # a column a generation
    assert "mood@v2 · latest" in drawn
    assert "mood@v1 (weak)" in drawn
