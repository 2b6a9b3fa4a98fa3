"""Homes and backups are their owner's alone, whatever the folder around them and the umask let others do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from onboard.api.upload_folder import upload_folder
from onboard.broker.doorbell import CeleryDoorbell
from onboard.jobs.detached import _log_file
from onboard.operations.backup.make import back_up
from onboard.registry.services import Services, open_services
from onboard.registry.workers import QueueRepository
from onboard.settings import Settings

CONTENT = b"rows that somebody submitted"


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody may enter and write to, in a process that closes nothing by itself."""
    before = os.umask(0)
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    yield folder
    os.umask(before)


def reachable_by_others(folder: Path) -> list[str]:
    """Files in it that others may read, as every folder on the way lets them through."""
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [
        str(file)
        for file in files
        if all((folder / place).stat().st_mode & 0o077 for place in (file, *file.parents[:-1]))
    ]


def used(home: Path) -> Services:
    """Services of that home, with something of everything that is written into it."""
    services = open_services(Settings(home=home))
    services.store(CONTENT, "snapshot")
    with services.database.write() as session:
        QueueRepository(session).set_paused("gpu", True)
    CeleryDoorbell(services.settings).ring("default")
    _log_file(home).touch()
    with upload_folder(home) as folder:
        (folder / "part").touch(mode=0o600)
        assert reachable_by_others(home) in ([], ["migrate.lock"])
    return services


def test_a_home_that_others_may_enter_holds_nothing_that_they_may_read(open_folder: Path) -> None:
    services = used(open_folder)
    assert open_folder.stat().st_mode & 0o777 == 0o777  # not ours to change
    assert reachable_by_others(open_folder) == []
    services.close()


def test_a_home_of_before_is_closed_when_it_is_used_again(open_folder: Path) -> None:
    used(open_folder).close()
    for path in open_folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    services = used(open_folder)
    assert (open_folder / "onboard.db").stat().st_mode & 0o077 == 0
    services.store(CONTENT + b" later", "snapshot")
    assert reachable_by_others(open_folder) == ["migrate.lock"]  # it is empty
    services.close()


@pytest.mark.parametrize("name", ["", "new", "new/below", "backup.zip"])
def test_a_backup_is_readable_by_its_owner_alone_in_whatever_folder(
    open_folder: Path, tmp_path: Path, name: str
) -> None:
    services = open_services(Settings(home=tmp_path / "home"))
    services.store(CONTENT, "snapshot")
    back_up(services, str(open_folder / name), lambda _: None)
    services.close()
    assert any(path.is_file() for path in open_folder.rglob("*"))
    assert [path for path in open_folder.rglob("*") if path.stat().st_mode & 0o077] == []


def test_a_backup_of_before_is_closed_by_the_next(open_folder: Path, tmp_path: Path) -> None:
    services = open_services(Settings(home=tmp_path / "home"))
    services.store(CONTENT, "snapshot")
    back_up(services, str(open_folder), lambda _: None)
    (open_folder / "sha256").mkdir(mode=0o777, exist_ok=True)
    (open_folder / "sha256").chmod(0o777)
    back_up(services, str(open_folder), lambda _: None)
    services.close()
    assert (open_folder / "sha256").stat().st_mode & 0o077 == 0
