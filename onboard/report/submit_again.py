"""The command that submits a job's dataset again with the same options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onboard.domain.label_set import MULTILABEL
from onboard.domain.methods import AUTO, OWN_START
from onboard.domain.report import METRICS
from onboard.report.reading import listing, mapping, number, text, within


def submit_again(document: Mapping[str, Any], **changed: str) -> str:
    """Return `onboard submit …` with the job's options as far as known, except for changes.

    Args:
        changed: options by their names with underscores, for example `metric="macro_f1"`.
    """
    task = text(document.get("task")) or "NAME"
    options = {**_asked(document), **changed}
    flags = (f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    settings = mapping(within(document, "training", "settings")) if options.get("method", AUTO) != AUTO else {}
    of_method = (f"--method-setting {name}={json.dumps(value)}" for name, value in settings.items() if number(value))
    return " ".join(["onboard submit --dataset FILE --task", task, *flags, *of_method])


def own_start(document: Mapping[str, Any]) -> bool:
    """Return whether the job trained no embedding, so that it had no start."""
    return bool(within(document, "init", "chosen") == OWN_START)


def _asked(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that were given according to the document, by name."""
    asked = {}
    init, tuning = mapping(document.get("init")), mapping(document.get("tuning"))
    if mapping(document.get("methods")):
        asked["method"] = AUTO
    elif own_start(document):
        asked["method"] = text(within(document, "training", "method"))
    if init.get("reason") == "asked for" and text(init.get("chosen")):
        asked["init"] = text(init.get("chosen"))
    metric = text(document.get("metric"))
    if metric and metric not in [names[0] for names in METRICS.values()]:
        asked["metric"] = metric
    if tuning.get("asked") == "always":
        asked["tune_hypernetwork"] = "always"
    elif document.get("tuning", tuning) is None and not own_start(document):  # the job was not allowed to tune
        asked["tune_hypernetwork"] = "never"
    if within(document, "dataset", "kind") == MULTILABEL:
        asked["kind"] = MULTILABEL
    if number(within(document, "dataset", "rows", "test")):
        asked["test"] = "TEST_FILE"
    seed = next(iter(listing(within(document, "pins", "seeds"))), 0)
    if number(seed):
        asked["seed"] = f"{number(seed):.0f}"
    return asked
