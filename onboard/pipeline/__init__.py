"""A job from the inside: one module a stage, and `run`, which knows their order."""
