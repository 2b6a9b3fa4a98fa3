"""A task learned as if it were new: nothing that bears its name is offered, and the tests are always the same."""

from __future__ import annotations

import numpy as np
import pytest

from bench.harness.as_if_new import bears, candidates, drawn_tests, without
from bench.probe.pool import own
from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example


@pytest.mark.parametrize(
    ("name", "borne"),
    [("sst2", True), ("sst2-negated", True), ("pair-sst2-length", True), ("sst22", False), ("mini-sst", False)],
)
def test_a_name_is_borne_as_a_whole_part(name: str, borne: bool) -> None:
    assert bears(name, "sst2") == borne


def test_nothing_that_bears_the_task_s_name_is_offered(fingerprinted_base: Base) -> None:
    everything = {task.name for task in (*fingerprinted_base.sources, *fingerprinted_base.anchors)}
    gone = {name for name in everything if bears(name, "sst2")}
    assert gone
    rest = without(fingerprinted_base, "sst2")
    assert {task.name for task in (*rest.sources, *rest.anchors)} == everything - gone
    for offered in (
        [candidate.embedding for candidate in candidates(fingerprinted_base, 0, "sst2", None)],
        [named.candidate.embedding for named in own(fingerprinted_base, "sst2")],
    ):
        assert everything - gone <= set(offered)
        assert not gone & set(offered)


def test_test_rows_are_drawn_alike_and_fewer_are_the_beginning_of_more() -> None:
    test = tuple(Example(f"text {index}", None, "ab"[index % 2]) for index in range(30))
    train = (Example("one", None, "a"), Example("two", None, "b"))
    dataset = Dataset("classification", ("a", "b"), train, test=test)
    other = Dataset("classification", ("a", "b"), train[::-1], test=test)
    assert drawn_tests(dataset, 5) == drawn_tests(other, 30)[:5]
    assert drawn_tests(dataset, 5) == [test[row] for row in np.random.default_rng(0).permutation(30)[:5]]
    assert len(drawn_tests(dataset, 99)) == 30
