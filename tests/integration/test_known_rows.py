"""Rows that tuned a hypernetwork are known to it, to all that descend from it, and to what was learned under them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.published import add_version
from support.real_jobs import Desk, opinions
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.data.hashes import row_hashes
from onboard.data.snapshot import load
from onboard.data.splits import holdout
from onboard.hypernetworks.register import register_base
from onboard.pipeline.check import prepare
from onboard.probe.candidates import Candidate
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.versions.trained_rows import TrainedRows, head_rows, read_snapshot

LABELS = ("yes", "no"), ("good", "bad")


def learned(desk: Desk, task: str, start: int, rows: int = 12) -> tuple[str, np.ndarray]:
    """The id of a job that learned so many rows, and the hashes of these."""
    result = desk.learn(opinions(rows, start=start), task, init="random")
    digest = desk.version(task).dataset_digest
    return result["job"], np.array(row_hashes(load(read_snapshot(desk.services, digest)).train))


@pytest.fixture
def line(desk: Desk, tiny_base: Base) -> dict[int, np.ndarray]:
    """The rows of each version of a line: 2 was tuned on the first task, 3 on the second, 4 (from 2) on the third."""
    rows = {}
    for version, task in ((2, "first"), (3, "second"), (4, "third")):
        if version == 4:
            with desk.services.database.write() as session:
                BaseRepository(session).set_head(tiny_base.digest, 2, expected_head=3)
        job, rows[version] = learned(desk, task, 40 * version)
        tuned_head(desk.services, tiny_base, seed=version, job=job)
    return rows


def test_a_head_knows_what_it_and_those_before_it_were_tuned_on_and_nothing_of_another_branch(
    line: dict[int, np.ndarray], tiny_services: Services, tiny_base: Base
) -> None:
    np.testing.assert_array_equal(head_rows(tiny_services, tiny_base, 1), tiny_base.known_rows)
    for version, of in ((2, [2]), (3, [2, 3]), (4, [2, 4])):
        expected = np.unique(np.concatenate([tiny_base.known_rows, *(line[head] for head in of)]))
        np.testing.assert_array_equal(head_rows(tiny_services, tiny_base, version), expected)


def test_a_version_knows_what_its_hypernetwork_and_those_of_its_ancestors_were_tuned_on(
    line: dict[int, np.ndarray], tiny_services: Services, tiny_base: Base
) -> None:
    trained = TrainedRows(tiny_services, tiny_base)
    plain = add_version(tiny_services, tiny_base, "plain", *LABELS)
    under_3 = add_version(tiny_services, tiny_base, "later", *LABELS, hypernetwork_version=3)
    child = add_version(
        tiny_services, tiny_base, "child", *LABELS, hypernetwork_version=4, parent="later@v1",
        dataset_digest=add_dataset(tiny_services, "first"),
    )  # fmt: skip
    carried = add_version(
        tiny_services, tiny_base, "carried", *LABELS, kind="carried", hypernetwork_version=4, learned_under=3
    )
    for version, of in ((plain, []), (under_3, [2, 3]), (child, [2, 3, 4]), (carried, [2, 3, 4])):
        expected = np.unique(np.concatenate([np.empty(0, np.int64), *(line[head] for head in of)]))
        np.testing.assert_array_equal(trained.own(version), expected)
        assert np.isin(tiny_base.known_rows, trained.of(version)).all()


def add_dataset(services: Services, task: str) -> str:
    """The digest of a dataset that is stored already."""
    from onboard.registry.versions import VersionRepository

    with services.database.read() as session:
        return VersionRepository(session).resolve(task).dataset_digest


def test_rows_that_were_held_out_of_a_tuning_are_not_known_where_it_matters(desk: Desk, tiny_base: Base) -> None:
    job, every = learned(desk, "first", 0, rows=120)
    dataset = holdout(load(read_snapshot(desk.services, desk.version("first").dataset_digest)), 0)
    held_in = np.array(row_hashes(dataset.train))
    assert len(held_in) < len(every)
    tuned_head(desk.services, tiny_base, job=job)
    for exactly, rows in ((False, every), (True, held_in)):
        expected = np.union1d(tiny_base.known_rows, rows)
        np.testing.assert_array_equal(head_rows(desk.services, tiny_base, 2, exactly=exactly), expected)
    with desk.services.database.read() as session:
        path = desk.services.file(SnapshotRepository(session).get(desk.version("first").dataset_digest).artifact)
    assert path is not None
    path.unlink()
    known = head_rows(desk.services, tiny_base, 2, exactly=True)
    np.testing.assert_array_equal(known, np.union1d(tiny_base.known_rows, every))  # their hashes are still there


def test_a_new_task_is_learned_under_the_head_and_probed_on_no_row_that_the_head_knows(
    line: dict[int, np.ndarray], desk: Desk, tiny_base: Base
) -> None:
    spec = desk.submit(opinions(40, start=150), "new").spec
    record = register_base(desk.services, tiny_base)
    for head, tuned_on in ((1, []), (4, [2, 4])):
        bench = prepare(spec, desk.services, replace(record, head=head))
        rows = bench.dataset.train
        known = bench.evaluator(rows).known(Candidate("z", np.zeros(16, dtype=np.float32)), np.arange(len(rows)))
        expected = np.isin(bench.hashes(rows), np.concatenate([np.empty(0), *(line[head] for head in tuned_on)]))
        np.testing.assert_array_equal(known, expected)
        assert bench.head == head
    assert expected.any()
    assert not expected.all()
    assert bench.engine.hypernetwork is not prepare(spec, desk.services, replace(record, head=1)).engine.hypernetwork


def test_of_a_deleted_tasks_dataset_nothing_is_known_any_more(
    line: dict[int, np.ndarray], tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, get = add_dataset(tiny_services, "first"), SnapshotRepository.get

    def without(self: SnapshotRepository, digest: str) -> Any:
        return get(self, "sha256:gone" if digest == gone else digest)

    monkeypatch.setattr(SnapshotRepository, "get", without)
    expected = np.union1d(tiny_base.known_rows, line[3])
    np.testing.assert_array_equal(head_rows(tiny_services, tiny_base, 3), expected)
