"""The mutant: the pipeline of the runs, in a worker's process that has no fence (`--pipeline …unfenced_pipeline`).

A run of it has to be found wrong; while it is not, a run that finds nothing proves nothing. Importing this takes the
fence out of the process that imports it: only workers that `python -m bench.chaos --mutant` starts do.
"""

from __future__ import annotations

from bench.chaos.pipeline import preload, run
from bench.chaos.unfenced import owned_by
from onboard.registry import claims

__all__ = ["preload", "run"]

claims.owned_by = owned_by
