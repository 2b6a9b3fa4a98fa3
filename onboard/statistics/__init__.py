"""Intervals, bounds and tests of hypotheses, once for every stage: arrays in, numbers out."""
