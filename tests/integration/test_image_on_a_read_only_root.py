"""The commands of the image and the compose file, as the user of the image on a read-only root file system."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.deployed import Command, Started, compose_process, health_command, image_environment, last_of
from support.program import PROGRAM
from support.real_services import free_port, wait_until

USER, GROUP = last_of("USER").split(":")
# Its folders can be written to, and nothing else. Here Python may lie in a folder that only root can read.
CONTAINER = f"""
mount --make-rprivate /
for folder in "$ONBOARD_HOME" "$TMPDIR"; do mount --bind "$folder" "$folder"; done
mount -o remount,bind,ro /
cd "$ONBOARD_HOME"
exec setpriv --reuid {USER} --regid {GROUP} --clear-groups --no-new-privs --bounding-set -all,+dac_read_search \\
    --inh-caps -all,+dac_read_search --ambient-caps +dac_read_search "$@"
"""


def image_process() -> Started:
    """What `docker run` starts without further words."""
    return Started(json.loads(last_of("CMD")), image_environment(), 45.0, health_command())


def api_process() -> Started:
    """The API of the compose file on the embedded default, without the token of a secret and a worker."""
    api = compose_process("api")
    settings = {name: value for name, value in api.environment.items() if not name.endswith("TOKEN_FILE")}
    return replace(api, words=[*api.words, "--no-worker"], environment=settings)


class Container:
    """A user, folders and a root file system as in a container.

    Args:
        folder: where the folders lie that can be written to.
    """

    def __init__(self, folder: Path) -> None:
        self.home, self.tmp = folder / "home", folder / "tmp"
        subprocess.run(
            ["install", "--directory", "--owner", USER, "--group", GROUP, "--mode", "0700", self.home, self.tmp],
            check=True,
        )
        self.changes = {
            "/var/lib/onboard": str(self.home), "/tmp/": f"{self.tmp}/", "8000": str(free_port()),
            "0.0.0.0": "127.0.0.1",
        }  # fmt: skip

    def environment(self, started: Started) -> dict[str, str]:
        variables = {name: value for name, value in started.environment.items() if value}
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "OMP_NUM_THREADS": "1", "TMPDIR": str(self.tmp),
            **variables,
        }  # fmt: skip

    def words(self, *words: str) -> list[str]:
        return ["unshare", "--mount", "sh", "-ec", CONTAINER, "sh", *words]

    def run(self, started: Started, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words), env=self.environment(started), capture_output=True, text=True, check=False
        )


@pytest.fixture
def container(tmp_path: Path) -> Container:
    if os.geteuid() != 0:
        pytest.skip("only root can make a mount namespace")
    container = Container(tmp_path)
    done = container.run(Started([], {"ONBOARD_HOME": str(container.home)}), "true")
    if done.returncode != 0:
        pytest.skip(f"mount namespaces cannot be made here: {done.stderr}")
    return container


def test_nothing_but_the_two_folders_can_be_written_to(container: Container) -> None:
    started = image_process().with_changes(container.changes)
    done = container.run(started, "sh", "-c", f"id -u; touch {container.home}/a {container.tmp}/b; touch /usr/c")
    assert (done.stdout, done.returncode) == (f"{USER}\n", 1)
    assert re.fullmatch("touch: .*/usr/c.*: Read-only file system\n", done.stderr)
    assert {(container.home / "a").stat().st_uid, (container.tmp / "b").stat().st_uid} == {int(USER)}


def shows_life(container: Container) -> bool:
    """A server listens, or a worker has touched its file."""
    with socket.socket() as connection:
        listens = connection.connect_ex(("127.0.0.1", int(container.changes["8000"]))) == 0
    return listens or (container.tmp / "alive").exists()


@pytest.mark.parametrize("described", [image_process, api_process])
def test_it_starts_is_healthy_and_leaves_when_it_is_told(
    described: Callable[[], Started], container: Container
) -> None:
    started = described().with_changes(container.changes)
    environment = container.environment(started)
    health = [sys.executable if word == "python" else word for word in started.health]

    def healthy() -> bool:
        return container.run(started, *health).returncode == 0

    assert not healthy()
    with Command(container.words(PROGRAM, *started.words), environment, container.home, program=()) as process:
        wait_until(lambda: shows_life(container), 240, "the start")  # each health check is a process
        wait_until(healthy, 240, "the health check")
        doctor = container.run(started, PROGRAM, "doctor")
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr
        assert process.stop(started.grace_seconds) == 0
    owners = {path.stat().st_uid for path in container.home.rglob("*")} - {0}
    assert owners == {int(USER)}
