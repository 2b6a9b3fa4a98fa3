"""Rewrite the remedies in a job's document; command line and HTTP word them differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Reword = Callable[[Mapping[str, Any]], dict[str, Any]]


def reworded_job(job: Mapping[str, Any], reword: Reword) -> dict[str, Any]:
    """Return a job's document, brief or full, with other remedies.

    Args:
        job: from `onboard.jobs.control`; missing or unknown parts are skipped.
        reword: replaces a part with a remedy: the error, the reason why it waits, each warning about its dataset, and
            each error among its events.
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
    """Return an event of a job's log with another remedy of its error."""
    numbers = event.get("numbers")
    if not isinstance(numbers, dict) or not isinstance(numbers.get("error"), dict):
        return dict(event)
    return {**event, "numbers": {**numbers, "error": reword(numbers["error"])}}
