"""What was held out of a published version stays what it was, when a later program would hold out other rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import text
from support.real_jobs import Desk, opinions
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data import splits
from onboard.data.hashes import row_hashes
from onboard.data.snapshot import load
from onboard.domain.dataset import Dataset
from onboard.registry.unlearning import UnlearningRepository
from onboard.versions.carry import carry_task
from onboard.versions.carry.remeasuring import remeasure
from onboard.versions.compare import compare
from onboard.versions.protected import protected_with_evidence
from onboard.versions.trained_rows import TrainedRows, head_rows, read_snapshot

ROWS, SEED, HELD = 80, 3, 20


def split_by_todays_rule(desk: Desk, reference: str = "mood@v1") -> Dataset:
    return splits.holdout(load(read_snapshot(desk.services, desk.version(reference).dataset_digest)), SEED)


def hashes(dataset: Dataset, split: str = "train") -> np.ndarray:
    return np.unique(np.array(row_hashes(getattr(dataset, split)), dtype=np.int64))


@pytest.fixture
def change_rule(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets this and every later call of `holdout` hold out other rows."""
    rank = splits.split_rank

    def change() -> None:
        monkeypatch.setattr(splits, "split_rank", lambda seed, key: rank(seed + 1000, key))

    return change


@pytest.fixture
def then(desk: Desk, change_rule: Callable[[], None]) -> Dataset:
    """The rows of mood@v1 as they were split when it was trained; the rule is another one now."""
    desk.learn(opinions(ROWS), init="random", seed=SEED)
    split = split_by_todays_rule(desk)
    assert len(split.validation) == HELD
    change_rule()
    assert split_by_todays_rule(desk).validation != split.validation
    return split


def test_rows_that_trained_a_version_are_known_whatever_would_be_held_out_today(
    desk: Desk, tiny_base: Base, then: Dataset
) -> None:
    trained = TrainedRows(desk.services, tiny_base)
    np.testing.assert_array_equal(trained.own(desk.version("mood@v1"), exactly=True), hashes(then))
    np.testing.assert_array_equal(trained.of_start(["mood@v1"]), hashes(then))


def test_rows_that_tuned_a_hypernetwork_are_known_whatever_would_be_held_out_today(
    desk: Desk, tiny_base: Base, then: Dataset
) -> None:
    tuned_head(desk.services, tiny_base, job=desk.version("mood@v1").job)
    expected = np.union1d(tiny_base.known_rows, hashes(then))
    np.testing.assert_array_equal(head_rows(desk.services, tiny_base, 2, exactly=True), expected)
    with desk.services.database.write() as session:  # as where it is to be forgotten, with a deleted task
        registry = UnlearningRepository(session)
        registry.mark("deleted", ["mood@v1"], [])
        registry.remove(["mood@v1"])
    assert not desk.versions("mood")
    every = np.union1d(expected, hashes(then, "validation"))  # nobody knows any more what was held out
    np.testing.assert_array_equal(head_rows(desk.services, tiny_base, 2, exactly=True), every)


def test_the_guard_judges_an_earlier_task_by_what_was_held_out_of_it(
    desk: Desk, tiny_base: Base, then: Dataset
) -> None:
    task = protected_with_evidence(desk.services, tiny_base, desk.version("mood@v1"))
    encode = load_engine(tiny_base, "cpu").encoder.encode
    assert task.rows is not None
    assert task.rows.ids == encode([(row.text_a, None) for row in then.validation])
    assert task.texts == encode([(row.text_a, None) for row in then.train])


def test_versions_are_compared_on_rows_that_were_held_out_of_both(desk: Desk, then: Dataset) -> None:
    desk.learn(opinions(ROWS), init="random", seed=SEED)
    shared = np.intersect1d(hashes(then, "validation"), hashes(split_by_todays_rule(desk), "validation"))
    assert 0 < len(shared) < HELD
    assert desk.version("mood@v1").dataset_digest == desk.version("mood@v2").dataset_digest
    measured = compare(desk.services, "mood@v1", "mood@v2").measured
    assert measured is not None
    assert measured.comparison.rows == len(shared)


def test_a_carried_version_is_measured_on_what_was_held_out_and_hands_it_on(
    desk: Desk, tiny_base: Base, then: Dataset
) -> None:
    version = desk.version("mood@v1")
    tuned_head(desk.services, tiny_base, 0)
    measured = remeasure(desk.services, tiny_base, version, 2, hashes(then))
    assert measured.comparison is not None
    assert measured.comparison.rows == HELD
    carry_task(desk.services, "mood")
    carried = desk.version("mood@v2")
    assert (carried.kind, carried.held_out) == ("carried", version.held_out)


def test_of_versions_from_before_it_was_kept_it_is_computed(desk: Desk, tiny_base: Base, then: Dataset) -> None:
    with desk.services.database.write() as session:
        session.execute(text("UPDATE embedding_versions SET held_out = NULL"))
    version = desk.version("mood@v1")
    assert version.held_out is None
    known = TrainedRows(desk.services, tiny_base).own(version, exactly=True)
    np.testing.assert_array_equal(known, hashes(split_by_todays_rule(desk)))


@pytest.mark.parametrize(("rows", "held"), [(ROWS, HELD), (24, 0)])
def test_a_job_keeps_the_places_of_what_it_held_out(desk: Desk, rows: int, held: int) -> None:
    desk.learn(opinions(rows), init="random", seed=SEED)
    places = desk.version("mood@v1").held_out
    assert places is not None
    assert len(places) == held
    stored = load(read_snapshot(desk.services, desk.version("mood@v1").dataset_digest))
    assert tuple(stored.train[place] for place in places) == split_by_todays_rule(desk).validation
