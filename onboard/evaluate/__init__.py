"""The evaluate stage: metrics with intervals, baselines on the same rows, and verdicts."""
