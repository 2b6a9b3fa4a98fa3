"""Versions of different hypernetworks side by side: each answers under its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.opposed import opposed
from support.published import add_version
from support.real_jobs import Desk, opinions
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.errors import DamagedError
from onboard.hypernetworks import engines as heads
from onboard.hypernetworks.engines import engine_at
from onboard.model.batched import log_probabilities
from onboard.registry.bases import BaseRepository
from onboard.versions.compare import compare


@pytest.fixture
def across(desk: Desk, tiny_base: Base, trained_as: Any) -> tuple[Desk, np.ndarray, list[dict[str, Any]]]:
    """mood@v1 answers every test row right under the first hypernetwork; mood@v2 is the same numbers under another."""
    z, _, test = opposed(tiny_base)
    trained_as(z)
    desk.learn(opinions(30), test=test, init="random")
    tuned_head(desk.services, tiny_base, 2.0, seed=3)
    desk.learn(opinions(30), test=test, init="random")
    return desk, z, test


def right(desk: Desk, base: Base, head: int, z: np.ndarray, rows: list[dict[str, Any]]) -> float:
    engine = engine_at(desk.services, base, head)
    ids = engine.encoder.encode([(row["text"], None) for row in rows])
    answers = log_probabilities(engine, ids, z, engine.trie(["no", "yes"])).argmax(1)
    return float(np.mean([("no", "yes")[answer] == row["label"] for answer, row in zip(answers, rows, strict=True)]))


def test_each_version_is_compared_under_the_hypernetwork_that_it_is_pinned_to(
    across: tuple[Desk, np.ndarray, list[dict[str, Any]]], tiny_base: Base
) -> None:
    desk, z, test = across
    assert [version.hypernetwork_version for version in desk.versions("mood")] == [1, 2]
    comparison = compare(desk.services, "mood@v1", "mood@v2").to_document().to_json()
    assert comparison["comparison"]["rows"] == 40
    shared = [comparison[side]["shared"]["accuracy"]["value"] for side in ("a", "b")]
    assert shared == pytest.approx([1.0, right(desk, tiny_base, 2, z, test)])
    assert shared[1] < 0.9


def test_latest_is_judged_with_the_present_version_under_its_own_hypernetwork(
    across: tuple[Desk, np.ndarray, list[dict[str, Any]]], tiny_base: Base
) -> None:
    desk, _, test = across
    judged = desk.versions("mood")[1]
    result = desk.job(str(judged.job)).result
    assert result is not None
    again = compare(desk.services, "mood@v1", "mood@v2").to_document().to_json()
    assert result["latest"]["comparison"]["verdict"] == again["comparison"]["verdict"] == "worse"
    assert result["latest"]["comparison"]["increase"] == pytest.approx(again["comparison"]["increase"], abs=1e-4)
    assert result["latest"]["moved"] is False
    with desk.services.database.write() as session:
        BaseRepository(session).set_head(tiny_base.digest, 1, expected_head=2)
    back = desk.learn(opinions(30), test=test, init="random")  # the numbers of v1 under the hypernetwork of v1
    assert back["latest"]["comparison"]["increase"] == pytest.approx(0.0, abs=1e-6)


def test_rows_that_tuned_a_hypernetwork_are_no_witnesses_for_what_is_pinned_to_it(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    z, _, test = opposed(tiny_base)
    trained_as(z)
    desk.learn(opinions(30), test=test, init="random")
    tuner = desk.learn(test, "tuner", init="random")
    tuned_head(desk.services, tiny_base, job=tuner["job"])
    desk.learn(opinions(30), test=test, init="random")
    comparison = compare(desk.services, "mood@v1", "mood@v2")
    assert comparison.measured is None
    assert "neither" in comparison.reason


def test_a_version_whose_hypernetwork_is_gone_is_told_as_damage(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    z, _, test = opposed(tiny_base)
    trained_as(z)
    result = desk.learn(opinions(30), test=test, init="random")
    digest = desk.version("mood").dataset_digest
    head = tuned_head(desk.services, tiny_base, seed=5)
    add_version(
        desk.services, tiny_base, "mood", ("no", "yes"), ("no", "yes"), z=z,
        hypernetwork_version=2, dataset_digest=digest,
    )  # fmt: skip
    assert result["version"] == 1
    heads.loaded_hypernetworks.clear()
    name = head.digest.removeprefix("sha256:")
    (desk.services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name).unlink()
    with pytest.raises(DamagedError):
        compare(desk.services, "mood@v1", "mood@v2")
