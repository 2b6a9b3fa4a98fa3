"""Aliases of versions: how they move, go back, and what they refuse; on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, insert
from support.registry_samples import publish

from onboard.errors import ConflictError, InputError, NotFoundError, PreconditionFailedError
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.tables import AliasMoveRow
from onboard.registry.versions import VersionRepository

pytestmark = pytest.mark.usefixtures("registered_base")


def test_an_alias_moves_and_rolls_back_step_by_step(database: Database) -> None:
    for _ in range(3):
        publish(database)
    with database.write() as session:
        aliases = AliasRepository(session)
        for version in (1, 2, 3):
            aliases.move("colours", "production", version, actor="ops")
        assert aliases.rollback("colours", "production").version == 2
        assert aliases.rollback("colours", "production").version == 1
        with pytest.raises(ConflictError):
            aliases.rollback("colours", "production")
        aliases.move("colours", "production", 3)
        assert aliases.rollback("colours", "production").version == 1
        history = aliases.history("colours", "production")
        assert [(move.previous, move.version) for move in reversed(history)][:4] == [(None, 1), (1, 2), (2, 3), (3, 2)]
        assert history[-1].actor == "ops"
        assert aliases.list("colours") == {"latest": 3, "production": 1}
        assert VersionRepository(session).resolve("colours@production").version == 1


@pytest.mark.parametrize(
    ("moves", "back"),
    [
        ((1, 2, 2), [1]),  # the same again is no move
        ((1, 2, 3, 1), [3, 2, 1]),
        ((1, 2, 1, 3), [1, 2, 1]),
    ],
)
def test_rollbacks_go_back_through_every_move_and_then_end(
    database: Database, moves: tuple[int, ...], back: list[int]
) -> None:
    for _ in range(3):
        publish(database)
    with database.write() as session:
        aliases = AliasRepository(session)
        for version in moves:
            assert aliases.move("colours", "production", version).version == version
        assert [aliases.rollback("colours", "production").version for _ in back] == back
        with pytest.raises(ConflictError, match="never"):
            aliases.rollback("colours", "production")
        assert aliases.find("colours", "production") == back[-1]


def test_histories_that_stood_still_or_went_in_circles_lead_back_too(database: Database) -> None:
    for _ in range(3):
        publish(database)
    still = [(None, 1, "promoted"), (1, 2, "promoted"), (2, 2, "promoted"), (2, 2, "rollback"), (2, 2, "rollback")]
    circle = [(None, 1, "promoted"), (1, 2, "promoted"), (2, 1, "promoted"), (1, 2, "rollback"), (2, 1, "rollback"),
              (1, 2, "rollback")]  # fmt: skip
    with database.write() as session:
        aliases = AliasRepository(session)
        for alias, moves in (("still", still), ("circle", circle)):
            aliases.move("colours", alias, 2)
            session.execute(delete(AliasMoveRow).where(AliasMoveRow.alias == alias))
            for previous, version, reason in moves:
                row = {"task": "colours", "alias": alias, "previous": previous, "version": version, "reason": reason}
                session.execute(insert(AliasMoveRow).values(at=1.0, **row))
        assert aliases.rollback("colours", "still").version == 1
        with pytest.raises(ConflictError):
            aliases.rollback("colours", "circle")


def test_an_alias_that_is_moved_to_what_it_means_already_has_not_moved(database: Database) -> None:
    publish(database)
    with database.write() as session:
        aliases = AliasRepository(session)
        first = aliases.move("colours", "production", 1, reason="promoted")
        again = aliases.move("colours", "production", 1, expected=1)
        assert (again.version, again.previous, again.at) == (1, 1, first.at)
        assert aliases.history("colours", "production") == [first]
        with pytest.raises(PreconditionFailedError):
            aliases.move("colours", "production", 1, expected=2)


def test_an_alias_moves_only_from_the_version_that_was_expected(database: Database) -> None:
    publish(database), publish(database)
    with database.write() as session:
        aliases = AliasRepository(session)
        with pytest.raises(ConflictError, match="does not exist"):
            aliases.move("colours", "production", 1, expected=2)
        aliases.move("colours", "production", 1, expected=0)
        with pytest.raises(ConflictError, match="v1 now"):
            aliases.move("colours", "production", 2, expected=2)
        assert aliases.move("colours", "production", 2, expected=1).previous == 1


def test_an_alias_needs_an_existing_version_and_a_name_that_is_no_number(database: Database) -> None:
    publish(database)
    with database.write() as session:
        with pytest.raises(NotFoundError):
            AliasRepository(session).move("colours", "production", 7)
        with pytest.raises(InputError):
            AliasRepository(session).move("colours", "v1", 1)


def test_names_of_labels_stay_where_they_fit_and_come_back_with_a_rollback(database: Database) -> None:
    for _ in range(3):
        publish(database)
    called = [["blue", "azure"]]
    with database.write() as session:
        aliases = AliasRepository(session)
        aliases.move("colours", "shop", 1)
        assert list(aliases.move("colours", "shop", 2, names=called).names or ()) == called
        aliases.move("colours", "shop", 3)
        assert aliases.names("colours", "shop") == called  # version 3 has the label
        aliases.move("colours", "shop", 3, names=None)
        assert aliases.names("colours", "shop") is None
        assert list(aliases.rollback("colours", "shop").names or ()) == called
        assert aliases.rollback("colours", "shop").names is None
        assert aliases.find("colours", "shop") == 1
        aliases.move("colours", "shop", 1, names=[["green", "lime"]])
        aliases.move("colours", "shop", 2)
        assert aliases.names("colours", "shop") is None  # version 2 has no green
        assert "names" not in aliases.history("colours", "shop", 1)[0].to_json()
