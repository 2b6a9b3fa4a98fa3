"""Alembic migrations of the registry. Installed as a package, so that `onboard db upgrade` works from a wheel."""

from typing import Final

HEAD: Final = "20261129i"  # the revision that this code is written for; a test compares it with the newest file
