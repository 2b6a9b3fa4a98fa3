"""The registry without its fence: nobody asks whether an attempt still owns its job, at no heartbeat and no commit.

For `bench.chaos.unfenced_pipeline` alone, which makes the mutant of it. There is no switch in the product.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement

from onboard.registry.tables import JobRow


def owned_by(job_id: str, attempt: int) -> tuple[ColumnElement[bool], ...]:  # noqa: ARG001
    """`onboard.registry.claims.owned_by` as it would be."""
    return (JobRow.id == job_id,)
