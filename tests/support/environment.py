"""The environment of a test: none of the machine's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from onboard.settings import Settings


def forget_settings(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Unset every setting of whoever runs the tests; a home and secrets would lie in `folder`, where there are none."""
    for field in Settings.model_fields:
        monkeypatch.delenv(f"ONBOARD_{field.upper()}", raising=False)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # of images: a user's shell has buffers that can fail late
    monkeypatch.setenv("ONBOARD_HOME", str(folder / "home"))
    monkeypatch.setenv("ONBOARD_SECRETS_DIR", str(folder / "no-secrets"))
