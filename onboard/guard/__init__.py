"""The guard: lets a change of the shared hypernetwork through only if no earlier task loses by it (docs/guard.md)."""

from onboard.guard.line_search import Step, clear, guard
from onboard.guard.settings import GuardSettings

__all__ = ["GuardSettings", "Step", "clear", "guard"]
