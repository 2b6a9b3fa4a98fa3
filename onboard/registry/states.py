"""Conditions on the state of jobs, in the words that the indexes were made with."""

from __future__ import annotations

from typing import Final

from sqlalchemy import literal_column

from onboard.registry.tables import JobRow

# Written out, not bound: SQLite takes a partial index only for the very words that it was made with.
IS_OPEN: Final = JobRow.state.in_([literal_column("'queued'"), literal_column("'running'")])
IS_RUNNING: Final = JobRow.state == literal_column("'running'")
