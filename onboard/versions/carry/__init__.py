"""Use case: carry tasks that are pinned to an earlier hypernetwork to the head, if they lose nothing.

A carried version has the numbers of its predecessor and is pinned to the head. The guard decides for each task
separately. It compares the head with the hypernetwork that the numbers were learned under, so that small losses cannot
accumulate over many heads. No step is chosen here, so all evidence is used at once. Then decision 9 applies as for
every version: `latest` does not move to a significantly worse version.

Refused tasks stay unchanged and are served with their own hypernetwork. Carrying again changes nothing.
"""

from onboard.versions.carry.outcomes import Carried, CarryOutcome
from onboard.versions.carry.tasks import MOST_TASKS, carry, carry_some, carry_task

__all__ = ["MOST_TASKS", "Carried", "CarryOutcome", "carry", "carry_some", "carry_task"]
