"""Submitting over the door."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient


def submit(door: TestClient, rows: bytes, key: str = "", **fields: Any) -> Any:
    """Submit `rows` as the task weather."""
    headers = {"Idempotency-Key": key} if key else {}
    files = {"dataset": ("weather.jsonl", rows)}
    return door.post("/v1/jobs", files=files, data=fields or None, headers=headers)
