"""The program `onboard`, and the environment that it and its servers are started in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onboard.settings import Settings

PROGRAM: Final = str(Path(sys.executable).with_name("onboard"))
_GIVEN: Final = ("home", "base", "device", "database_url", "broker_url", "artifact_url")


def inherited() -> dict[str, str]:
    """This process's environment without any setting of the service."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ONBOARD_")}


def environment_of(settings: Settings) -> dict[str, str]:
    """The same with these settings."""
    given = {f"ONBOARD_{name.upper()}": str(value) for name in _GIVEN if (value := getattr(settings, name))}
    return {**inherited(), **given}


def answer(words: list[str], environment: Mapping[str, str], program: str = PROGRAM) -> dict[str, Any]:
    """The document that a command prints with --json. Raises CalledProcessError when it fails."""
    done = subprocess.run([program, *words, "--json"], env=environment, check=True, capture_output=True, text=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document
