"""The guard: accept a change of the shared hypernetwork only if no earlier task loses (docs/explanation/guard.md)."""

from onboard.guard.line_search import Step, clear, guard
from onboard.guard.settings import GuardSettings

__all__ = ["GuardSettings", "Step", "clear", "guard"]
