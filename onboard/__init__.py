"""Onboard: learn one small text task after another on one frozen T5, without forgetting."""

__all__ = ["__version__"]
__version__ = "0.1.0"
