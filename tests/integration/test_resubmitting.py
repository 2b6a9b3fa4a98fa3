"""A task submitted again: the next version, other labels, and whether `latest` moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.opposed import opposed, rows_as_seen
from support.published import embedding_of
from support.real_jobs import Desk, HookedProgress, opinions

from onboard.bases import Base
from onboard.errors import ConflictError
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services


def test_a_resubmission_makes_the_next_version_and_knows_its_predecessor(desk: Desk) -> None:
    assert desk.learn(opinions(70))["version"] == 1
    second = desk.learn(opinions(70))
    assert second["version"] == 2
    assert [version.version for version in desk.versions("mood")] == [1, 2]
    assert second["latest"]["present"] == "mood@v1"
    names = {candidate["embedding"] for candidate in second["init"]["candidates"]}
    assert "mood@v1" not in names  # it has been trained on these very rows
    assert second["init"]["overlap"] == second["dataset"]["rows"]["train"]
    fresh = desk.learn(opinions(40, start=100))
    assert "mood@v2" in {candidate["embedding"] for candidate in fresh["init"]["candidates"]}
    assert fresh["init"]["overlap"] == 0


def test_rows_that_the_start_was_trained_on_judge_nothing_that_comes_of_it(desk: Desk) -> None:
    desk.learn(opinions(30), init="random")
    test = [*opinions(6, start=4), *opinions(6, start=60)]  # six of them are among the thirty
    grown = desk.learn(opinions(24, start=16), test=test, init="mood@v1")
    assert grown["metrics"]["validation"]["accuracy"]["n"] == 10
    assert grown["metrics"]["test"]["accuracy"]["n"] == 6
    assert grown["baselines"]["validation"]["majority"]["accuracy"]["n"] == 10
    assert grown["baselines"]["test"]["majority"]["accuracy"]["n"] == 6
    assert grown["validation_reason"].startswith(
        "10 of the 24 training rows were predicted by a model that was not trained on them"
    )
    (warning,) = [warned for warned in grown["dataset"]["warnings"] if warned["code"] == "known_rows"]
    assert warning["message"].startswith("14 training and 6 test rows were used to train the start or the hypernetwork")
    same = desk.learn(opinions(30), init="mood@v1")
    assert same["metrics"]["validation"] is None
    assert same["validation_reason"].startswith("Fewer than 8 of the 30 training rows can be cross-validated")


def test_held_out_rows_that_the_start_was_trained_on_are_left_out(desk: Desk) -> None:
    desk.learn(opinions(60), init="random")
    grown = desk.learn(opinions(80), init="mood@v1")
    held, left = (split["validation"] for split in (grown["metrics"], grown["dataset"]["rows"]))
    (warning,) = [warned for warned in grown["dataset"]["warnings"] if warned["code"] == "known_rows"]
    assert 0 < warning["count"] == 20 - left
    assert (held["accuracy"]["n"] if held else 0) == left
    fresh = desk.learn(opinions(80), init="random")
    assert fresh["dataset"]["rows"]["validation"] == 20
    assert "known_rows" not in {warning["code"] for warning in fresh["dataset"]["warnings"]}


def test_latest_stays_where_the_bytes_to_compare_with_are_lost_and_the_version_is_published(
    desk: Desk, tiny_services: Services
) -> None:
    test = opinions(20, start=60)
    desk.learn(opinions(24), test=test, init="random")
    path = tiny_services.file(desk.version("mood").artifact)
    assert path is not None
    path.unlink()
    result = desk.learn(opinions(24), test=test, init="random")
    assert not result["latest"]["moved"]
    assert result["latest"]["reason"].startswith("mood@v1 cannot be read for the comparison. ")
    assert (result["version"], desk.version("mood").version) == (2, 1)


def test_other_labels_are_refused_with_nothing_queued_unless_new_labels_are_meant(desk: Desk) -> None:
    desk.learn(opinions(20))
    other = opinions(20, ("pro", "contra"))
    with pytest.raises(ConflictError) as caught:
        desk.submit(other)
    assert caught.value.exit_code == 4
    assert "--new-labels" in caught.value.remedy
    with pytest.raises(ConflictError):
        desk.submit(other, "sst2")  # a shipped task is a task like any other
    assert len(desk.jobs()) == 1
    assert desk.learn(other, new_labels=True)["version"] == 2
    assert desk.version("mood@v2").labels == ("contra", "pro")
    assert desk.version("mood@v1").labels == ("no", "yes")


def test_labels_that_another_job_changed_meanwhile_fail_the_publishing_and_nothing_else(desk: Desk) -> None:
    desk.submit(opinions(20))
    first = desk.claim()
    desk.learn(opinions(20, ("pro", "contra")))
    with pytest.raises(ConflictError):
        desk.run(first)
    assert [version.labels for version in desk.versions("mood")] == [("contra", "pro")]


def test_latest_stays_when_the_new_version_is_significantly_worse_and_moves_when_it_is_better(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    good, bad, test = opposed(tiny_base)
    trained_as(good)
    first = desk.learn(opinions(30), test=test, init="random")
    assert first["metrics"]["test"]["accuracy"]["value"] == 1.0
    assert first["latest"]["moved"]
    assert not first["weak"]
    trained_as(bad)
    second = desk.learn(opinions(30), test=test, init="random")
    assert second["version"] == 2
    assert not second["latest"]["moved"]
    assert second["latest"]["comparison"]["verdict"] == "worse"
    assert second["latest"]["comparison"]["newly_wrong"] >= 18
    assert second["latest"]["comparison"]["newly_right"] == 0
    assert desk.version("mood").version == 1
    assert desk.version("mood@v2").weak
    trained_as(good)
    third = desk.learn(opinions(30), test=test, init="random")
    assert third["latest"]["moved"]
    assert third["latest"]["comparison"]["verdict"] == "no significant difference"
    assert desk.version("mood").version == 3


def test_latest_moves_to_a_better_version(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, test = opposed(tiny_base)
    trained_as(bad)
    desk.learn(opinions(30), test=test, init="random")
    trained_as(good)
    better = desk.learn(opinions(30), test=test, init="random")
    assert better["latest"]["moved"]
    assert better["latest"]["comparison"]["verdict"] == "better"
    assert better["latest"]["comparison"]["newly_right"] >= 18
    assert desk.version("mood").version == 2


def after(stage: str, do: Callable[[], object]) -> HookedProgress:
    """Progress that does something once, when a stage has ended or begun."""
    left = [do]

    def hook(what: str, name: str) -> None:
        if f"{name} {what}" == stage and left:
            left.pop()()

    return HookedProgress(hook)


@pytest.mark.parametrize("moment", ["evaluate finished", "publish started"])
def test_latest_moves_only_past_what_it_means_when_the_version_is_published(
    desk: Desk, tiny_base: Base, trained_as: Any, moment: str
) -> None:
    good, bad, test = opposed(tiny_base)
    for z in (bad, good):
        trained_as(z)
        desk.learn(opinions(30), test=test, init="random")

    def mean(version: int) -> None:
        with desk.services.database.write() as session:
            AliasRepository(session).move("mood", "latest", version)

    mean(1)
    trained_as(bad)
    desk.submit(opinions(30), test=test, init="random")
    result = desk.run(desk.claim(), after(moment, lambda: mean(2))).result  # judged as no worse than v1
    assert result is not None
    assert (result["latest"]["present"], result["latest"]["moved"]) == ("mood@v2", False)
    assert result["latest"]["comparison"]["verdict"] == "worse"
    assert desk.version("mood").version == 2


def test_latest_that_moves_in_the_moment_of_publishing_is_judged_again(
    desk: Desk, tiny_base: Base, trained_as: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, test = opposed(tiny_base)
    for z in (bad, good):
        trained_as(z)
        desk.learn(opinions(30), test=test, init="random")
    with desk.services.database.write() as session:
        AliasRepository(session).move("mood", "latest", 1)
    store, left = type(desk.services).store, [2]

    def stored(self: Services, data: bytes, kind: str) -> str:
        if kind == "embedding" and left:  # after the last look at `latest`, before the transaction
            with self.database.write() as session:
                AliasRepository(session).move("mood", "latest", left.pop())
        return store(self, data, kind)

    monkeypatch.setattr(type(desk.services), "store", stored)
    trained_as(bad)
    third = desk.learn(opinions(30), test=test, init="random")
    assert not left
    assert (third["version"], third["latest"]["present"], third["latest"]["moved"]) == (3, "mood@v2", False)
    assert desk.version("mood").version == 2


def test_rows_that_the_predecessor_has_trained_on_are_no_witnesses(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    good, bad, rows = opposed(tiny_base)
    trained_as(good)
    desk.learn(rows, init="random")
    trained_as(bad)
    second = desk.learn(opinions(30), test=rows, init="random")
    assert second["latest"]["comparison"] is None


def test_rows_that_both_versions_held_out_are_shared_witnesses(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, _ = opposed(tiny_base)
    rows = rows_as_seen(tiny_base, good, 120)
    trained_as(good)
    first = desk.learn(rows, init="random")
    trained_as(bad)
    second = desk.learn(rows, init="random")
    assert first["dataset"]["rows"]["validation"] == second["latest"]["comparison"]["rows"] == 30
    assert second["latest"]["comparison"]["verdict"] == "worse"
    assert not second["latest"]["moved"]
    other_draw = desk.learn(rows, init="random", seed=3)  # some of its held-out rows have trained the current version
    assert 0 < other_draw["latest"]["comparison"]["rows"] < 30


def test_a_scale_is_compared_by_values_even_when_its_range_has_changed(
    desk: Desk, tiny_base: Base, trained_as: Any
) -> None:
    trained_as(embedding_of(1))
    asked = {"options": {"kind": "regression"}, "kind": "regression", "init": "random"}
    rows = opinions(40)
    narrow = [{**row, "label": round(1 + number / 39, 3)} for number, row in enumerate(rows)]
    test = [{**row, "label": 1.5} for row in opinions(30, start=200)]
    test[0]["label"] = 1.25
    desk.learn(narrow, "stars", test=test, **asked)
    wide = [{**row, "label": 100 * row["label"]} for row in narrow]
    second = desk.learn(wide, "stars", test=test, **asked)
    comparison = second["latest"]["comparison"]
    assert comparison["verdict"] == "worse"  # it answers 100 at least where 1.5 is right, the present one 2 at most
    assert comparison["increase"] > 9000
    assert not second["latest"]["moved"]
    desk.learn(wide, "percent", test=test, **asked)
    better = desk.learn(narrow, "percent", test=test, **asked)
    assert better["latest"]["comparison"]["increase"] < -9000
    assert better["latest"]["moved"]
