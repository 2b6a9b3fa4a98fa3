"""A fake service."""

from __future__ import annotations

import pytest
from fake_service import FakeService


@pytest.fixture
def service() -> FakeService:
    return FakeService()
