"""Where a job's document has remedies: the command line and HTTP say them in words of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Reword = Callable[[Mapping[str, Any]], dict[str, Any]]


def reworded_job(job: Mapping[str, Any], reword: Reword) -> dict[str, Any]:
    """A job's document, brief or in full, with other remedies.

    Args:
        job: as `onboard.jobs.control` makes it; what it lacks, or what is of another form, is passed over.
        reword: makes another one of a part that has a remedy: of the error, of why it waits, of each warning of its
            dataset, of each error among its events.
    """
    parts: dict[str, Any] = {key: reword(job[key]) for key in ("error", "waiting") if isinstance(job.get(key), dict)}
    dataset, events = job.get("dataset"), job.get("events")
    if isinstance(dataset, dict) and isinstance(dataset.get("warnings"), list):
        warnings = [reword(warning) if isinstance(warning, dict) else warning for warning in dataset["warnings"]]
        parts["dataset"] = {**dataset, "warnings": warnings}
    if isinstance(events, list):
        parts["events"] = [reworded_event(event, reword) if isinstance(event, dict) else event for event in events]
    return {**job, **parts}


def reworded_event(event: Mapping[str, Any], reword: Reword) -> dict[str, Any]:
    """One line of a job's log, with another remedy of the error that it tells of."""
    numbers = event.get("numbers")
    if not isinstance(numbers, dict) or not isinstance(numbers.get("error"), dict):
        return dict(event)
    return {**event, "numbers": {**numbers, "error": reword(numbers["error"])}}
