"""A base's line of hypernetworks: what is pinned to each, which of them may be given up, and which are held."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session
from support import watched_jobs as past
from support.refusals import refused
from support.registry_samples import ARTIFACT, BASE, BLOCKED_SECONDS, sample_task, sample_version

from onboard.domain.task import HypernetworkVersion
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.deleting import DeletingRepository
from onboard.registry.descent import DescentRepository
from onboard.registry.hypernetworks import HypernetworkRepository, hold_hypernetwork
from onboard.registry.retention import RetentionRepository
from onboard.registry.tables import HypernetworkRow
from onboard.registry.versions import VersionRepository

pytestmark = pytest.mark.usefixtures("registered_base")

DRAFT = HypernetworkVersion(base_digest=BASE, version=0, artifact=ARTIFACT, digest=ARTIFACT)
DAY = 86_400.0


def advance(database: Database, count: int = 1, job: str | None = None) -> int:
    """So many further versions, each the head for a moment; the last one's number."""
    for _ in range(count):
        with database.write() as session:
            bases = BaseRepository(session)
            head = bases.advance(replace(DRAFT, job=job), expected_head=bases.get(BASE).head)
    return head.version


def publish(database: Database, under: int, task: str = "colours", learned_under: int | None = None) -> None:
    draft = replace(sample_version(task), hypernetwork_version=under, learned_under=learned_under)
    with database.write() as session:
        VersionRepository(session).add(draft, sample_task(task))


def delete(session: Session, task: str) -> None:
    DeletingRepository(session).remove(DescentRepository(session).root(task))


def grow_old(database: Database, days: float = 2) -> None:
    row = HypernetworkRow
    older = {"created_at": row.created_at - days * DAY, "retired_at": row.retired_at - days * DAY}
    with database.write() as session:
        session.execute(update(row).values(older))


def collected(database: Database) -> list[int]:
    """Give up what may be given up; which versions have no bytes after that."""
    with database.write() as session:
        RetentionRepository(session).hypernetworks(DAY)
    with database.read() as session:
        line = BaseRepository(session).hypernetworks(BASE)
    assert all((head.artifact is None) == (head.collected_at is not None) for head in line)
    assert all(head.digest == ARTIFACT for head in line)
    return [head.version for head in line if head.artifact is None]


def test_a_version_that_was_tuned_remembers_its_parents_back_to_the_first(database: Database) -> None:
    advance(database, 2)
    with database.write() as session:
        bases = BaseRepository(session)
        bases.set_head(BASE, 2, expected_head=3)
        assert bases.advance(DRAFT, expected_head=2).version == 4
        assert [head.version for head in bases.line(BASE, 4)] == [4, 2, 1]
        assert [head.version for head in bases.line(BASE, 3)] == [3, 2, 1]
        with pytest.raises(NotFoundError):
            bases.line(BASE, 9)


def test_a_version_is_retired_from_the_moment_at_which_it_is_the_head_no_more(database: Database) -> None:
    advance(database, 2)
    with database.write() as session:
        bases = BaseRepository(session)
        bases.set_head(BASE, 2, expected_head=3)
        retired = {head.version: head.retired_at for head in bases.hypernetworks(BASE)}
        assert retired[2] is None
        assert retired[1] is not None
        assert retired[3] == pytest.approx(read_clock(session), abs=60)


def test_only_what_nothing_needs_is_given_up_and_its_number_never_comes_again(database: Database) -> None:
    advance(database, 6)  # versions 2 to 7; 7 is the head, tuned from 6
    publish(database, 3)
    publish(database, 6, "shapes", learned_under=4)
    assert collected(database) == []  # all of them were the head just now
    grow_old(database)
    assert collected(database) == [2, 5]
    assert advance(database) == 8
    with database.read() as session:
        assert [head.version for head in BaseRepository(session).line(BASE, 5)] == [5, 4, 3, 2, 1]
    with database.write() as session:
        delete(session, "colours")
    assert collected(database) == [2, 3, 5]


def test_what_was_the_head_until_a_moment_ago_stays_for_jobs_that_began_under_it(database: Database) -> None:
    advance(database, 3)
    grow_old(database)
    with database.write() as session:
        BaseRepository(session).set_head(BASE, 1, expected_head=4)
    assert collected(database) == [2, 3]  # not 4: it has only just left
    grow_old(database)
    assert collected(database) == [2, 3, 4]


def test_a_version_whose_job_is_not_over_stays(database: Database) -> None:
    past.worker(database, "w1")
    job = past.running(database, "w1")
    tuned = advance(database, job=job.id)
    advance(database, 2)
    grow_old(database)
    assert tuned not in collected(database)


def test_a_collected_version_is_never_the_head_again_and_nothing_is_pinned_to_it(database: Database) -> None:
    advance(database, 3)
    grow_old(database)
    assert collected(database) == [2]
    with database.write() as session, refused("hypernetwork-not-usable", version=2):
        BaseRepository(session).set_head(BASE, 2, expected_head=4)
    for pins in ({"under": 2}, {"under": 4, "learned_under": 2}):
        with refused("hypernetwork-not-usable", version=2):
            publish(database, **pins)  # type: ignore[arg-type]  # both are numbers


def test_what_is_about_to_be_pinned_is_not_given_up_meanwhile(database: Database) -> None:
    advance(database, 3)
    grow_old(database)
    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            hold_hypernetwork(session, BASE, 2)
            collecting = pool.submit(collected, database)
            wait([collecting], BLOCKED_SECONDS)  # PostgreSQL passes over it, SQLite waits for this transaction
            draft = replace(sample_version(), hypernetwork_version=2)
            VersionRepository(session).add(draft, sample_task())
        assert collecting.result() == []
    assert collected(database) == []


def test_what_is_pinned_to_a_version_is_counted_and_what_is_in_use_is_named(database: Database) -> None:
    advance(database, 2)
    for task in ("colours", "shapes"):
        publish(database, 2, task)
        publish(database, 2, task)
    publish(database, 3, "shapes", learned_under=2)
    publish(database, 2, "gone")
    with database.write() as session:
        AliasRepository(session).move("shapes", "production", 1, reason="promoted")
        delete(session, "gone")
    with database.read() as session:
        repository = HypernetworkRepository(session)
        assert repository.counts(BASE) == {2: 4, 3: 1}
        pins = repository.pinned(BASE, 2, most=9)
        assert (pins.versions, pins.tasks, pins.learned) == (4, 2, 1)
        assert pins.in_use == ("colours@v2", "shapes@v1")
        assert repository.pinned(BASE, 2, most=1).in_use == ("colours@v2",)
        assert repository.pinned(BASE, 3, most=9).in_use == ("shapes@v3",)
        assert repository.pinned(BASE, 1, most=9).versions == 0
