"""What tests of several tables of the registry begin with."""

from __future__ import annotations

import pytest
from support.registry_samples import register_sample_base

from onboard.registry.database import Database


@pytest.fixture
def registered_base(database: Database) -> None:
    """The sample base, without which the registry takes no version."""
    register_sample_base(database)
