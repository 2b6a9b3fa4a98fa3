"""Intervals, bounds and hypothesis tests, shared by all stages: arrays in, numbers out."""
