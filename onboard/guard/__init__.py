"""The guard: lets a change of the shared hypernetwork through only if no earlier task loses by it (docs/guard.md)."""

from onboard.guard.judgement import Judgement, TaskVerdict
from onboard.guard.line_search import clear, guard
from onboard.guard.settings import GuardSettings

__all__ = ["GuardSettings", "Judgement", "TaskVerdict", "clear", "guard"]
