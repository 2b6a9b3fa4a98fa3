"""Tasks carried to a later head: what moves and by whose evidence, what stays, and that nothing is carried twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.opposed import opposed, rows_as_seen
from support.published import add_version, embedding_of
from support.real_jobs import Desk, opinions
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.domain.names import LATEST
from onboard.domain.task import AliasMove, EmbeddingVersion
from onboard.errors import DamagedError, InputError, NotFoundError, UnavailableError
from onboard.guard import TaskVerdict
from onboard.hypernetworks.register import register_base
from onboard.model.protected import Protection
from onboard.operations import access
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.serving import Predictor
from onboard.storage.embedding import read_facts, unpack_embedding
from onboard.versions.carry import Carried, carry, carry_some, carry_task, clearing, publishing, tasks
from onboard.versions.carry.remeasuring import TAKEN_OVER
from onboard.versions.compare import compare
from onboard.versions.delete import delete_task
from onboard.versions.promote import promote, rollback

HARMLESS, HARMFUL = 1e-4, 3.0  # steps of the head's weights, relative to their norm
LABELS = ("sad", "glad"), ("bad", "good")
TEXTS = ("good film", "bad plot", "the film was great")


def versions(services: Services, task: str) -> Sequence[EmbeddingVersion]:
    with services.database.read() as session:
        return VersionRepository(session).list(task=task)


def latest(services: Services, task: str) -> EmbeddingVersion:
    with services.database.read() as session:
        return VersionRepository(session).resolve(task)


def moves(services: Services, task: str) -> Sequence[AliasMove]:
    with services.database.read() as session:
        return AliasRepository(session).history(task, LATEST)


def everything(services: Services) -> Any:
    """All versions, and all moves of `latest`."""
    with services.database.read() as session:
        versions = VersionRepository(session).list()
    return versions, {version.task: moves(services, version.task) for version in versions}


def refused(done: Carried) -> str:
    """Why the one task was refused."""
    (outcome,) = done.outcomes
    assert (outcome.cleared, outcome.version) == (False, None)
    return outcome.reason


def names(done: Carried) -> list[str]:
    return [outcome.present.task for outcome in done.outcomes]


@pytest.fixture
def mood(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    """mood@v1, whose dataset is not here."""
    return add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(3))


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that lets everything through."""

    def passed(engine: Any, candidate: Any, protection: Protection, *more: Any) -> list[TaskVerdict]:
        return [TaskVerdict(task.name, "pass", "divergence", 0.0, 0.0, 0.0, 96, 0, 0.01) for task in protection.tasks]

    monkeypatch.setattr(clearing, "clear", passed)


def test_a_task_that_loses_nothing_goes_on_under_the_head_as_a_new_version(
    tiny_services: Services, tiny_base: Base, database: Database
) -> None:
    services = replace(tiny_services, database=database)
    register_base(services, tiny_base)
    before = add_version(services, tiny_base, "mood", *LABELS, z=embedding_of(3))
    inputs = [{"task": "mood", "ref": "v1", "text": text} for text in TEXTS]
    answered = Predictor(services).predict(inputs)
    head = tuned_head(services, tiny_base, HARMLESS)

    (outcome,) = carry_task(services, "mood").outcomes

    after = latest(services, "mood")
    assert (outcome.cleared, outcome.version, after.version, after.kind) == (True, 2, 2, "carried")
    assert (after.hypernetwork_version, after.learned_under, after.origin) == (head.version, 1, 1)
    assert (after.parent, after.parents, after.job) == ("mood@v1", ("mood@v1",), None)
    assert (after.embedding_digest, after.words) == (before.embedding_digest, before.words)
    content = services.read(after.artifact)
    np.testing.assert_array_equal(unpack_embedding(content), embedding_of(3))
    facts = read_facts(content)
    assert (facts["version"], facts["hypernetwork"], facts["init"]) == (2, head.digest, "mood@v1")
    assert versions(services, "mood")[0] == before
    assert Predictor(services).predict(inputs) == answered
    by_the_head = Predictor(services).predict([{**asked, "ref": "v2"} for asked in inputs])
    assert [prediction.version for prediction in by_the_head] == [2] * 3
    was, now = ([prediction.probability for prediction in answers] for answers in (answered, by_the_head))
    assert now != was
    assert now == pytest.approx(was, abs=0.01)


def test_a_carried_version_is_told_and_written_down(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    from onboard.registry.outbox import OutboxRepository

    monkeypatch.setattr(OutboxRepository, "add", lambda self, kind, data: events.append((kind, data)))
    tuned_head(tiny_services, tiny_base, HARMLESS)
    carry_task(tiny_services, "mood")
    (published, moved), last = events, moves(tiny_services, "mood")[0]
    assert (published[0], published[1]["version"], published[1]["hypernetwork_version"]) == ("version.published", 2, 2)
    assert (moved[0], moved[1]["previous"], moved[1]["version"]) == ("alias.moved", 1, 2)
    assert (last.reason, bool(last.actor)) == ("carried", True)
    (line,) = [
        change for change in access.changes(tiny_services.database, 9)["changes"] if change["action"] == "task.carry"
    ]
    assert (line["subject"], line["facts"]) == (
        "mood", {"version": 2, "previous": 1, "hypernetwork_version": 2, "learned_under": 1},
    )  # fmt: skip


def test_carrying_again_changes_nothing(tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion) -> None:
    assert carry_task(tiny_services, "mood").outcomes == ()  # it is at the head
    tuned_head(tiny_services, tiny_base, HARMLESS)
    assert names(carry(tiny_services, None)) == ["mood", "sst2", "stsb"]
    before = everything(tiny_services)
    assert carry_task(tiny_services, "mood").outcomes == carry(tiny_services, None).outcomes == ()
    assert everything(tiny_services) == before


def test_what_the_guard_refuses_stays_as_it_is_and_is_named_with_its_reason(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    tuned_head(tiny_services, tiny_base, HARMFUL)
    before = everything(tiny_services)
    done = carry_task(tiny_services, "mood")
    assert "guard refuses it" in refused(done)
    (document,) = done.to_json()["refused"]
    assert (document["task"], document["from"], document["version"]) == ("mood", 1, None)
    assert (document["hypernetwork_from"], document["hypernetwork_version"]) == (1, 2)
    assert (document["guard"]["verdict"], document["guard"]["task"]) == ("fail", "mood@v1")
    assert everything(tiny_services) == before


def test_small_losses_do_not_add_up_over_many_heads(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    """Each head is a small step from the last one, in the same direction; from the origin they lead far away."""
    steps, cleared = 0, True
    while cleared:
        assert steps < 40
        tuned_head(tiny_services, tiny_base, 0.05, seed=1)
        cleared = carry_task(tiny_services, "mood").outcomes[0].cleared
        steps += 1
    assert steps > 2
    last = latest(tiny_services, "mood")
    assert (last.version, last.hypernetwork_version, last.origin) == (steps, steps, 1)
    add_version(tiny_services, tiny_base, "fresh", *LABELS, z=embedding_of(3), hypernetwork_version=steps)
    (alone,) = carry_task(tiny_services, "fresh").outcomes
    assert alone.cleared  # the same numbers, had they been learned under the last head


def test_metrics_are_measured_again_on_the_tasks_own_held_out_rows(desk: Desk, tiny_base: Base, cleared: None) -> None:
    services = desk.services
    desk.learn(opinions(100), test=opinions(40, start=200), metric="mcc")
    tuned_head(services, tiny_base, 0)
    carry_task(services, "mood")
    same, before = latest(services, "mood"), desk.version("mood@v1")
    assert {name: metric["n"] for name, metric in same.metrics["test"].items()} == {
        "accuracy": 40, "macro_f1": 40, "mcc": 40, "log_loss": 40, "calibration_error": 40,
    }  # fmt: skip
    assert same.metrics["validation"]["accuracy"]["n"] == 25
    for split, metrics in before.metrics.items():  # of the same weights
        now = {name: metric["value"] for name, metric in same.metrics[split].items()}
        assert now == pytest.approx({name: metric["value"] for name, metric in metrics.items()}, abs=1e-5)

    tuned_head(services, tiny_base, 0.2, seed=1)
    (outcome,) = carry_task(services, "mood").outcomes
    after = latest(services, "mood")
    assert (after.version, after.parent, after.origin) == (3, "mood@v2", 1)
    assert after.metrics == outcome.metrics != before.metrics
    side_by_side = compare(services, "mood@v1", "mood@v3").measured
    assert side_by_side is not None
    assert side_by_side.comparison.rows == 65
    assert outcome.comparison is not None
    assert outcome.comparison.rows == 65
    assert side_by_side.comparison.increase == pytest.approx(outcome.comparison.increase, abs=1e-5)
    assert abs(side_by_side.comparison.increase or 0.0) > 1e-4
    for name in ("accuracy", "log_loss"):
        by_split = [after.metrics[split][name] for split in ("test", "validation")]
        together = sum(metric["n"] * metric["value"] for metric in by_split) / 65
        assert side_by_side.metrics[1][name].value == pytest.approx(together, abs=1e-5)


def test_metrics_without_rows_are_taken_over_with_a_note_that_says_from_where(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    desk.learn(opinions(40), test=opinions(20, start=200))
    before = desk.version("mood@v1").metrics
    assert before["validation"]["accuracy"]["estimate"] == "cross-validated"
    for _ in range(2):
        tuned_head(services, tiny_base, 0)
        carry_task(services, "mood")
    version = latest(services, "mood")
    assert version.version == 3
    assert version.metrics["test"] == before["test"]
    for name, metric in version.metrics["validation"].items():
        said = metric.pop("note")
        assert said.endswith(f"{TAKEN_OVER} mood@v1, measured under hypernetwork version 1")
        assert said.count(TAKEN_OVER) == 1
        assert metric == {key: value for key, value in before["validation"][name].items() if key != "note"}


def test_a_regression_is_carried_and_measured_in_its_own_numbers(desk: Desk, tiny_base: Base) -> None:
    rows = [
        {"text": f"{opinion['text']} {number}", "label": number % 11 / 2} for number, opinion in enumerate(opinions(60))
    ]
    desk.learn(rows[:40], "stars", test=rows[40:], options={"kind": "regression"})
    tuned_head(desk.services, tiny_base, 0)
    (outcome,) = carry_task(desk.services, "stars").outcomes
    assert outcome.cleared
    assert latest(desk.services, "stars").metrics["test"] == desk.version("stars@v1").metrics["test"]
    assert outcome.comparison is not None
    assert (outcome.comparison.loss, outcome.comparison.increase) == ("squared_error", 0.0)


def test_latest_does_not_move_to_what_is_significantly_worse_though_the_guard_saw_nothing(
    desk: Desk, tiny_base: Base, trained_as: Any, cleared: None
) -> None:
    good, _, _ = opposed(tiny_base)
    trained_as(good)
    desk.learn(opinions(30), test=rows_as_seen(tiny_base, good, 80), init="random")
    tuned_head(desk.services, tiny_base, HARMFUL)
    before = everything(desk.services)
    done = carry_task(desk.services, "mood")
    assert "significantly worse than the present version by its answers on 80 shared held-out rows" in refused(done)
    assert done.to_json()["refused"][0]["comparison"]["verdict"] == "worse"
    assert everything(desk.services) == before


def test_rows_that_the_head_was_tuned_on_are_no_evidence(desk: Desk, tiny_base: Base) -> None:
    test = opinions(40, start=200)
    desk.learn(opinions(40), test=test)
    desk.learn([*test[:30], *opinions(30, start=400)], "tuning")
    tuned_head(desk.services, tiny_base, HARMLESS, job=desk.version("tuning@v1").job)
    (outcome,) = carry_task(desk.services, "mood").outcomes
    assert outcome.comparison is not None
    assert outcome.comparison.rows == 10
    assert latest(desk.services, "mood").metrics["test"]["accuracy"]["n"] == 10


@pytest.mark.parametrize("damage", ["gone", "other"])
@pytest.mark.parametrize("what", ["dataset", "embedding"])
def test_a_task_whose_bytes_cannot_be_read_is_refused_and_the_others_are_carried(
    desk: Desk, tiny_base: Base, what: str, damage: str
) -> None:
    services = desk.services
    desk.learn(opinions(100))
    version = desk.version("mood@v1")
    with services.database.read() as session:
        snapshot = SnapshotRepository(session).get(version.dataset_digest).artifact
    digest = {"dataset": snapshot, "embedding": version.artifact}[what]
    tuned_head(services, tiny_base, HARMLESS)
    services.artifacts.delete(digest)
    if damage == "other":
        services.artifacts._files.write(f"sha256/{digest[7:9]}/{digest[7:]}", b"other")
    outcomes = {outcome.present.task: outcome for outcome in carry(services, None).outcomes}
    assert {name: outcome.cleared for name, outcome in outcomes.items()} == {"mood": False, "sst2": True, "stsb": True}
    assert {"gone": "is gone", "other": "digest"}[damage] in outcomes["mood"].reason
    assert str(services.settings.resolved_home) not in outcomes["mood"].reason
    assert outcomes["mood"].verdict is not None
    assert outcomes["mood"].verdict.verdict == "not enough evidence"
    assert len(versions(services, "mood")) == 1


def test_a_head_whose_bytes_are_gone_is_an_error(tiny_services: Services, tiny_base: Base) -> None:
    head = tuned_head(tiny_services, tiny_base, 0.01, seed=77)
    tiny_services.artifacts.delete(str(head.artifact))
    from onboard.hypernetworks import engines as heads

    heads.loaded_hypernetworks.clear()  # another process has it in no memory
    with pytest.raises(DamagedError, match="is not in"):
        carry_task(tiny_services, "sst2")


def deleted(services: Services, base: Base) -> None:
    delete_task(services, "mood")


def moved(services: Services, base: Base) -> None:
    add_version(services, base, "mood", *LABELS, z=embedding_of(9), hypernetwork_version=2)


def tuned(services: Services, base: Base) -> None:
    tuned_head(services, base, HARMLESS)


@pytest.mark.parametrize("change", [deleted, moved, tuned])
def test_what_changes_while_it_is_judged_is_not_overwritten(
    tiny_services: Services,
    tiny_base: Base,
    mood: EmbeddingVersion,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Services, Base], None],
) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    after: list[Any] = []

    def meanwhile(services: Services, outcome: Any) -> Any:
        change(services, tiny_base)
        after.append(everything(services))
        return publishing.publish(services, outcome)

    monkeypatch.setattr(tasks, "publish", meanwhile)
    said = {"deleted": "There is no", "moved": "mood@latest is v2 now", "tuned": "at version 3 now"}
    assert said[change.__name__] in refused(carry_task(tiny_services, "mood"))
    assert [everything(tiny_services)] == after


def test_a_version_number_that_a_job_takes_meanwhile_is_not_given_twice(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    store, taken = Services.store, list[int]()

    def stored(self: Services, data: bytes, kind: str) -> str:
        if not taken:
            with self.database.write() as session:
                task = TaskRepository(session).get("mood")
                taken.append(VersionRepository(session).add(mood, task, move_latest=False).version)
        return store(self, data, kind)

    monkeypatch.setattr(Services, "store", stored)
    (outcome,) = carry_task(tiny_services, "mood").outcomes
    assert (taken, outcome.version) == ([2], 3)
    assert read_facts(tiny_services.read(latest(tiny_services, "mood").artifact))["version"] == 3


def test_latest_that_was_taken_back_goes_to_the_same_carried_version_again(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    carry_task(tiny_services, "mood")
    assert rollback(tiny_services, "mood", LATEST).version == 1
    (outcome,) = carry_task(tiny_services, "mood").outcomes
    assert (outcome.version, len(versions(tiny_services, "mood"))) == (2, 2)
    assert latest(tiny_services, "mood").version == 2


def test_after_a_revert_a_task_goes_back_to_the_version_that_it_was_carried_from(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    carry_task(tiny_services, "mood")
    with tiny_services.database.write() as session:
        BaseRepository(session).set_head(tiny_base.digest, 1, expected_head=2)
    (outcome,) = carry_task(tiny_services, "mood").outcomes
    assert (outcome.version, latest(tiny_services, "mood")) == (1, mood)


def test_only_latest_moves_and_other_names_stay(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    promote(tiny_services, "mood@v1", "production")
    tuned_head(tiny_services, tiny_base, HARMLESS)
    carry_task(tiny_services, "mood")
    with tiny_services.database.read() as session:
        assert AliasRepository(session).list("mood") == {"latest": 2, "production": 1}


def test_a_dry_run_judges_and_changes_nothing(tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    before = everything(tiny_services)
    dry = carry(tiny_services, None, dry_run=True)
    assert (names(dry), dry.dry_run) == (["mood", "sst2", "stsb"], True)
    assert [(outcome.cleared, outcome.version) for outcome in dry.outcomes] == [(True, None)] * 3
    assert everything(tiny_services) == before
    really = carry(tiny_services, None)
    assert [outcome.metrics for outcome in really.outcomes] == [outcome.metrics for outcome in dry.outcomes]


def test_all_tasks_are_carried_a_few_at_a_time_by_name(
    tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        add_version(tiny_services, tiny_base, f"mood-{number}", *LABELS, z=embedding_of(number))
    tuned_head(tiny_services, tiny_base, HARMLESS)
    first = carry_some(tiny_services, most=4, dry_run=True)
    assert (names(first), first.next) == ([f"mood-{number}" for number in range(4)], "mood-3")
    rest = carry_some(tiny_services, first.next, most=4, dry_run=True)
    assert (names(rest), rest.next) == (["sst2", "stsb"], None)
    pages: list[Carried] = []
    monkeypatch.setattr(tasks, "MOST_TASKS", 2)
    done = carry(tiny_services, None, on_page=pages.append)
    assert [names(page) for page in pages] == [["mood-0", "mood-1"], ["mood-2", "mood-3"], ["sst2", "stsb"]]
    assert names(done) == [*names(first), "sst2", "stsb"]
    assert {outcome.version for outcome in done.outcomes} == {2}


def test_each_task_goes_to_the_head_of_its_own_base_and_one_that_is_not_here_is_named(
    tiny_services: Services, tiny_base: Base, other_base: Base, mood: EmbeddingVersion, tmp_path: Any
) -> None:
    register_base(tiny_services, other_base)
    add_version(tiny_services, other_base, "weather", *LABELS, z=embedding_of(4))
    tuned_head(tiny_services, tiny_base, HARMLESS)
    tuned_head(tiny_services, tiny_base, HARMLESS)
    tuned_head(tiny_services, other_base, HARMLESS)
    outcomes = {outcome.present.task: outcome for outcome in carry(tiny_services, None).outcomes}
    own = {name: (outcome.cleared, outcome.head) for name, outcome in outcomes.items() if name in ("mood", "weather")}
    assert own == {
        "mood": (True, 3), "weather": (True, 2),
    }  # fmt: skip
    assert latest(tiny_services, "weather").base_digest == other_base.digest


def test_a_task_of_a_base_that_is_not_on_this_machine_is_refused_by_name(
    tiny_services: Services, tiny_base: Base, other_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    register_base(tiny_services, other_base)
    add_version(tiny_services, other_base, "weather", *LABELS, z=embedding_of(4))
    tuned_head(tiny_services, other_base, HARMLESS)
    monkeypatch.setattr("onboard.hypernetworks.files._on_this_machine", lambda services, location: iter([tiny_base]))
    assert "belongs to base" in refused(carry_task(tiny_services, "weather"))


def test_one_process_carries_one_at_a_time(tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    with tasks.TURN, pytest.raises(UnavailableError, match="being carried"):
        carry_task(tiny_services, "mood")
    assert carry_task(tiny_services, "mood").outcomes[0].cleared


def test_who_is_asked_not_to_read_much_refuses_a_large_dataset(
    desk: Desk, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.learn(opinions(100))
    tuned_head(desk.services, tiny_base, HARMLESS)
    monkeypatch.setattr("onboard.versions.compare.MOST_ROWS_READ", 99)
    assert "too large to be read" in refused(carry_task(desk.services, "mood", bounded=True))
    assert carry_task(desk.services, "mood").outcomes[0].cleared


def test_there_has_to_be_such_a_task(tiny_services: Services) -> None:
    with pytest.raises(NotFoundError):
        carry_task(tiny_services, "nothing")
    with pytest.raises(InputError):
        carry_task(tiny_services, "sst2@v1")
