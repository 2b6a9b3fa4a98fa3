"""Describe the contribution of earlier tasks to a readout (docs/explanation/prior.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onboard.report.reading import mapping, mappings, number, text
from onboard.report.sentences import metric_name


def earlier_tasks(document: Mapping[str, Any]) -> list[str]:
    """Return sentences: how far the readout was drawn, what that adds in points, and which tasks contributed most."""
    prior = mapping(document.get("prior"))
    scale = number(prior.get("scale"))
    return [] if scale is None else [_drawn(prior, scale), *_points(prior), *_most(prior)]


def _drawn(prior: Mapping[str, Any], scale: float) -> str:
    version = number(prior.get("version"))
    named = f" (prior v{version:.0f})" if version else ""
    lessons = f"{number(prior.get('lessons')) or 0:,.0f} earlier tasks"
    if not scale:
        return f"The readout ignores what {lessons} suggest: held-out rows do not prefer it, or its labels say nothing."
    return (
        f"The readout is drawn {100 * scale:.4g}% of the way towards what {lessons} suggest for its label words{named}."
    )


def _points(prior: Mapping[str, Any]) -> list[str]:
    """Return the points with and without the prior; empty if too few rows were predicted, or it was not used."""
    with_prior, without, rows = (number(prior.get(name)) for name in ("with_prior", "without", "rows"))
    if with_prior is None or without is None or not prior.get("scale"):
        return []
    measure = metric_name(text(prior.get("metric")) or "accuracy")
    points = f"{with_prior - without:+.1f} points of {measure} ({without:.1f} → {with_prior:.1f}"
    return [f"They change the readout by {points}, {rows:,.0f} cross-validated rows)."]


def _most(prior: Mapping[str, Any]) -> list[str]:
    tasks = mappings(prior.get("tasks"))
    shares = [f"{text(task.get('task'))} {100 * (number(task.get('share')) or 0):.0f}%" for task in tasks]
    return [f"Contributed most: {', '.join(shares)}."] if shares else []
