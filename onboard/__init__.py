"""Onboard: learn small text tasks one after another on one frozen T5."""

__all__ = ["__version__"]
__version__ = "0.1.0"
