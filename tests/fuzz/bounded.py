"""How long is fuzzed: a few examples from a fixed seed in every run of the tests, or as many as somebody has time for.

FUZZ_FACTOR=100 pytest tests/fuzz     a hundred times as many examples, from another seed each time

Hypothesis prints what it found; it is added to its test as an `@example`, which every later run tries first.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))
_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def bounded(examples: int) -> settings:
    """So many examples, always the same ones; with FUZZ_FACTOR that many times more, always others."""
    return settings(
        max_examples=examples * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=_SLOW,
        print_blob=True,
    )
