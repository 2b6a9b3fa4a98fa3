"""The groups of training tasks, one per kind, each with its share of the steps.

A hypernetwork that has seen eight tasks knows eight points of the space of task embeddings; hundreds of tasks of many
kinds turn the points into a space in which a new embedding can be found.
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
from onboard.making.curriculum.workshop import Material, Workshop
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
_PLAIN: Final = ("joined-", "extended-", "topics-any-", "pairs-similar-")  # names' beginnings, beside the sources


@dataclass(frozen=True)
class Curriculum:
    """All training tasks in groups, each with its share of the steps.

    Args:
        groups: tasks and share, no group empty; the sources come first, in their order.
        kinds: of each group, out of KINDS.
    """

    groups: tuple[tuple[tuple[TrainingTask, ...], float], ...]
    kinds: tuple[str, ...]

    @property
    def tasks(self) -> list[TrainingTask]:
        """The tasks of all groups, in order."""
        return [task for group, _ in self.groups for task in group]

    def of(self, kind: str) -> tuple[TrainingTask, ...]:
        """The tasks of one kind; none when it is left out."""
        return next((group for each, (group, _) in zip(self.kinds, self.groups, strict=True) if each == kind), ())

    @property
    def plain(self) -> Curriculum:
        """What a backbone without task embeddings can learn: the answer follows from the label words and the text."""
        return self.only(lambda kind, task: kind == "sources" or task.name.startswith(_PLAIN))

    def only(self, fits: Callable[[str, TrainingTask], bool]) -> Curriculum:
        """The tasks that fit, by kind and task; what has none of them is left out."""
        fitting = []
        for kind, (group, share) in zip(self.kinds, self.groups, strict=True):
            if tasks := tuple(task for task in group if fits(kind, task)):
                fitting.append((kind, (tasks, share)))
        return Curriculum(tuple(group for _, group in fitting), tuple(kind for kind, _ in fitting))


def build_curriculum(
    sources: Sequence[Source], material: Material, counts: CurriculumCounts, encoder: TextEncoder, seed: int
) -> Curriculum:
    """Every kind with a share; kinds that find no tasks in the material are left out.

    Args:
        sources: labelled tasks; their validation rows are in no task.
        material: plain texts with the teacher's vectors.
        counts: how much of each kind.
        encoder: of the base.
        seed: with the rest, decides every task and every batch.
    """
    workshop = Workshop(sources, material, counts, encoder, seed)
    groups, kinds, taken = [], [], set[str]()
    for kind in KINDS:
        count = counts.of(kind)
        if not count.share or not count.tasks:
            continue
        made = {task.name: task for task in _MAKERS[kind](workshop) if task.name not in taken}
        tasks = list(made.values())
        if len(tasks) > count.tasks:
            chosen = sorted(workshop.random(f"tasks of {kind}").permutation(len(tasks))[: count.tasks].tolist())
            tasks = [tasks[index] for index in chosen]
        if tasks:
            taken |= {task.name for task in tasks}
            groups.append((tuple(tasks), count.share))
            kinds.append(kind)
    return Curriculum(tuple(groups), tuple(kinds))
