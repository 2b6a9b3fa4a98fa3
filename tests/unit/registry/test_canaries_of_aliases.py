"""Canaries of aliases: how they start and end, what they refuse, and what keeps them; on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import update
from support.refusals import refused
from support.registry_samples import BASE, publish

from onboard.domain.canary import Canary
from onboard.domain.names import Reference
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.deleting import DeletingRepository, Removed
from onboard.registry.descent import DescentRepository
from onboard.registry.in_use import InUseRepository
from onboard.registry.search import SearchRepository
from onboard.registry.tables import EmbeddingVersionRow
from onboard.registry.unlearning import UnlearningRepository

TASK, ALIAS = "colours", "production"


@pytest.fixture(autouse=True)
def three_versions(database: Database, registered_base: None) -> None:
    for _ in range(3):
        publish(database)
    with database.write() as session:
        for version in (1, 2):
            AliasRepository(session).move(TASK, ALIAS, version)


def test_it_starts_changes_its_share_and_ends(database: Database) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        started = aliases.start_canary(TASK, ALIAS, 3, 0.1, actor="ops")
        assert (started.version, started.previous, started.canary, started.share) == (2, 2, 3, 0.1)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)  # changes nothing
        assert len(aliases.history(TASK, ALIAS)) == 3
        aliases.start_canary(TASK, ALIAS, 3, 0.5, expected="v2+v3:0.1")
        current = SearchRepository(session).currents([Reference(TASK, ALIAS)])[Reference(TASK, ALIAS)]
        assert (current.version, current.canary) == (2, Canary(3, 0.5))
        assert aliases.canaries(TASK) == {ALIAS: Canary(3, 0.5)}
        ended = aliases.end_canary(TASK, ALIAS, version=3)
        assert (ended.version, ended.canary, aliases.canary(TASK, ALIAS)) == (2, None, None)


def test_a_rollback_ends_it_first_and_then_goes_back(database: Database) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)
        assert aliases.rollback(TASK, ALIAS, because="slow").reason == "canary ended: slow"
        assert (aliases.find(TASK, ALIAS), aliases.canary(TASK, ALIAS)) == (2, None)
        assert aliases.rollback(TASK, ALIAS).version == 1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_move_ends_it(database: Database, version: int) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)
        moved = aliases.move(TASK, ALIAS, version, expected="v2+v3:0.1")
        assert (moved.canary, aliases.find(TASK, ALIAS), aliases.canary(TASK, ALIAS)) == (None, version, None)


def test_what_cannot_be_a_canary_is_refused(database: Database) -> None:
    publish(database)
    with database.write() as session:
        for version, pairs in ((2, False), (4, True)):
            row = EmbeddingVersionRow
            session.execute(update(row).where(row.version == version).values(pairs=pairs))
        aliases = AliasRepository(session)
        for type_, alias, version in (
            ("canary-is-the-version", ALIAS, 2), ("canary-without-alias", "new", 3), ("unknown-version", ALIAS, 9),
            ("canary-inputs-differ", ALIAS, 4),
        ):  # fmt: skip
            with refused(type_):
                aliases.start_canary(TASK, alias, version, 0.1)
        with refused("no-canary"):
            aliases.end_canary(TASK, ALIAS)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)
        with refused("canary-is-another"):
            aliases.end_canary(TASK, ALIAS, version=1)


def test_the_second_of_two_who_saw_the_same_is_refused(database: Database) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.start_canary(TASK, ALIAS, 3, 0.1, expected="v2")
        with refused("alias-changed-meanwhile"):
            aliases.start_canary(TASK, ALIAS, 1, 0.2, expected="v2")
        with refused("alias-changed-meanwhile"):
            aliases.move(TASK, ALIAS, 1, expected="v2")


def test_it_is_in_use_and_ends_with_its_version(database: Database) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.move(TASK, "latest", 2)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)
        assert [version.version for version in InUseRepository(session).versions(BASE)] == [2, 3]
        assert set(InUseRepository(session).since(BASE)) == {"colours@v2", "colours@v3"}
        assert DescentRepository(session).aliases()["colours@v3"] == [ALIAS]
        which = (EmbeddingVersionRow.task == TASK) & (EmbeddingVersionRow.version == 3)
        DeletingRepository(session).remove_versions(which, Removed())
        assert (aliases.find(TASK, ALIAS), aliases.canary(TASK, ALIAS)) == (2, None)


def test_a_rebuilt_version_takes_its_place(database: Database) -> None:
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.move(TASK, "latest", 2)
        aliases.start_canary(TASK, ALIAS, 3, 0.1)
        UnlearningRepository(session).mark("other", ["colours@v3"], [])
        UnlearningRepository(session).replace(TASK, ["colours@v3"], 1)
        assert (aliases.find(TASK, ALIAS), aliases.canary(TASK, ALIAS)) == (2, Canary(1, 0.1))
