"""Small files to read, and what reading them says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from onboard.data.problems import Finding
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.errors import DatasetError

Rows = Iterable[dict[str, Any]]


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: Rows, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_bytes(tmp_path: Path) -> Callable[[bytes, str], Path]:
    def write(data: bytes, name: str) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def problems_of() -> Callable[..., list[dict[str, Any]]]:
    """Read a file that is wrong; its problems."""

    def read(path: Path, **options: Any) -> list[dict[str, Any]]:
        with pytest.raises(DatasetError) as caught:
            read_dataset(path, ReadOptions(**options))
        assert caught.value.exit_code == 2
        assert caught.value.data["problem_count"] >= len(caught.value.data["problems"]) > 0
        assert all(
            problem["message"] and not problem["message"].endswith(".") for problem in caught.value.data["problems"]
        )
        problems: list[dict[str, Any]] = caught.value.data["problems"]
        return problems

    return read


@pytest.fixture
def read() -> Callable[..., Checked]:
    """Read a file that is right."""

    def read(path: Path, **options: Any) -> Checked:
        return read_dataset(path, ReadOptions(**options))

    return read


@pytest.fixture
def warning_of() -> Callable[..., Finding]:
    """Read a file that is right; its one warning of this code."""

    def read(code: str, path: Path, **options: Any) -> Finding:
        warnings = [
            warning for warning in read_dataset(path, ReadOptions(**options)).report.warnings if warning.code == code
        ]
        assert len(warnings) == 1, f"{len(warnings)} warnings {code}"
        return warnings[0]

    return read
