"""A backup that somebody changed, digests and all, is refused before anything is written, and writes nowhere else."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.lively_service import Empty, quiet, restored_into, rows_of_home
from support.refusals import refused as error_of

from onboard.errors import DamagedError, OnboardError
from onboard.operations.backup.make import back_up
from onboard.operations.backup.manifest import FORMAT, VERSION, document_digest
from onboard.operations.backup.rows import pack_rows, unpack_rows
from onboard.registry.services import Services
from onboard.storage.artifacts import ArtifactStore, digest_of

Document = dict[str, Any]
OUTSIDE = "sha256:../../../../outside"


@pytest.fixture
def backup(lively: Services, tmp_path: Path) -> Path:
    back_up(lively, str(tmp_path / "backup"), quiet)
    return tmp_path / "backup"


def rewrite(backup: Path, change: Callable[[Document], object]) -> None:
    """Change the manifest as one who knows how it is digested."""
    path = backup / "manifest.json"
    document = json.loads(path.read_text())
    del document["digest"]
    change(document)
    path.write_text(json.dumps({**document, "digest": document_digest(document)}))


def rewrite_rows(backup: Path, table: str, change: Callable[[list[Document]], object]) -> None:
    """Change the rows of a table, with every digest that follows from them."""

    def with_rows(document: Document) -> None:
        store, facts = ArtifactStore(str(backup)), document["tables"][table]
        rows = [row for part in facts["parts"] for row in unpack_rows(store.get(part))]
        change(rows)
        facts.update(rows=len(rows), parts=[store.put(pack_rows(rows), "rows")])

    rewrite(backup, with_rows)


def require_untouched(empty: Empty) -> None:
    assert not empty.settings.resolved_home.exists()


MANIFESTS: dict[str, Callable[[Document], object]] = {
    "a part outside of the backup": lambda it: it["tables"]["jobs"]["parts"].append(OUTSIDE),
    "a part that is a number": lambda it: it["tables"]["jobs"].update(parts=[7]),
    "tables that are a list": lambda it: it.update(tables=[]),
    "a table that is text": lambda it: it["tables"].update(jobs="all"),
    "no revision": lambda it: it.pop("revision"),
    "no tables": lambda it: it.pop("tables"),
    "a number that is none": lambda it: it["tables"]["jobs"].update(last="last"),
    "an absent artifact without a digest": lambda it: it.update(absent=[{"digest": "../../x", "kind": "embedding"}]),
    "bases that are text": lambda it: it.update(bases="mini"),
    "a field of nobody": lambda it: it.update(run="rm -rf /"),
    "another format": lambda it: it.update(format="tar"),
}


def test_a_manifest_of_another_form_is_damaged(backup: Path, empty_home: Empty) -> None:
    whole = (backup / "manifest.json").read_bytes()
    for what, change in MANIFESTS.items():
        (backup / "manifest.json").write_bytes(whole)
        rewrite(backup, change)
        with error_of("backup-manifest-damaged"):
            pytest.fail(f"{what} was restored: {restored_into(empty_home, backup)}")
    require_untouched(empty_home)


def test_a_manifest_that_is_no_document_is_damaged(backup: Path, empty_home: Empty) -> None:
    for text in ("", "[]", "7", "null", "[" * 100_000, '{"format": "onboard-backup"}'):
        (backup / "manifest.json").write_text(text)
        with error_of("backup-manifest-damaged"):
            restored_into(empty_home, backup)
    require_untouched(empty_home)


def test_an_artifact_outside_of_the_store_is_never_written(backup: Path, empty_home: Empty, tmp_path: Path) -> None:
    rewrite_rows(backup, "artifacts", lambda rows: rows[0].update(digest=OUTSIDE))
    with error_of("backup-digest-invalid"):
        restored_into(empty_home, backup)
    require_untouched(empty_home)
    assert not list(tmp_path.rglob("*outside*"))


def test_members_of_a_zip_file_that_lead_elsewhere_are_not_unpacked(
    lively: Services, empty_home: Empty, tmp_path: Path
) -> None:
    path = tmp_path / "backup.zip"
    back_up(lively, str(path), quiet)
    with zipfile.ZipFile(path, "a") as file:
        for name in ("../outside", "/tmp/outside-of-it", "sha256/../../outside"):
            file.writestr(name, b"evil")
    restored_into(empty_home, path)  # they are nobody's, and nothing is ever unpacked by its name
    assert not list(tmp_path.rglob("outside*"))
    assert not Path("/tmp/outside-of-it").exists()
    stored = [path for path in empty_home.settings.resolved_home.rglob("*") if path.is_file()]
    assert not any(path.read_bytes() == b"evil" for path in stored)


ROWS: list[tuple[str, Callable[[list[Document]], object], set[str]]] = [
    ("tasks", lambda rows: [row.update(shade="dark") for row in rows], {"backup-columns-differ"}),
    ("tasks", lambda rows: rows[-1].pop("labels"), {"backup-columns-differ"}),
    ("tasks", lambda rows: rows.append(rows[0]), {"backup-rows-unfit"}),
    ("jobs", lambda rows: rows[0].update(state="unheard of"), {"backup-rows-unfit"}),
    (
        "embedding_versions", lambda rows: rows[-1].update(artifact=digest_of(b"nowhere")),
        {"rows-dangling", "backup-rows-unfit"},  # PostgreSQL refuses the row itself
    ),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["home", pytest.param("server", marks=pytest.mark.services)])
def test_rows_that_do_not_fit_leave_the_database_as_it_was(
    backup: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    empty: Empty = request.getfixturevalue(f"empty_{kind}")
    whole = {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()}
    for table, change, types in ROWS:
        rewrite_rows(backup, table, change)
        with pytest.raises(DamagedError) as caught:
            restored_into(empty, backup)
        assert caught.value.type in types
        for path, data in whole.items():
            path.write_bytes(data)
    restored_into(empty, backup)


def with_table(name: str) -> Callable[[Document], object]:
    return lambda it: it["tables"].update({name: {"rows": 0, "last": 0, "parts": []}})


def test_a_table_that_no_backup_has_is_refused(backup: Path, empty_home: Empty) -> None:
    whole = (backup / "manifest.json").read_bytes()
    for table in ("alembic_version", "leases", "workers", "sqlite_master", "nobodys"):
        (backup / "manifest.json").write_bytes(whole)
        rewrite(backup, with_table(table))
        with error_of("backup-table-unknown", table=table):
            restored_into(empty_home, backup)
    assert rows_of_home(empty_home)["tasks"] == []


def test_a_few_bytes_that_stand_for_gigabytes_are_not_unpacked(
    backup: Path, empty_home: Empty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.operations.backup.rows._MOST_BYTES", 10_000)
    rewrite_rows(backup, "tasks", lambda rows: rows.append({"name": "a" * 20_000}))
    with error_of("backup-part-unreadable", reason="it is larger than 10000 bytes"):
        restored_into(empty_home, backup)
    require_untouched(empty_home)


def test_compressed_or_encrypted_members_are_refused(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    path, packed = tmp_path / "backup.zip", tmp_path / "packed.zip"
    back_up(lively, str(path), quiet)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    data = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = -1
        while (place := data.find(mark, place + 1)) >= 0:
            data[place + flags] |= 1
    (tmp_path / "secret.zip").write_bytes(data)
    for name in ("packed.zip", "secret.zip"):
        with error_of("backup-damaged", reason="manifest.json is compressed or encrypted"):
            restored_into(empty_home, tmp_path / name)
    require_untouched(empty_home)


def test_whatever_byte_is_hurt_the_service_is_untouched_or_whole(
    lively: Services, empty_home: Empty, tmp_path: Path
) -> None:
    """Seeded damage anywhere in the file: bytes turned, ends cut off, stretches set to zero."""
    path, hurt, dice = tmp_path / "backup.zip", tmp_path / "hurt.zip", random.Random(7)
    back_up(lively, str(path), quiet)
    whole, refused = path.read_bytes(), 0
    for number in range(60):
        data, place = bytearray(whole), dice.randrange(len(whole))
        if number % 3 == 0:
            data[place] ^= 1 << dice.randrange(8)
        elif number % 3 == 1:
            del data[place:]
        else:  # the list of members stands at the end
            place = max(place, len(data) - 1000 + number)
            data[place : place + 40] = bytes(len(data[place : place + 40]))
        hurt.write_bytes(data)
        try:
            restored_into(empty_home, hurt)
        except OnboardError:
            refused += 1
            require_untouched(empty_home)
        else:  # it was a byte without a meaning, such as a time of day
            before = rows_of_home(empty_home)
            assert before["embedding_versions"]
            empty_home = Empty(empty_home.settings.model_copy(update={"home": tmp_path / f"new{number}"}))
    assert refused > 40


def test_the_form_is_the_one_that_is_documented(backup: Path) -> None:
    document = json.loads((backup / "manifest.json").read_text())
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    for table in document["tables"].values():
        for part in table["parts"]:
            name = part.removeprefix("sha256:")
            assert digest_of((backup / "sha256" / name[:2] / name).read_bytes()) == part
