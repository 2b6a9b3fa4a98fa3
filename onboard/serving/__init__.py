"""Predictions for any task from one loaded base, with tasks mixed in one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onboard.domain.prediction import Prediction

if TYPE_CHECKING:
    from onboard.serving.predictor import Predictor

__all__ = ["Prediction", "Predictor"]


def __getattr__(name: str) -> Any:
    """Import torch only when a predictor is used: requests are validated without it."""
    if name == "Predictor":
        from onboard.serving.predictor import Predictor

        return Predictor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
