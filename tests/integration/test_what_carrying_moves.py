"""Tasks carried to a later head: what moves, what stays, and that nothing is carried twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.carried import HARMLESS, LABELS, everything, latest, moves, names, refused, versions
from support.published import add_version, embedding_of
from support.refusals import refused as error_of
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.domain.names import LATEST
from onboard.domain.task import EmbeddingVersion
from onboard.errors import InputError, NotFoundError
from onboard.hypernetworks.register import register_base
from onboard.operations import access
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository
from onboard.serving import Predictor
from onboard.storage.embedding import read_facts, unpack_embedding
from onboard.versions.carry import Carried, carry, carry_some, carry_task, publishing, tasks
from onboard.versions.delete import delete_task
from onboard.versions.promote import promote, rollback

TEXTS = ("good film", "bad plot", "the film was great")


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
    said = {"deleted": "mood@latest does not exist", "moved": "mood@latest is now v2", "tuned": "now at version 3"}
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
    with tasks.TURN, error_of("carrying-busy"):
        carry_task(tiny_services, "mood")
    assert carry_task(tiny_services, "mood").outcomes[0].cleared


def test_there_has_to_be_such_a_task(tiny_services: Services) -> None:
    with pytest.raises(NotFoundError):
        carry_task(tiny_services, "nothing")
    with pytest.raises(InputError):
        carry_task(tiny_services, "sst2@v1")
