"""What can go wrong with a backup is told, and neither an earlier backup nor the service comes to harm."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.full_disk import full
from support.lively_service import Empty, quiet, restored_into, rows_of, rows_of_home, that_stay
from support.published import add_version, embedding_of
from support.refusals import refused

from onboard.bases import Base
from onboard.errors import (
    ConflictError,
    DamagedError,
    NotAllowedError,
    OnboardError,
    StorageError,
)
from onboard.operations.backup.archive import manifest_of, reading
from onboard.operations.backup.make import back_up
from onboard.operations.backup.manifest import pack_manifest
from onboard.operations.backup.restore import restore
from onboard.operations.gc import collect_garbage
from onboard.operations.lock import alone
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore, digest_of
from onboard.versions.fetch import fetch


def test_a_backup_that_broke_off_is_recognised_and_can_be_made_good(
    lively: Services, empty_home: Empty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, get, count = tmp_path / "backup", ArtifactStore.get, 0

    def break_off(self: ArtifactStore, digest: str) -> bytes:
        nonlocal count
        count += self is lively.artifacts
        if count > 3:
            raise StorageError("The store is away.")
        return get(self, digest)

    monkeypatch.setattr(ArtifactStore, "get", break_off)
    for name in ("backup", "backup.zip"):
        with pytest.raises(StorageError):
            back_up(lively, str(tmp_path / name), quiet)
        count = 0
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.glob("*backup*")) == ["backup"]
    with refused("backup-broken-off"):
        restored_into(empty_home, target)
    back_up(lively, str(target), quiet)
    restored_into(empty_home, target)


def test_a_later_backup_that_breaks_off_leaves_the_earlier_one(
    lively: Services, tiny_base: Base, empty_home: Empty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(lively)
    for name in ("backup", "backup.zip"):
        back_up(lively, str(tmp_path / name), quiet)
    add_version(lively, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(4))

    def fail(self: Any, manifest: Any, named: Any) -> None:
        raise StorageError("The disk is full.")

    for kind in ("ArchiveFolder", "ArchiveFile"):
        monkeypatch.setattr(f"onboard.operations.backup.archive.{kind}.finish", fail)
    for name in ("backup", "backup.zip"):
        with pytest.raises(StorageError):
            back_up(lively, str(tmp_path / name), quiet)
        with reading(str(tmp_path / name)) as archive:
            assert manifest_of(archive, name).tables["embedding_versions"].rows == len(before["embedding_versions"])
    restored_into(empty_home, tmp_path / "backup")
    assert rows_of_home(empty_home)["embedding_versions"] == before["embedding_versions"]


def test_what_the_service_has_lost_is_told_and_the_rest_is_backed_up(
    lively: Services, empty_home: Empty, tmp_path: Path
) -> None:
    with lively.database.read() as session:
        lost = VersionRepository(session).resolve("mood@v1").artifact
    lively.artifacts.delete(lost)
    manifest, copied = back_up(lively, str(tmp_path / "backup"), quiet)
    assert copied.absent == [{"digest": lost, "kind": "embedding", "problem": "missing"}]
    assert [artifact.to_json() for artifact in manifest.absent] == copied.absent
    restored_into(empty_home, tmp_path / "backup")
    after = empty_home.opened()
    assert fetch(after, "mood@v2", tmp_path / "out").version.version == 2
    assert [artifact["digest"] for artifact in collect_garbage(after).damaged] == [lost]
    after.close()


def test_only_an_empty_service_is_restored_and_what_is_there_is_named(
    lively: Services, tmp_path: Path, tiny_base: Base
) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    before = rows_of(lively)
    with refused("service-not-empty") as caught:
        restore(lively.settings, str(tmp_path / "backup"), quiet)
    rows = caught.value.data["found"]
    assert (rows["jobs"], rows["tasks"], rows["embedding_versions"]) == (4, 2, 4)
    assert "ONBOARD_HOME" in caught.value.remedy
    assert rows_of(lively) == before


def test_a_restore_that_broke_off_is_repeated(
    lively: Services, empty_home: Empty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)

    def fail(*_arguments: Any) -> None:
        raise StorageError("The disk of the database is full.")

    monkeypatch.setattr("onboard.registry.load.continue_after", fail)
    with pytest.raises(StorageError):
        restored_into(empty_home, tmp_path / "backup")
    monkeypatch.undo()
    assert rows_of_home(empty_home)["tasks"] == []
    assert restored_into(empty_home, tmp_path / "backup").artifacts.copied == 0
    assert that_stay(rows_of_home(empty_home)) == that_stay(rows_of(lively))


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def part_of(folder: Path, table: str) -> Path:
    digest = json.loads((folder / "manifest.json").read_text())["tables"][table]["parts"][0]
    name = digest.removeprefix("sha256:")
    return folder / "sha256" / name[:2] / name


def incomplete(kind: str, problem: str) -> tuple[str, dict[str, str]]:
    return "backup-incomplete", {"kind": kind, "problem": problem}


def test_damage_is_told_before_anything_is_restored(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    back_up(lively, str(whole), quiet)
    with lively.database.read() as session:
        name = VersionRepository(session).resolve("mood").artifact.removeprefix("sha256:")
    artifact = f"sha256/{name[:2]}/{name}"
    manifest = json.loads((whole / "manifest.json").read_text())

    def changed(folder: Path) -> None:
        (folder / "manifest.json").write_text(json.dumps({**manifest, "onboard": "9"}))

    hurts: list[tuple[Callable[[Path], object], str, dict[str, str]]] = [
        (lambda folder: (folder / "manifest.json").write_text('{"format": '), "backup-manifest-damaged", {}),
        (changed, "backup-manifest-damaged", {}),
        (lambda folder: damage(part_of(folder, "jobs")), *incomplete("rows", "damaged")),
        (lambda folder: part_of(folder, "job_events").unlink(), *incomplete("rows", "missing")),
        (lambda folder: damage(folder / artifact), *incomplete("embedding", "damaged")),
        (lambda folder: (folder / artifact).unlink(), *incomplete("embedding", "missing")),
    ]
    for number, (hurt, type_, facts) in enumerate(hurts):
        folder = tmp_path / f"hurt{number}"
        shutil.copytree(whole, folder)
        hurt(folder)
        with refused(type_, **facts) as caught:
            restored_into(empty_home, folder)
        assert "backup" in caught.value.remedy
        assert not empty_home.settings.home.exists()  # neither database nor artifacts: all was checked first
    part = part_of(tmp_path / "hurt2", "jobs")
    back_up(lively, str(tmp_path / "hurt2"), quiet)  # what its remedy says
    assert digest_of(part.read_bytes()).endswith(part.name)
    restored_into(empty_home, tmp_path / "hurt2")


def test_a_damaged_zip_is_told(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    path = tmp_path / "backup.zip"
    back_up(lively, str(path), quiet)
    assert path.stat().st_mode & 0o077 == 0
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with refused("backup-damaged"):
        restored_into(empty_home, path)
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    with pytest.raises(DamagedError):
        restored_into(empty_home, path)
    path.write_text("a letter")
    with refused("backup-damaged"):
        restored_into(empty_home, path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photo.jpg", b"...")
    with refused("unknown-backup"):
        restored_into(empty_home, path)
    with pytest.raises(OnboardError):
        back_up(lively, str(path), quiet)  # nor is it overwritten
    assert zipfile.ZipFile(path).namelist() == ["photo.jpg"]


def test_where_there_is_no_backup_says_so(empty_home: Empty, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    for source in ("nothing", "nothing.zip", "letters"):
        with refused("unknown-backup"):
            restored_into(empty_home, tmp_path / source)


def test_a_target_that_holds_something_else_is_left_alone(lively: Services, services: Services, tmp_path: Path) -> None:
    home = lively.settings.resolved_home
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("hours of work")
    for target in (home, tmp_path / "letters"):
        with refused("backup-folder-occupied"):
            back_up(lively, str(target), quiet)
    with refused("backup-into-store"):
        back_up(lively, str(home / "artifacts") + "/", quiet)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "hours of work"
    (tmp_path / "file").write_text("mine")
    for target in ("file", "file/below", "file/below.zip"):
        with pytest.raises((NotAllowedError, ConflictError)):
            back_up(lively, str(tmp_path / target), quiet)
    with refused("backup-zip-not-local"):
        back_up(lively, "s3://bucket/backup.zip", quiet)
    with refused("backup-zip-is-folder"):
        back_up(lively, str(tmp_path / "backup.tar.gz"), quiet)
    for target in ("backup", "backup.zip"):
        back_up(lively, str(tmp_path / target), quiet)
    other = open_services(Settings(home=tmp_path / "other"))
    for target in ("backup", "backup.zip"):
        with refused("backup-of-other-service"):
            back_up(other, str(tmp_path / target), quiet)
    other.close()


def test_a_backup_waits_for_no_garbage_collection_but_refuses_to_run_beside_it(
    lively: Services, tmp_path: Path
) -> None:
    with alone(lively.database, "gc"), refused("maintenance-at-work"):
        back_up(lively, str(tmp_path / "backup"), quiet)


def test_a_backup_of_a_newer_version_is_refused(lively: Services, empty_home: Empty, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    manifest, _ = back_up(lively, str(target), quiet)
    later = manifest.model_copy(update={"revision": "29990101a"})
    (target / "manifest.json").write_bytes(pack_manifest(later))
    with refused("schema-too-new"):
        restored_into(empty_home, target)
    document = json.loads((target / "manifest.json").read_text())
    (target / "manifest.json").write_text(json.dumps({**document, "version": 2}))
    with refused("backup-format-unknown"):
        restored_into(empty_home, target)
    assert not (empty_home.settings.home / "onboard.db").exists()


def test_a_missing_base_is_named(lively: Services, other_base: Base, tmp_path: Path, tiny_base: Base) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    settings = Settings(home=tmp_path / "new", base=str(other_base.folder))
    (needed,) = restore(settings, str(tmp_path / "backup"), quiet).bases
    assert needed == {"name": tiny_base.name, "digest": tiny_base.digest, "versions": 4, "folder": None}


def test_a_full_disk_is_told_and_leaves_the_service_empty(
    lively: Services, empty_home: Empty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(lively, str(tmp_path / "backup"), quiet)
    monkeypatch.setattr("onboard.storage.files.os.fsync", full)
    with refused("store-full"):
        restored_into(empty_home, tmp_path / "backup")
    with refused("store-full"):
        back_up(lively, str(tmp_path / "another"), quiet)
    monkeypatch.undo()
    assert rows_of_home(empty_home)["tasks"] == []
