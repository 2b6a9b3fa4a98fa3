"""A home behind a real server process, and what turns a command on this machine into one against it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.harness.server import first_document
from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token
from support.program import PROGRAM, Place


@dataclass
class Served:
    """A served home, and a token with every scope."""

    place: Place
    url: str
    token: str

    @property
    def settings(self) -> dict[str, str]:
        """The environment of somebody elsewhere, whose own home stays empty."""
        return {"ONBOARD_API_URL": self.url, "ONBOARD_TOKEN": self.token, "ONBOARD_HOME": str(self.elsewhere)}

    @property
    def elsewhere(self) -> Path:
        return self.place.folder / "elsewhere"


@contextmanager
def served(place: Place) -> Iterator[Served]:
    """`onboard serve` for a place until the block ends; nothing starts a worker."""
    place.more["ONBOARD_START_WORKER"] = "false"
    with place.services() as services:
        _, token = create_token(services.database, "tests", [scope.value for scope in ALL_SCOPES])
    log = place.folder / "serve.log"
    with log.open("wb") as written:
        serving = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--json"],
            stdout=subprocess.PIPE,
            stderr=written,
            text=True,
            cwd=place.folder,
            env=place.environment,
        )
    try:
        yield Served(place, json.loads(first_document(serving, log))["url"], token)
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
        shutil.rmtree(place.home, ignore_errors=True)
