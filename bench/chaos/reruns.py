"""How long it took from a kill to the next attempt of the job that it hit."""

from __future__ import annotations

import statistics
from typing import Any, Final

from sqlalchemy import select

from bench.chaos.journal import Journal
from onboard.domain.job import JobState
from onboard.registry.services import Services
from onboard.registry.tables import JobEventRow

AFTER_LEASE_SECONDS: Final = 5.0  # a killed worker's job is wanted to run again so soon after its lease has run out


def reruns(services: Services, journal: Journal, lease_seconds: float) -> dict[str, dict[str, float]]:
    """Seconds by victim. A job that had published when the kill came counts for none.

    The moments of the kills are by this machine's clock, those of the claims by the database's: the same here.
    """
    with services.database.read() as session:
        claims = {
            (job, attempt): at
            for job, attempt, at in session.execute(
                select(JobEventRow.job, JobEventRow.attempt, JobEventRow.at).where(
                    JobEventRow.kind == "state", JobEventRow.message == JobState.RUNNING
                )
            )
        }
    seconds: dict[str, list[float]] = {}
    for kill in journal.of("kill"):
        again = claims.get((kill["job"], (kill["attempt"] or 0) + 1))
        if again is not None:
            seconds.setdefault(kill["victim"], []).append(again - kill["at"])
    return {victim: summary(values, lease_seconds) for victim, values in sorted(seconds.items())}


def summary(values: list[float], lease_seconds: float) -> dict[str, Any]:
    """Number, median and maximum in seconds, and how many were within the target."""
    return {
        "n": len(values),
        "p50": round(statistics.median(values), 2),
        "max": round(max(values), 2),
        "within_lease_and_5": sum(value <= lease_seconds + AFTER_LEASE_SECONDS for value in values),
    }
