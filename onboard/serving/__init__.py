"""Serving: the base loaded once, any task by its embedding, tasks mixed in one batch."""

from onboard.serving.predictor import Prediction, Predictor

__all__ = ["Prediction", "Predictor"]
