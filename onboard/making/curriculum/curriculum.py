"""The groups of training tasks, one per kind, each with its share of the steps.

Eight tasks give a hypernetwork only eight points in the space of task embeddings. Hundreds of tasks of many kinds fill
the space, so that a new embedding can be found in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from onboard.making.curriculum.batch import TrainingTask
from onboard.making.curriculum.counts import KINDS, CurriculumCounts
from onboard.making.curriculum.form import form
from onboard.making.curriculum.from_sources import renamed, restricted, sources
from onboard.making.curriculum.joined import joined
from onboard.making.curriculum.merged import merged
from onboard.making.curriculum.pairs import pairs
from onboard.making.curriculum.source import Source
from onboard.making.curriculum.style import style
from onboard.making.curriculum.topical import topics
from onboard.making.curriculum.workshop import PlainTexts, Workshop
from onboard.model.encoding import TextEncoder

_MAKERS: Final[dict[str, Callable[[Workshop], Sequence[TrainingTask]]]] = {
    "sources": sources,
    "renamed": renamed,
    "restricted": restricted,
    "merged": merged,
    "joined": joined,
    "topics": topics,
    "form": form,
    "style": style,
    "pairs": pairs,
}
# prefixes of names, in addition to the sources
_PLAIN: Final = ("joined-", "extended-", "topics-any-", "pairs-similar-")


@dataclass(frozen=True)
class Curriculum:
    """All training tasks in groups, each with its share of the steps.

    Args:
        groups: tasks and share; no group is empty. The sources come first, in their order.
        kinds: kind of each group, from KINDS.
    """

    groups: tuple[tuple[tuple[TrainingTask, ...], float], ...]
    kinds: tuple[str, ...]

    @property
    def tasks(self) -> list[TrainingTask]:
        """The tasks of all groups, in order."""
        return [task for group, _ in self.groups for task in group]

    def of(self, kind: str) -> tuple[TrainingTask, ...]:
        """Return the tasks of one kind; empty if it is left out."""
        return next((group for each, (group, _) in zip(self.kinds, self.groups, strict=True) if each == kind), ())

    @property
    def plain(self) -> Curriculum:
        """The tasks that a backbone without task embeddings can learn, because label words and text determine the
        answer.
        """
        return self.only(lambda kind, task: kind == "sources" or task.name.startswith(_PLAIN))

    def only(self, fits: Callable[[str, TrainingTask], bool]) -> Curriculum:
        """Return the tasks that fit, by kind and task, without empty groups."""
        fitting = []
        for kind, (group, share) in zip(self.kinds, self.groups, strict=True):
            if tasks := tuple(task for task in group if fits(kind, task)):
                fitting.append((kind, (tasks, share)))
        return Curriculum(tuple(group for _, group in fitting), tuple(kind for kind, _ in fitting))


def build_curriculum(
    sources: Sequence[Source], material: PlainTexts, counts: CurriculumCounts, encoder: TextEncoder, seed: int
) -> Curriculum:
    """Build all kinds with a share. Kinds without tasks in the material are left out.

    Args:
        sources: labeled tasks; their validation rows are not used.
        material: plain texts with the teacher's vectors.
        counts: number of tasks and share of each kind.
        seed: determines, with the other arguments, every task and every batch.
    """
    workshop = Workshop(sources, material, counts, encoder, seed)
    groups, kinds, names = [], [], set[str]()
    for kind in KINDS:
        count = counts.of(kind)
        if not count.share or not count.tasks:
            continue
        by_name = {task.name: task for task in _MAKERS[kind](workshop) if task.name not in names}
        tasks = list(by_name.values())
        if len(tasks) > count.tasks:
            indices = sorted(workshop.random(f"tasks of {kind}").permutation(len(tasks))[: count.tasks].tolist())
            tasks = [tasks[index] for index in indices]
        if tasks:
            names |= {task.name for task in tasks}
            groups.append((tuple(tasks), count.share))
            kinds.append(kind)
    return Curriculum(tuple(groups), tuple(kinds))
