"""Alembic migrations of the registry. Installed as a package, so that `onboard db upgrade` works from a wheel."""

from typing import Final

HEAD: Final = "20261129l"  # the revision that this code requires; a test compares it with the newest file
