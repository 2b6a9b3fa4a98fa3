"""The ways in which a task's dataset or labels can be changed."""

from __future__ import annotations

from typing import Final, Literal

ChangeAction = Literal["add", "replace", "remove", "rename", "merge", "delete", "describe"]

OF_LABELS: Final = frozenset({"rename", "merge", "delete", "describe"})
"""Actions after which aliases stay in place until somebody promotes the new version."""
