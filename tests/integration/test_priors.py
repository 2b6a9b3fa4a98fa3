"""The prior of a base: fitted to lessons of tasks, pinned by versions, exactly forgotten with a deleted task."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update
from support.command_line import CommandLine
from support.real_jobs import Desk, HookedProgress, opinions
from support.real_services import wait_until
from support.refusals import refused

from onboard.bases import LESSONS, Base, find_base
from onboard.bases.lessons import pack_lessons, read_lessons
from onboard.bases.load import load_engine
from onboard.contract.versions import VersionDocument
from onboard.domain.job import JobSpec, JobState
from onboard.domain.label_change import LabelChange
from onboard.domain.prior import PriorVersion
from onboard.errors import FencedError, NotFoundError, UnavailableError
from onboard.hypernetworks.prior import refit as refits
from onboard.hypernetworks.prior.fitting import fitted, forget_fitted
from onboard.hypernetworks.prior.lessons import forget_read, present_lessons, unusable_lessons
from onboard.hypernetworks.prior.line import check_priors, list_priors, show_prior
from onboard.hypernetworks.prior.refit import refit
from onboard.jobs.labels import change_labels
from onboard.operations.gc import collect_garbage
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.statistics.prior import Lesson
from onboard.storage.artifacts import ArtifactStore
from onboard.storage.lesson import pack_lesson, unpack_lesson
from onboard.testing import MemoryDoorbell
from onboard.versions.delete import delete_task
from workers.refitting import Refitting


def rows_of(task: str, labels: tuple[str, str] = ("good", "bad"), rows: int = 12) -> list[dict[str, Any]]:
    """Rows that no other task has."""
    return [{**row, "text": f"{row['text']} {task}"} for row in opinions(rows, labels)]


def learned(desk: Desk, task: str, labels: tuple[str, str] = ("good", "bad"), **spec: Any) -> dict[str, Any]:
    """The result document of a task; `linear` is the quickest method."""
    return desk.learn(rows_of(task, labels), task, **{"method": "linear", **spec})


def heads(services: Services, base: Base) -> dict[str, PriorVersion]:
    with services.database.read() as session:
        return {
            version.form: version for version in PriorRepository(session).list(base.digest) if not version.retired_at
        }


def lessons_in(services: Services, prior: PriorVersion) -> list[str]:
    with services.database.read() as session:
        return [taught.reference for taught in PriorRepository(session).lessons(prior)]


@pytest.fixture
def taught(desk: Desk, tiny_base: Base) -> PriorVersion:
    """Three tasks are published, and the prior is fitted to them."""
    for task in ("first", "second", "third"):
        learned(desk, task)
    (version,) = refit(desk.services, tiny_base, "a test")
    return version


def test_every_published_version_of_classes_teaches_and_a_regression_does_not(desk: Desk, tiny_base: Base) -> None:
    result = learned(desk, "first")
    version = desk.version("first")
    assert result["prior"] is None
    assert version.lesson is not None
    assert "lesson" not in VersionDocument.of(version).to_json()
    lesson = unpack_lesson(desk.services.read(version.lesson), tiny_base.digest)
    assert (lesson.rows, len(lesson.names), lesson.is_finite) == (12, 2, True)
    numbers = [{"text": row["text"], "label": 0.5 + index / 7} for index, row in enumerate(opinions(24))]
    desk.learn(numbers, "number", options={"kind": "regression"}, method="linear")
    assert desk.version("number").lesson is None


def test_it_is_fitted_to_what_latest_names_and_again_only_when_that_changes(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    services = desk.services
    assert (taught.form, taught.version, taught.lessons) == ("single", 1, 3)
    assert lessons_in(services, taught) == ["first@v1", "second@v1", "third@v1"]
    assert refit(services, tiny_base, "nothing changed") == []
    desk.learn(rows_of("more", rows=16), "second", method="linear")
    (again,) = refit(services, tiny_base, "another version")
    assert desk.version("second").version == 2
    assert (again.version, again.parent) == (2, 1)
    assert lessons_in(services, again) == ["first@v1", "second@v2", "third@v1"]
    assert lessons_in(services, taught) == ["first@v1", "second@v1", "third@v1"]  # what it was fitted to stays
    document = list_priors(services.database, tiny_base.digest)
    assert [(line.version, line.head) for line in document.priors] == [(1, False), (2, True)]
    assert show_prior(services.database, tiny_base.digest, "single", None).version == 2
    with refused("unknown-prior-version", version=7):
        show_prior(services.database, tiny_base.digest, "single", 7)
    with refused("prior-not-fitted", form="pairs"):
        show_prior(services.database, tiny_base.digest, "pairs", None)


def test_a_new_task_is_drawn_towards_it_and_names_what_contributed(desk: Desk, taught: PriorVersion) -> None:
    result = learned(desk, "fourth")
    facts, version = result["prior"], desk.version("fourth")
    assert (facts["version"], facts["digest"], facts["lessons"]) == (1, taught.digest, 3)
    assert facts["left_out"] == []
    assert facts["rows"] == 12
    assert {"with_prior", "without"} <= facts.keys()
    assert facts["scale"] > 0
    assert {part["task"] for part in facts["tasks"]} == {"first", "second", "third"}
    assert (version.prior_version, version.prior_digest) == (1, taught.digest)
    helped = list_priors(desk.services.database, version.base_digest).helped
    assert [(line.version, line.prior.scale) for line in helped] == [("fourth@v1", facts["scale"])]


def test_codes_as_labels_use_the_prior_only_if_rows_ask_for_it(desk: Desk, taught: PriorVersion) -> None:
    facts = learned(desk, "coded", ("q3", "x19"))["prior"]
    assert (facts["scale"], facts["tasks"], facts["with_prior"]) == (0.0, [], facts["without"])
    assert desk.version("coded").prior_version is None


def test_what_knows_rows_of_the_task_has_no_part_in_what_draws_its_readout(desk: Desk, taught: PriorVersion) -> None:
    desk.learn(rows_of("first", rows=16), "copy", method="linear")  # rows of `first`, and some more
    desk.learn(rows_of("second", rows=20), "second", method="linear")
    results = {job.spec.task: job.result for job in desk.jobs() if job.result and job.result["prior"]}
    assert results["copy"]["prior"]["left_out"] == ["first"]
    assert results["second"]["prior"]["left_out"] == ["second"]
    assert results["second"]["prior"]["lessons"] == 2
    assert not {"second"} & {part["task"] for part in results["second"]["prior"]["tasks"]}


def test_without_a_readout_nothing_is_drawn(desk: Desk, taught: PriorVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobSpec, "readout", "never")
    result = desk.learn(rows_of("fourth"), "fourth")
    version = desk.version("fourth")
    assert result["prior"] is None
    assert version.prior_version is None
    assert version.lesson is not None  # and yet it teaches


def test_a_deleted_task_is_forgotten_as_if_it_had_never_taught(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    services, gone = desk.services, desk.version("second").lesson
    before = learned(desk, "fourth")
    assert desk.version("fourth").prior_version == 1
    done = delete_task(services, "second").to_document().to_json()
    assert [line["version"] for line in done["descendants"]["versions"]] == ["fourth@v1"]
    head = heads(services, tiny_base)["single"]
    assert (head.version, head.reason) == (2, "the task second was deleted")
    assert lessons_in(services, head) == ["first@v1", "fourth@v1", "third@v1"]
    with services.database.read() as session:
        never = present_lessons(session, tiny_base)["single"]
    fresh = fitted(services, tiny_base, "single", never)
    assert fresh is not None
    assert check_priors(services, tiny_base)[0]["same"]
    assert {lesson.task for lesson in never} == {"first", "third", "fourth"}
    assert desk.version("fourth").prior_version == 1  # what is published stays as it was made
    assert before["prior"]["version"] == 1
    with services.database.read() as session:
        assert gone is not None
        assert ArtifactRepository(session).users(gone) == []
    with pytest.raises(NotFoundError):
        services.artifacts.get(gone)


def test_unlearning_rebuilds_what_was_drawn_towards_a_prior_that_knew_the_task(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    learned(desk, "fourth")
    done = delete_task(desk.services, "second", unlearning=True).to_document().to_json()
    (rebuilding,) = done["unlearning"]["rebuilding"]
    assert rebuilding["versions"] == ["fourth@v1"]
    assert "prior" in done["descendants"]["versions"][0]["why"]
    desk.run(desk.claim())
    version = desk.version("fourth")
    assert (version.version, version.prior_version) == (2, 2)
    with desk.services.database.read() as session:
        assert "second" not in [taught.task for taught in PriorRepository(session).lessons(
            PriorRepository(session).get(tiny_base.digest, "single", 2)
        )]  # fmt: skip
    facts = desk.job(rebuilding["job"]).result["prior"]  # type: ignore[index]  # it has ended
    assert facts["left_out"] == ["fourth"]
    assert {part["task"] for part in facts["tasks"]} == {"first", "third"}


def test_versions_whose_prior_left_the_task_out_do_not_descend(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    desk.learn(rows_of("second", rows=16), "copy", method="linear")  # rows of `second`, and some more
    change_labels(desk.services, MemoryDoorbell(), "copy", LabelChange("rename", ("good",), "fine"))
    learned(desk, "fourth")
    assert (desk.version("copy@v1").prior_version, desk.version("copy@v2").prior_version) == (1, 1)
    descendants = delete_task(desk.services, "second", dry_run=True).descendants
    assert list(descendants.versions) == ["fourth@v1"]
    descendants = delete_task(desk.services, "first", dry_run=True).descendants
    assert set(descendants.versions) == {"copy@v1", "copy@v2", "fourth@v1"}


def test_a_job_in_flight_begins_again_with_a_prior_without_the_deleted_task(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    services = desk.services
    desk.submit(rows_of("fourth"), "fourth", method="linear")
    job = desk.claim()

    def delete_once(what: str, name: str) -> None:
        if (what, name) == ("finished", "train"):
            delete_task(services, "second")

    with pytest.raises(FencedError):
        desk.run(job, HookedProgress(delete_once))
    desk.let_be_due(job.id)
    done = desk.run(desk.claim())
    assert done.state is JobState.SUCCEEDED
    assert desk.version("fourth").prior_version == 2
    assert {part["task"] for part in (done.result or {})["prior"]["tasks"]} == {"first", "third"}


def test_of_two_refits_at_once_one_wins_and_both_come_to_the_same(
    desk: Desk, tiny_base: Base, taught: PriorVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = desk.services
    learned(desk, "fourth")
    calm, times = refits.fitted, []

    def disturbed(*given: Any) -> Any:
        prior = calm(*given)
        if not times:
            times.append(1)
            refit(services, tiny_base, "the quicker one")
        return prior

    monkeypatch.setattr(refits, "fitted", disturbed)
    assert refit(services, tiny_base, "the slower one") == []
    assert [(line.version, line.reason) for line in heads(services, tiny_base).values()] == [(2, "the quicker one")]
    with services.database.write() as session, refused("prior-refitted-meanwhile"):
        PriorRepository(session).advance(replace(taught, version=0), [], expected=1)


def test_a_lesson_with_numbers_that_are_none_is_left_out_and_named(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    services, version = desk.services, desk.version("third")
    assert version.lesson is not None
    lesson = unpack_lesson(services.read(version.lesson), tiny_base.digest)
    broken = replace(lesson, weights=np.full_like(lesson.weights, np.nan))
    digest = services.store(pack_lesson(broken, tiny_base.digest), "lesson")
    with services.database.write() as session:
        session.execute(update(EmbeddingVersionRow).where(EmbeddingVersionRow.task == "third").values(lesson=digest))
    (head,) = refit(services, tiny_base, "a test")
    assert (head.left_out, head.lessons) == (("third",), 2)
    assert check_priors(services, tiny_base)[0]["left_out"] == ["third"]


def remove_lesson(desk: Desk, task: str) -> None:
    lesson = desk.version(task).lesson
    assert lesson is not None
    desk.services.artifacts.delete(lesson)


def replace_lesson(desk: Desk, task: str) -> None:
    """Put the lesson of another base in its place."""
    lesson = desk.version(task).lesson
    assert lesson is not None
    read = unpack_lesson(desk.services.read(lesson), desk.version(task).base_digest)
    digest = desk.services.store(pack_lesson(read, "sha256:" + "0" * 64), "lesson")
    with desk.services.database.write() as session:
        session.execute(update(EmbeddingVersionRow).where(EmbeddingVersionRow.task == task).values(lesson=digest))


def forget() -> None:
    """As in a new process."""
    forget_fitted()
    forget_read()


@pytest.mark.parametrize("spoil", [remove_lesson, replace_lesson])
def test_a_lesson_that_cannot_be_read_costs_only_its_own_task(
    desk: Desk, tiny_base: Base, taught: PriorVersion, command_line: CommandLine, spoil: Callable[[Desk, str], None]
) -> None:
    spoil(desk, "third")
    forget()
    learned(desk, "fourth")
    (head,) = refit(desk.services, tiny_base, "a test")
    assert (head.left_out, head.lessons) == (("third",), 3)
    assert refit(desk.services, tiny_base, "nothing changed") == []
    command_line.at_home(desk.services.settings)
    failing = command_line("doctor", "--json").check("prior")
    assert (failing["ok"], "third" in failing["found"]) == (False, True)
    (listed,) = [line for line in command_line("prior", "list", "--json").document["priors"] if line["head"]]
    assert listed["left_out"] == ["third"]
    shown = command_line("prior", "show").out
    assert "lessons of 3 tasks" in shown  # as many as the list has
    assert "third@v1" not in shown
    assert "third" in shown


def test_a_job_goes_on_without_a_lesson_that_is_missing_since_the_fit(desk: Desk, taught: PriorVersion) -> None:
    remove_lesson(desk, "third")
    forget()
    facts = learned(desk, "fourth")["prior"]
    assert (facts["version"], facts["lessons"]) == (1, 2)
    assert {part["task"] for part in facts["tasks"]} == {"first", "second"}


def test_a_lesson_that_is_restored_teaches_again(desk: Desk, tiny_base: Base, taught: PriorVersion) -> None:
    lesson = desk.version("third").lesson
    assert lesson is not None
    content = desk.services.read(lesson)
    remove_lesson(desk, "third")
    forget()
    (without,) = refit(desk.services, tiny_base, "it is missing")
    assert refit(desk.services, tiny_base, "nothing changed") == []
    desk.services.store(content, "lesson")
    (again,) = refit(desk.services, tiny_base, "it is restored")
    assert (without.left_out, again.left_out) == (("third",), ())
    assert again.fitted == taught.fitted != without.fitted
    assert again.digest == taught.digest != without.digest


def test_without_any_usable_lesson_there_is_no_prior(desk: Desk, tiny_base: Base, taught: PriorVersion) -> None:
    for task in ("first", "second", "third"):
        remove_lesson(desk, task)
    forget()
    assert refit(desk.services, tiny_base, "all are missing") == []
    assert heads(desk.services, tiny_base) == {}
    assert refit(desk.services, tiny_base, "still") == []
    assert unusable_lessons(desk.services, tiny_base) == ["first", "second", "third"]
    assert learned(desk, "fourth")["prior"] is None


def test_a_store_that_cannot_be_reached_leaves_nothing_out(
    desk: Desk, tiny_base: Base, taught: PriorVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(desk, "fourth")
    forget()

    def away(*_: object) -> bytes:
        raise UnavailableError("The store cannot be reached.")

    monkeypatch.setattr(ArtifactStore, "get", away)
    with pytest.raises(UnavailableError):
        refit(desk.services, tiny_base, "a test")
    assert heads(desk.services, tiny_base)["single"].version == 1


def test_a_refit_goes_on_without_a_task_that_is_deleted_meanwhile(
    desk: Desk, tiny_base: Base, taught: PriorVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(desk, "fourth")
    forget()
    calm = refits.fitted

    def disturbed(*given: Any) -> Any:
        monkeypatch.setattr(refits, "fitted", calm)
        delete_task(desk.services, "second")
        forget()
        return calm(*given)

    monkeypatch.setattr(refits, "fitted", disturbed)
    refit(desk.services, tiny_base, "a test")
    head = heads(desk.services, tiny_base)["single"]
    assert head.left_out == ()
    assert lessons_in(desk.services, head) == ["first@v1", "fourth@v1", "third@v1"]


def test_a_lesson_of_another_base_is_refused_by_its_digest(desk: Desk, tiny_base: Base, taught: PriorVersion) -> None:
    lesson = desk.version("first").lesson
    assert lesson is not None
    content = desk.services.read(lesson)
    with refused("lesson-of-other-base"):
        unpack_lesson(content, "sha256:" + "0" * 64)
    with refused("lesson-unreadable"):
        unpack_lesson(b"something else", tiny_base.digest)


def lessons(base: Base, tasks: tuple[str, ...] = ("sst2", "mnli")) -> dict[str, Lesson]:
    width, rng = load_engine(base, "cpu").backbone.config.d_model, np.random.default_rng(3)
    sizes = {source.name: (len(source.labels), 6 if source.pairs else 3) for source in base.sources}
    return {
        task: Lesson(
            rng.standard_normal((sizes[task][0], 3 * width)).astype(np.float16),
            rng.standard_normal((sizes[task][0], sizes[task][1] * width)).astype(np.float16), 240,
        ) for task in tasks if task in sizes
    }  # fmt: skip


@pytest.fixture
def with_lessons(tiny_base: Base, tmp_path: Path) -> Base:
    folder = tmp_path / "with_lessons"
    shutil.copytree(tiny_base.folder, folder)
    (folder / LESSONS).write_bytes(pack_lessons(lessons(tiny_base), tiny_base.backbone_digest))
    return find_base(str(folder))


def test_the_lessons_of_a_base_are_no_part_of_its_digest_and_are_pinned_by_their_own(
    tiny_base: Base, with_lessons: Base
) -> None:
    assert with_lessons.digest == tiny_base.digest
    assert with_lessons.lessons.keys() == lessons(tiny_base).keys()
    for task, lesson in lessons(tiny_base).items():
        read = with_lessons.lessons[task]
        assert np.abs(read.weights - lesson.weights).max() <= np.abs(lesson.weights).max() / 127
        assert read.rows == 240
    with refused("lessons-of-other-backbone"):
        read_lessons(with_lessons.folder / LESSONS, "sha256:" + "0" * 64)
    pinned = Base(with_lessons.folder, {**with_lessons.document, "lessons": "sha256:other"})
    with refused("base-file-changed"):
        _ = pinned.lessons
    (with_lessons.folder / LESSONS).write_bytes(b"nothing")
    with refused("lessons-unreadable"):
        _ = find_base(str(with_lessons.folder)).lessons


def test_what_a_base_was_trained_on_teaches_its_first_task_until_it_is_deleted(desk: Desk, with_lessons: Base) -> None:
    here = Desk(replace(desk.services, settings=desk.services.settings.model_copy(
        update={"base": str(with_lessons.folder)})), desk.folder)  # fmt: skip
    facts = learned(here, "first")["prior"]
    assert (facts["version"], [part["task"] for part in facts["tasks"]]) == (1, ["sst2"])
    assert heads(here.services, with_lessons)["single"].reason == "the first prior of the base"
    refit(here.services, with_lessons, "a test")
    assert lessons_in(here.services, heads(here.services, with_lessons)["single"]) == ["first@v1", "sst2@v1"]
    delete_task(here.services, "sst2")
    refit(here.services, with_lessons, "a test")
    assert lessons_in(here.services, heads(here.services, with_lessons)["single"]) == ["first@v1"]


def test_garbage_collection_keeps_what_versions_teach(desk: Desk, taught: PriorVersion) -> None:
    lesson = desk.version("first").lesson
    collect_garbage(desk.services, older_than_hours=0)
    assert lesson is not None
    assert desk.services.read(lesson)


def test_a_worker_fits_it_again_in_a_process_of_its_own_and_only_once_for_a_change(
    desk: Desk, tiny_base: Base, taught: PriorVersion
) -> None:
    refitting = Refitting(desk.services)
    learned(desk, "fourth")
    learned(desk, "fifth")
    refitting.look()
    assert heads(desk.services, tiny_base)["single"].version == 1  # it is fitted elsewhere, and nobody waits
    wait_until(lambda: heads(desk.services, tiny_base)["single"].version == 2, 60)
    assert heads(desk.services, tiny_base)["single"].lessons == 5
    wait_until(lambda: not refitting._runs(), 60)
    refitting.look()
    assert not refitting._runs()
    refitting.end()


def test_a_home_in_which_nothing_teaches_has_nothing_to_fit(desk: Desk, tiny_base: Base) -> None:
    refitting = Refitting(desk.services)
    refitting.look()
    assert not refitting._runs()
    assert refit(desk.services, tiny_base, "a test") == []


def test_a_fresh_home_says_what_fits_the_first_prior(desk: Desk, with_lessons: Base, command_line: CommandLine) -> None:
    command_line.at_home(desk.services.settings.model_copy(update={"base": str(with_lessons.folder)}))
    missing = command_line("prior", "show", "--json")
    assert (missing.code, missing.error["type"]) == (3, "prior-not-fitted")
    assert "prior refit" in missing.error["remedy"]
    assert "onboard prior refit" in command_line("doctor", "--json").check("prior")["found"]
    (first,) = [
        line for line in command_line("prior", "refit", "--json").document["priors"] if line["form"] == "single"
    ]
    assert (first["version"], first["reason"]) == (1, "the first prior of the base")
    assert command_line("prior", "show", "--json").document["version"] == 1


def test_the_commands_show_it_and_doctor_fits_it_again(
    desk: Desk, taught: PriorVersion, command_line: CommandLine
) -> None:
    command_line.at_home(desk.services.settings)
    listed = command_line("prior", "list", "--json").document
    assert [(line["version"], line["lessons"]) for line in listed["priors"]] == [(1, 3)]
    shown = command_line("prior", "show", "--json").document
    assert [lesson["task"] for lesson in shown["taught"]] == ["first", "second", "third"]
    assert "lessons of 3 tasks" in command_line("prior", "show").out
    assert command_line("prior", "refit", "--json").document == {"priors": []}
    assert command_line("prior", "show", "pairs").code == 3
    assert command_line("doctor", "--json").check("prior")["found"] == "single v1 of 3 lessons"
