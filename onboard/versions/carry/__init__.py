"""Use case: tasks that are pinned to another hypernetwork version than the head move to it, where they lose nothing.

A carried version has the numbers of the one that it comes from, and is pinned to the head. The guard decides, for each
task by itself: the head is compared with the hypernetwork that the numbers were learned under, so that small losses
cannot add up over many heads. No step is chosen here, so all evidence counts at once. Then decision 9 holds, as for
every version: `latest` does not move to what is significantly worse than what it names.

What is not cleared stays as it is: it goes on being served with its own hypernetwork. Carrying again changes nothing.
"""

from onboard.versions.carry.outcomes import Carried, CarryOutcome
from onboard.versions.carry.tasks import MOST_TASKS, carry, carry_some, carry_task

__all__ = ["MOST_TASKS", "Carried", "CarryOutcome", "carry", "carry_some", "carry_task"]
