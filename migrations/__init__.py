"""Alembic migrations of the registry. Installed as a package, so that `onboard db upgrade` works from a wheel."""

from typing import Final

# Every revision in order; a test compares them with the files. A process keeps them from its start, because the files
# may be those of another release by the time that it needs them.
REVISIONS: Final = (
    "20261121a", "20261121d", "20261122a", "20261123a", "20261124a", "20261124b", "20261124c", "20261125a",
    "20261125b", "20261126a", "20261126b", "20261126c", "20261126d", "20261128i", "20261128u", "20261128f",
    "20261128p", "20261129a", "20261129d", "20261129r", "20261129l", "20261129f", "20261129i",
    "20261129k",
)  # fmt: skip
HEAD: Final = REVISIONS[-1]
"""The revision that this code is written for."""
FIRST_RECORDED: Final = "20261129k"
"""From here on databases record the oldest code that works on them; no code from before reads that."""
