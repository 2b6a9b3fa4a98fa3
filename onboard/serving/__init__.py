"""Serving: the base loaded once, any task by its embedding, tasks mixed in one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onboard.serving.predictor import Prediction, Predictor

__all__ = ["Prediction", "Predictor"]


def __getattr__(name: str) -> Any:
    """Torch is imported when a predictor is asked for: requests are checked without it."""
    if name in __all__:
        from onboard.serving import predictor

        return getattr(predictor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
