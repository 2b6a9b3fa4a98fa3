"""A home in which something is not ours: one sentence that names the file, where a command starts a worker."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any, NoReturn

import pytest
from filelock import FileLock
from support.refusals import refused

from onboard.jobs import detached
from onboard.registry.services import Services


def failing(number: int, file: Path) -> Any:
    def fail(*_arguments: object, **_named: object) -> NoReturn:
        raise OSError(number, "Permission denied" if number == errno.EACCES else "No space left on device", str(file))

    return fail


def test_a_log_or_lock_of_somebody_else_is_named(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    home = services.settings.resolved_home
    for owner, name, file in (
        (detached, "open_private", home / "logs" / "worker.log"),
        (FileLock, "acquire", home / "worker.lock"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, failing(errno.EACCES, file))
            with refused("home-file-not-writable") as caught:
                detached.ensure_worker(services)
        assert str(file) in caught.value.message
        assert f"chown -R USER {home}" in caught.value.remedy


def test_a_full_disk_is_told_as_that(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    log = services.settings.resolved_home / "logs" / "worker.log"
    monkeypatch.setattr(detached, "open_private", failing(errno.ENOSPC, log))
    with refused("home-disk-full"):
        detached.ensure_worker(services)
