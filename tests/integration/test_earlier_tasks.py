"""What a tuned hypernetwork must not harm: every embedding in use, once, with rows and texts that did not train it."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import text
from support.real_jobs import Desk, opinions

from onboard.bases import Base
from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Dataset
from onboard.domain.task import EmbeddingVersion
from onboard.model.protected import ProtectedTask
from onboard.registry.services import Services
from onboard.versions.promote import promote
from onboard.versions.protected import in_use, newcomers, protected_with_evidence


@pytest.fixture
def dataset(desk: Desk, tiny_services: Services, tiny_base: Base) -> Dataset:
    """The rows of `mood`, a task of 80 of them, after the hold-out."""
    from onboard.data.snapshot import load
    from onboard.data.splits import holdout
    from onboard.versions.trained_rows import read_snapshot

    desk.learn(opinions(80), init="sst2", seed=3)
    return holdout(load(read_snapshot(tiny_services, desk.version("mood").dataset_digest)), 3)


def evidence(desk: Desk, base: Base, reference: str, known: np.ndarray | None = None) -> ProtectedTask:
    return protected_with_evidence(desk.services, base, desk.version(reference), known)


def names(versions: list[EmbeddingVersion]) -> list[str]:
    return [version.reference for version in versions]


def test_a_tasks_evidence_is_its_held_out_rows_and_texts_that_trained_it(
    desk: Desk, tiny_services: Services, tiny_base: Base, dataset: Dataset
) -> None:
    from onboard.bases.load import load_engine

    encoder = load_engine(tiny_base, "cpu").encoder
    task = evidence(desk, tiny_base, "mood@v1")
    assert (task.name, task.trouble) == ("mood@v1", None)
    assert task.rows is not None
    assert sorted(task.rows.ids) == sorted(encoder.encode([(row.text_a, None) for row in dataset.validation]))
    assert task.rows.targets.sum(0).tolist() == [10, 10]
    assert set(map(tuple, task.texts)) <= {
        tuple(ids) for ids in encoder.encode([(row.text_a, None) for row in dataset.train])
    }
    assert len(task.texts) == len(dataset.train) == 60


def test_rows_that_tuned_the_hypernetwork_are_no_evidence(
    desk: Desk, tiny_services: Services, tiny_base: Base, dataset: Dataset
) -> None:
    known = np.sort(np.array(row_hashes([*dataset.validation[:15], *dataset.train[:50]]), dtype=np.int64))
    task = evidence(desk, tiny_base, "mood@v1", known)
    assert task.rows is not None
    assert (len(task.rows.ids), len(task.rows.targets), len(task.texts)) == (5, 5, 10)


def test_a_task_without_held_out_rows_has_texts_and_a_source_has_neither(desk: Desk, tiny_base: Base) -> None:
    desk.learn(opinions(24), "few", init="sst2")
    few, source = evidence(desk, tiny_base, "few@v1"), evidence(desk, tiny_base, "sst2@v1")
    assert (few.rows, len(few.texts), few.trouble) == (None, 24, None)
    assert (source.rows, len(source.texts), source.trouble) == (None, 0, None)
    assert source.trie.labels == 2


def test_a_number_is_spread_over_the_buckets(desk: Desk, tiny_base: Base) -> None:
    rows = [{"text": row["text"], "label": number / 10} for number, row in enumerate(opinions(80))]
    desk.learn(rows, "scores", init="stsb", options={"kind": "regression"})
    task = evidence(desk, tiny_base, "scores@v1")
    assert task.rows is not None
    assert task.rows.targets.shape == (20, 21)
    np.testing.assert_allclose(task.rows.targets.sum(1), 1.0, rtol=1e-5)


def test_what_aliases_name_is_in_use_and_nothing_else(desk: Desk, tiny_services: Services, tiny_base: Base) -> None:
    for count in (20, 22, 24):
        desk.learn(opinions(count), init="sst2")
    latest = desk.version("mood@latest").reference
    assert latest != "mood@v1"
    promote(tiny_services, "mood@v1", "production")
    assert names(in_use(tiny_services, tiny_base)) == ["mood@v1", latest, "sst2@v1", "stsb@v1"]
    assert names(in_use(tiny_services, tiny_base, without=["mood", "stsb"])) == ["sst2@v1"]
    with tiny_services.database.write() as session:
        session.execute(text("UPDATE tasks SET deleted_at = 1 WHERE name = 'mood'"))
    assert names(in_use(tiny_services, tiny_base)) == ["sst2@v1", "stsb@v1"]


def test_of_versions_that_carry_one_embedding_the_newest_is_looked_at(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    from dataclasses import replace

    from onboard.registry.versions import VersionRepository

    desk.learn(opinions(20), init="sst2")
    promote(tiny_services, "mood@v1", "production")
    first = desk.version("mood@v1")
    with tiny_services.database.write() as session:
        task = VersionRepository(session)._tasks.get("mood")
        carried = replace(first, kind="carried", learned_under=first.origin, parent=first.reference, job=None)
        VersionRepository(session).add(carried, task)
    tasks = in_use(tiny_services, tiny_base, without=["sst2", "stsb"])
    assert names(tasks) == ["mood@v2"]
    assert newcomers([first, *tasks], (), "another", {1}) == tasks
    assert newcomers([first], [("mood", first.embedding_digest, 1)], "another", {1}) == []
    assert newcomers(tasks, (), "mood", {1}) == newcomers(tasks, (), "another", {2}) == []


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_a_snapshot_that_cannot_be_read_is_told(
    desk: Desk, tiny_services: Services, tiny_base: Base, dataset: Dataset, harm: str
) -> None:
    from onboard.registry.snapshots import SnapshotRepository

    with tiny_services.database.read() as session:
        artifact = SnapshotRepository(session).get(desk.version("mood").dataset_digest).artifact
    path = tiny_services.file(artifact)
    assert path is not None
    path.unlink() if harm == "gone" else path.write_bytes(path.read_bytes()[:-5])
    task = evidence(desk, tiny_base, "mood@v1")
    assert (task.rows, len(task.texts)) == (None, 0)
    assert task.trouble is not None
    assert "dataset cannot be read" in task.trouble
