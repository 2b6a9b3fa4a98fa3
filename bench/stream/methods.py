"""The compared methods: a frozen hypernetwork, or one tuned with each task, with or without protection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from bench.harness.as_a_job import SETTINGS, STEP
from bench.transfer.material import SETTINGS as PROBE
from bench.transfer.recipes import CREDITED, RECIPES, Recipe
from onboard.guard.settings import GuardSettings
from onboard.train.settings import TuningSettings

FROZEN, GUARDED, REGULARISED, NAIVE, LORA = "frozen", "guarded", "regularised", "naive", "lora"
LORA_RECIPE: Final[Recipe] = RECIPES[LORA, CREDITED[LORA]]


@dataclass(frozen=True)
class Method:
    """How a task is learned.

    Args:
        title: for people.
        tuning: of hypernetwork and embedding, after the embedding; None leaves the hypernetwork as it is.
        guard: what a tuned hypernetwork has to pass; None lets all through.
    """

    title: str
    tuning: TuningSettings | None = None
    guard: GuardSettings | None = None


METHODS: Final[Mapping[str, Method]] = {
    FROZEN: Method("frozen hypernetwork"),
    GUARDED: Method("tuned under the guard", TuningSettings(), GuardSettings()),
    REGULARISED: Method("tuned with the regulariser, no guard", TuningSettings()),
    NAIVE: Method("tuned naively", replace(TuningSettings(), beta=0.0)),
    LORA: Method("LoRA per task"),
}


def settings_of(name: str, rows: int) -> dict[str, Any]:
    """The settings that the numbers of a method depend on, with so many labelled rows a task; JSON-compatible."""
    if name == LORA:
        return {"recipe": asdict(LORA_RECIPE)}
    method = METHODS[name]
    settings: dict[str, Any] = {"embedding": asdict(SETTINGS.for_rows(rows)), "probe": asdict(PROBE), "step": STEP}
    if method.tuning:
        settings["tuning"] = asdict(method.tuning.for_rows(rows))
    if method.guard:
        settings["guard"] = asdict(method.guard)
    return settings
