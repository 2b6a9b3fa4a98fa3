"""`onboard tasks delete --unlearn`: what descends from a task becomes, byte for byte, what it would be without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.real_jobs import Desk, HookedProgress, opinions
from support.refusals import refused
from support.tuned_heads import head_of, tuned_head

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.errors import NotFoundError
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.jobs.control import cancel, retry
from onboard.model.engine import Engine
from onboard.operations.gc import collect_garbage
from onboard.pipeline import tune as tuned
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import unpack_embedding
from onboard.train.tuning import Tuned
from onboard.train.worth_tuning import Worth
from onboard.versions.carry import carry_task
from onboard.versions.delete import delete_task
from onboard.versions.promote import promote

OTHER, CHILD, GRANDCHILD = opinions(24), opinions(24, start=24), opinions(24, start=40)
GONE = opinions(24, ("x", "y"), start=8)


def run_all(desk: Desk) -> None:
    while any(job.state is JobState.QUEUED for job in desk.jobs()):
        desk.run(desk.claim())


def weights(services: Services, base: Base, version: int) -> dict[str, bytes]:
    state = hypernetwork_at(services, base, version, "cpu").state_dict()
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def numbers(desk: Desk, task: str) -> bytes:
    return unpack_embedding(desk.services.read(desk.version(task).artifact)).tobytes()


def aliases(desk: Desk, task: str) -> dict[str, int]:
    with desk.services.database.read() as session:
        return AliasRepository(session).list(task)


def test_embeddings_and_weights_become_those_of_a_history_without_the_task(
    desk: Desk, without: Desk, tiny_base: Base
) -> None:
    services = desk.services
    desk.learn(OTHER, "other", init="random")
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(services, tiny_base, job=tuner)
    desk.learn(CHILD, "child", init="gone")
    desk.learn(GRANDCHILD, "grandchild", init="child")
    assert head_of(services, tiny_base) == 2
    unrelated = numbers(desk, "other")

    done = delete_task(services, "gone", unlearning=True).to_document().to_json()
    assert {version["version"]: version["why"] for version in done["descendants"]["versions"]} == {
        "child@v1": "started from gone@v1", "grandchild@v1": "started from child@v1",
    }  # fmt: skip
    assert [head["version"] for head in done["descendants"]["hypernetworks"]] == [2]
    unlearning = done["unlearning"]
    assert unlearning["reverted"] == [{"base_digest": tiny_base.digest, "from": 2, "to": 1}]
    assert [rebuilt["versions"] for rebuilt in unlearning["rebuilding"]] == [["child@v1"], ["grandchild@v1"]]
    assert (unlearning["cannot"], unlearning["removed"], unlearning["restored"]) == ([], [], [])
    assert desk.version("child").version == 1  # served as before, until it is rebuilt
    run_all(desk)

    without.learn(OTHER, "other", init="random")
    for rows, task in ((CHILD, "child"), (GRANDCHILD, "grandchild")):
        without.learn(rows, task)
    assert numbers(desk, "other") == numbers(without, "other") == unrelated
    for task in ("child", "grandchild"):
        assert numbers(desk, task) == numbers(without, task)
        assert [version.version for version in desk.versions(task)] == [2]
        assert desk.version(task).hypernetwork_version == 1
    head = head_of(services, tiny_base)
    assert head == head_of(without.services, tiny_base) == 1
    assert weights(services, tiny_base, head) == weights(without.services, tiny_base, head)
    with services.database.read() as session:
        forgotten = BaseRepository(session).hypernetwork(tiny_base.digest, 2)
    assert (forgotten.artifact, forgotten.collected_at is None) == (None, False)
    assert collect_garbage(services).damaged == []
    assert not services.artifacts.has(forgotten.digest)


def test_a_step_that_was_moved_onto_the_head_of_the_task_is_tuned_again_without_it(
    desk: Desk, without: Desk, tiny_base: Base, gently: None
) -> None:
    services = desk.services
    desk.learn(OTHER, "other", init="random")
    desk.submit(CHILD, "child", init="random", tune_hypernetwork="always")
    child = desk.claim()
    desk.keep(child)
    meanwhile = [lambda: desk.learn(GONE, "gone", init="random", tune_hypernetwork="always")]

    def hook(what: str, name: str) -> None:
        if (what, name) == ("finished", "tune") and meanwhile:
            meanwhile.pop()()

    desk.run(child, HookedProgress(hook))
    with services.database.read() as session:
        line = BaseRepository(session).hypernetworks(tiny_base.digest)
    assert [(head.version, head.parent, head.metrics.get("tuning", {}).get("moved_from")) for head in line] == [
        (1, None, None), (2, 1, None), (3, 2, 1),
    ]  # fmt: skip
    done = delete_task(services, "gone", unlearning=True).to_document().to_json()
    assert [head["version"] for head in done["descendants"]["hypernetworks"]] == [2, 3]
    assert done["unlearning"]["reverted"] == [{"base_digest": tiny_base.digest, "from": 3, "to": 1}]
    assert [rebuilt["versions"] for rebuilt in done["unlearning"]["rebuilding"]] == [["child@v1"]]
    run_all(desk)

    without.learn(OTHER, "other", init="random")
    without.learn(CHILD, "child", init="random", tune_hypernetwork="always")
    assert numbers(desk, "child") == numbers(without, "child")
    assert (head_of(services, tiny_base), head_of(without.services, tiny_base)) == (4, 2)
    assert weights(services, tiny_base, 4) == weights(without.services, tiny_base, 2)


@pytest.mark.parametrize("asked", ["always", "auto"])
def test_hypernetworks_are_tuned_again_in_the_order_in_which_their_rebuilding_was_queued(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    def unchanged(engine: Engine, _: object, z: np.ndarray, *__: object) -> Tuned:
        return Tuned(engine.hypernetwork, z, (0.5,), (0.0,), 0.0)

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(tuned, "_nothing_to_gain", lambda _: None)
    monkeypatch.setattr(tuned, "tune", unchanged)
    desk.learn(GONE, "gone", init="random")
    for rows, task in ((CHILD, "child"), (GRANDCHILD, "grandchild")):
        desk.learn(rows, task, init="gone", tune_hypernetwork=asked)
    delete_task(desk.services, "gone", unlearning=True)
    first = desk.claim()
    desk.keep(first)
    second = desk.claim(pid=2)
    assert (first.spec.task, second.spec.task) == ("child", "grandchild")
    with refused("earlier-rebuilding-open", holder=first.id):
        desk.run(second)
    desk.end(first.id, JobState.FAILED)
    assert desk.run(second).state is JobState.SUCCEEDED


def test_the_rebuilt_version_takes_over_every_alias_whatever_the_comparison_says(desk: Desk) -> None:
    desk.learn(GONE, "gone", init="random")
    for seed in (0, 1, 2):
        desk.learn(CHILD, "child", init="gone", seed=seed)
    with desk.services.database.write() as session:
        AliasRepository(session).move("child", "shop", 1)
        AliasRepository(session).move("child", "latest", 3)
    done = delete_task(desk.services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    assert done["removed"] == ["child@v2"]  # nothing names it
    assert [rebuilt["versions"] for rebuilt in done["rebuilding"]] == [["child@v1"], ["child@v3"]]
    with pytest.raises(NotFoundError):
        desk.version("child@v2")
    assert aliases(desk, "child") == {"latest": 3, "shop": 1}
    run_all(desk)
    assert aliases(desk, "child") == {"latest": 5, "shop": 4}
    assert [version.version for version in desk.versions("child")] == [4, 5]
    assert (desk.version("child@v4").seeds, desk.version("child@v5").seeds) == ((0,), (2,))
    assert desk.jobs()[0].result is not None
    assert desk.jobs()[0].result["latest"]["moved"]
    with desk.services.database.write() as session, refused("alias-without-past"):
        AliasRepository(session).rollback("child", "shop")


def test_the_head_goes_back_in_its_own_line_and_not_to_what_a_revert_left_behind(desk: Desk, tiny_base: Base) -> None:
    tuned_head(desk.services, tiny_base, scale=0.5)
    with desk.services.database.write() as session:
        BaseRepository(session).set_head(tiny_base.digest, 1, expected_head=2)
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(desk.services, tiny_base, job=tuner)
    done = delete_task(desk.services, "gone", unlearning=True).to_document().to_json()
    assert done["unlearning"]["reverted"] == [{"base_digest": tiny_base.digest, "from": 3, "to": 1}]


def test_nothing_new_starts_from_what_descends_and_its_hypernetwork_does_not_come_back(
    desk: Desk, tiny_base: Base
) -> None:
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(desk.services, tiny_base, job=tuner)
    desk.learn(CHILD, "child", init="random")  # under the tuned head
    delete_task(desk.services, "gone", unlearning=True)
    with refused("version-being-rebuilt"):
        desk.submit(GRANDCHILD, "grandchild", init="child")
    with desk.services.database.write() as session, refused("hypernetwork-not-usable"):
        BaseRepository(session).set_head(tiny_base.digest, 2, expected_head=1)
    with desk.services.database.read() as session:
        startable = {version.task for version in VersionRepository(session).startable(tiny_base.digest)}
    assert "child" not in startable
    run_all(desk)
    with desk.services.database.read() as session:
        startable = {version.task for version in VersionRepository(session).startable(tiny_base.digest)}
    assert "child" in startable
    assert desk.submit(GRANDCHILD, "grandchild", init="child")


def test_what_cannot_be_rebuilt_is_named_and_stays(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    desk.learn(GONE, "gone", init="random")
    add_version(services, tiny_base, "imported", ("a", "b"), ("a", "b"), z=embedding_of(3), parent="gone@v1")
    desk.learn(CHILD, "child", init="gone")
    desk.learn(opinions(24, ("left", "right"), start=24), "child", init="random", new_labels=True)
    with services.database.write() as session:
        AliasRepository(session).move("child", "old", 1)
    done = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    assert done["cannot"] == [
        {"version": "imported@v1", "why": "no job of this service learned it, so its rows are unknown"},
        {"version": "child@v1", "why": "the labels of its task have changed"},
    ]
    assert done["rebuilding"] == []
    assert desk.version("imported").version == 1


def test_aliases_of_a_carried_version_name_again_what_it_was_carried_from(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    desk.learn(CHILD, "child", init="random")
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(services, tiny_base, job=tuner)
    first = desk.version("child@v1")
    z = unpack_embedding(services.read(first.artifact))
    changes: dict[str, Any] = {"kind": "carried", "hypernetwork_version": 2, "learned_under": 1, "parent": "child@v1"}
    carried = add_version(services, tiny_base, "child", first.labels, first.words, z=z, **changes)
    assert aliases(desk, "child") == {"latest": 2}
    done = delete_task(services, "gone", unlearning=True).to_document().to_json()
    assert [version["version"] for version in done["descendants"]["versions"]] == [carried.reference]
    assert done["unlearning"]["restored"] == [{"version": "child@v2", "to": "child@v1"}]
    assert aliases(desk, "child") == {"latest": 1}
    assert np.array_equal(unpack_embedding(services.read(desk.version("child").artifact)), z)
    with pytest.raises(NotFoundError):
        desk.version("child@v2")
    assert not services.artifacts.has(carried.artifact)


def test_each_alias_of_a_version_that_was_carried_twice_goes_to_the_nearest_one_without_the_task(
    desk: Desk, tiny_base: Base
) -> None:
    services = desk.services
    desk.learn(CHILD, "child", init="random")
    tuned_head(services, tiny_base, scale=1e-6)
    carry_task(services, "child")
    promote(services, "child@v2", "shop")
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(services, tiny_base, scale=1e-6, seed=1, job=tuner)
    carry_task(services, "child")
    promote(services, "child@v3", "canary")
    tuned_head(services, tiny_base, scale=1e-6, seed=2)
    carry_task(services, "child")
    assert aliases(desk, "child") == {"canary": 3, "latest": 4, "shop": 2}
    done = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    assert done["restored"] == [{"version": f"child@v{number}", "to": "child@v2"} for number in (3, 4)]
    assert (done["rebuilding"], done["cannot"]) == ([], [])
    assert aliases(desk, "child") == {"canary": 2, "latest": 2, "shop": 2}


def test_a_carried_version_is_rebuilt_by_the_same_job_however_often_it_is_asked_for(
    desk: Desk, tiny_base: Base
) -> None:
    services = desk.services
    desk.learn(GONE, "gone", init="random")
    desk.learn(CHILD, "child", init="gone")
    tuned_head(services, tiny_base, scale=1e-6)
    carry_task(services, "child")
    first = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    again = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    assert [rebuilt["versions"] for rebuilt in first["rebuilding"]] == [["child@v2"]]
    assert (again["rebuilding"], again["cannot"]) == (first["rebuilding"], [])
    cancel(services.database, first["rebuilding"][0]["job"])
    anew = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]
    assert [rebuilt["versions"] for rebuilt in anew["rebuilding"]] == [["child@v2"]]
    assert anew["rebuilding"] != first["rebuilding"]
    run_all(desk)
    assert [version.reference for version in desk.versions("child")] == ["child@v3"]


def test_asked_for_later_it_leaves_no_stage_that_holds_what_descends(desk: Desk) -> None:
    services = desk.services

    class Stop(Exception):  # noqa: N818
        """The worker turns to another job."""

    def hook(what: str, name: str) -> None:
        if (what, name) == ("finished", "train"):
            raise Stop

    desk.learn(GONE, "gone", init="random")
    desk.learn(CHILD, "child", init="gone")
    delete_task(services, "gone")
    desk.submit(GRANDCHILD, "grandchild", init="child")
    job = desk.claim()
    with pytest.raises(Stop):
        desk.run(job, HookedProgress(hook))
    delete_task(services, "gone", unlearning=True)
    with services.database.read() as session:
        assert JobRepository(session).get(job.id).state is JobState.QUEUED
        assert StageOutputRepository(session).of_task("grandchild") == []
    delete_task(services, "gone", unlearning=True)  # no news: nobody begins again
    with services.database.read() as session:
        assert JobRepository(session).get(job.id).attempt == job.attempt


def test_it_may_be_asked_for_later_and_again_and_a_rebuilding_that_failed_may_be_tried_again(desk: Desk) -> None:
    services = desk.services
    desk.learn(GONE, "gone", init="random")
    desk.learn(CHILD, "child", init="gone")
    delete_task(services, "gone")
    assert desk.version("child").parent == "gone@v1"
    with pytest.raises(NotFoundError):
        delete_task(services, "gone")
    first = delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]["rebuilding"]
    assert delete_task(services, "gone", unlearning=True).to_document().to_json()["unlearning"]["rebuilding"] == first
    job = first[0]["job"]
    cancel(services.database, job)
    retry(services.database, job)
    run_all(desk)
    assert desk.version("child").version == 2
    with pytest.raises(NotFoundError):
        delete_task(services, "gone", unlearning=True)  # nothing descends from it any more


def test_a_hypernetwork_that_was_tuned_beside_the_task_goes_with_it(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    desk.learn(GONE, "gone", init="random")
    tuner = desk.learn(CHILD, "child", init="random")["job"]
    tuned_head(services, tiny_base, job=tuner)
    done = delete_task(services, "gone", unlearning=True).to_document().to_json()
    assert done["descendants"]["hypernetworks"][0]["why"] == "protected its answers while it was tuned"
    assert done["unlearning"]["reverted"] == [{"base_digest": tiny_base.digest, "from": 2, "to": 1}]
    assert head_of(services, tiny_base) == 1
    with services.database.read() as session:
        assert BaseRepository(session).hypernetwork(tiny_base.digest, 2).artifact is None  # nothing needs it


def test_deleting_alone_changes_nothing_that_descends(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    tuner = desk.learn(GONE, "gone", init="random")["job"]
    tuned_head(services, tiny_base, job=tuner)
    desk.learn(CHILD, "child", init="gone")
    before, present = numbers(desk, "child"), desk.version("child")
    done = delete_task(services, "gone").to_document().to_json()
    assert done["unlearning"] is None
    assert [version["aliases"] for version in done["descendants"]["versions"]] == [["latest"]]
    assert (numbers(desk, "child"), desk.version("child")) == (before, present)
    assert head_of(services, tiny_base) == 2
    assert desk.learn(GRANDCHILD, "grandchild")["hypernetwork_version"] == 2  # rows that tuned the head are gone


def test_a_task_without_an_embedding_was_not_in_the_mean_also_after_it_was_deleted(desk: Desk) -> None:
    services = desk.services
    desk.learn(GONE, "gone", init="random")
    desk.learn(GONE, "never", method="linear")
    desk.learn(CHILD, "child", init="mean")
    assert delete_task(services, "never").descendants.versions == {}
    with pytest.raises(NotFoundError):
        delete_task(services, "never", unlearning=True)
    assert list(delete_task(services, "gone").descendants.versions) == ["child@v1"]
    assert list(delete_task(services, "gone", unlearning=True).descendants.versions) == ["child@v1"]


def test_the_mean_before_the_first_embedding_of_a_task_does_not_hold_it(desk: Desk) -> None:
    desk.learn(GONE, "gone", method="linear")
    desk.learn(CHILD, "before", init="mean")
    desk.learn(GONE, "gone", init="random")
    desk.learn(GRANDCHILD, "after", init="mean")
    assert list(delete_task(desk.services, "gone").descendants.versions) == ["after@v1"]
    assert list(delete_task(desk.services, "gone", unlearning=True).descendants.versions) == ["after@v1"]


def test_a_task_with_missing_versions_may_have_had_an_embedding(desk: Desk) -> None:
    desk.learn(OTHER, "other", init="random")
    desk.learn(GONE, "gone", init="other")
    desk.learn(CHILD, "child", init="mean")
    desk.learn(GONE, "gone", method="linear")
    delete_task(desk.services, "other", unlearning=True)  # gone@v1 is removed, no alias names it
    assert [version.version for version in desk.versions("gone")] == [2]
    assert "child@v1" in delete_task(desk.services, "gone", dry_run=True).descendants.versions
