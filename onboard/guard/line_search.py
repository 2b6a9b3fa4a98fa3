"""The guard of a tuned hypernetwork: find the share of the step at which no earlier task loses."""

from __future__ import annotations

import hashlib
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from onboard.contract.guard import GuardedTask, GuardVerdict, Objection
from onboard.guard.answers import Question, answers
from onboard.guard.evidence import Canaries, Material, gather
from onboard.guard.risk import most_at_risk
from onboard.guard.settings import GuardSettings
from onboard.guard.verdicts import Seen, judge
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between
from onboard.model.protected import Protection

DEFAULT: Final = GuardSettings()
_RULE = "half of them chosen by similarity to the new task's embedding, half by how much their generated weights change"
_AT_ONCE_REFUSED = "those that cannot be judged, which refuse the change immediately"
_NAMED: Final = 3


@dataclass(frozen=True)
class Step:
    """The step of a tuning.

    Args:
        present: the head that it started from.
        candidate: the tuned hypernetwork.
        near: (t,) the new task's embedding; similar tasks are at risk.
    """

    present: Hypernetwork
    candidate: Hypernetwork
    near: np.ndarray


def guard(
    engine: Engine,
    step: Step,
    protection: Protection,
    settings: GuardSettings = DEFAULT,
    *,
    seed: int = 0,
    left_out: int = 0,
    execution: Execution = UNWATCHED,
    answered: MutableMapping[bytes, np.ndarray] | None = None,
) -> GuardVerdict:
    """Judge a tuned hypernetwork against all earlier tasks. On a CPU, equal arguments give equal verdicts.

    Shares of the step are tried from the whole downwards on one half of every task's evidence, with a somewhat smaller
    margin. The first share that all tasks pass is checked once on the other half, with the full margin. If it fails
    there, the step is rejected without further tries.

    Args:
        engine: the backbone, with any hypernetwork.
        step: the step to the tuned hypernetwork.
        protection: the earlier tasks, each with the hypernetwork that it was learned under, and canaries from
            `canaries.canary_ids` that the candidate was not tuned on.
        settings: how strict it is.
        seed: seed of the halves and of each task's canaries.
        left_out: number of tasks that the caller left out with `risk.most_at_risk` before reading their rows.
        execution: called before every batch.
        answered: answers under the hypernetworks that the tasks were learned under, from earlier calls; this call adds
            its own. They make up about half of the work, and stay the same if the head moves.

    Raises:
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    tasks = protection.tasks
    chosen = [tasks[place] for place in most_at_risk(tasks, step.candidate, step.near, settings.most_tasks)]
    materials = _gathered(engine, replace(protection, tasks=chosen), settings, seed)
    unchecked = left_out + len(tasks) - len(chosen)
    barred = [verdict for material in materials if (verdict := _barred(material))]
    if barred:
        unjudged = len(chosen) - len(barred)
        rule = _AT_ONCE_REFUSED if unjudged else _rule(unchecked)
        return _rejection(barred, _cannot(barred), settings, unchecked=unchecked + unjudged, chosen=rule)
    known = {} if answered is None else answered
    choosing, confirming = (_Half(engine, materials, half, execution, known) for half in (0, 1))
    found = _searched(step, choosing, confirming, settings)
    return found.model_copy(update={"unchecked": unchecked, "chosen": _rule(unchecked)})


def _searched(step: Step, choosing: _Half, confirming: _Half, settings: GuardSettings) -> GuardVerdict:
    """Return the verdict on the largest share of the step that both halves of the evidence accept."""
    stricter = replace(settings, margin=settings.choosing * settings.margin)
    objections: list[Objection] = []
    for share in settings.shares:
        changed = between(step.present, step.candidate, share)
        verdicts, again = choosing.judged(changed, stricter), False
        if all(verdict.passed for verdict in verdicts):
            verdicts, again = confirming.judged(changed, settings), True
        if all(verdict.passed for verdict in verdicts):
            reason = _accepted(share, len(verdicts))
            return GuardVerdict(
                verdict="accepted", share=share, margin=settings.margin, reason=reason, tasks=tuple(verdicts),
                unchecked=0, chosen=None, objections=tuple(objections),
            )  # fmt: skip
        refusing = tuple(verdict.task for verdict in verdicts if not verdict.passed)
        objections.append(Objection(share=share, tasks=refusing))
        if again:
            break
    reason = _rejected(verdicts, share, again)
    return _rejection(verdicts, reason, settings, objections=objections)


def _rejection(
    verdicts: Sequence[GuardedTask],
    reason: str,
    settings: GuardSettings,
    *,
    unchecked: int = 0,
    chosen: str | None = None,
    objections: Sequence[Objection] = (),
) -> GuardVerdict:
    return GuardVerdict(
        verdict="rejected", share=0.0, margin=settings.margin, reason=reason, tasks=tuple(verdicts),
        unchecked=unchecked, chosen=chosen, objections=tuple(objections),
    )  # fmt: skip


def clear(
    engine: Engine,
    candidate: Hypernetwork,
    protection: Protection,
    settings: GuardSettings = DEFAULT,
    *,
    seed: int = 0,
    execution: Execution = UNWATCHED,
) -> list[GuardedTask]:
    """Judge each task under a given hypernetwork: nothing is chosen, so all evidence is used at once.

    Args:
        See `guard`.

    Returns:
        A verdict per task, in order. Tasks that cannot be judged do not block the others.

    Raises:
        OutOfMemoryError: the GPU cannot hold even a single row.
    """
    materials = _gathered(engine, protection, settings, seed)
    barred = [_barred(material) for material in materials]
    rest = [material for material, verdict in zip(materials, barred, strict=True) if verdict is None]
    judged = iter(_Half(engine, rest, None, execution).judged(candidate, settings))
    return [verdict or next(judged) for verdict in barred]


def _gathered(engine: Engine, protection: Protection, settings: GuardSettings, seed: int) -> list[Material]:
    shapes = Canaries.sorted(engine.encoder, protection.canaries)
    return [gather(task, shapes, settings, seed) for task in protection.tasks]


@dataclass
class _Half:
    """A half of every task's evidence (all of it for None), with the answers before the change."""

    engine: Engine
    materials: Sequence[Material]
    half: int | None
    execution: Execution
    answered: MutableMapping[bytes, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows = [material.of(self.half) for material in self.materials]
        self._before: list[np.ndarray] | None = None

    def judged(self, changed: Hypernetwork, settings: GuardSettings) -> list[GuardedTask]:
        """Return a verdict per task on its answers under the changed hypernetwork."""
        if self._before is None:
            self._before = self._answers_before()
        after = self._answers([changed] * len(self.materials), range(len(self.materials)))
        seen = [
            Seen.between(
                material.task.name,
                evidence,
                old,
                new,
                material.targets[rows[rows < len(material.targets)]],
                material.group[rows],
            )
            for material, rows, old, new in zip(self.materials, self._rows, self._before, after, strict=True)
            if (evidence := material.evidence) is not None
        ]
        return judge(seen, settings)

    def _answers_before(self) -> list[np.ndarray]:
        """Return the answers before the change; only those that are not known yet are computed."""
        keys = [_key(material.task.name, self._ids(place)) for place, material in enumerate(self.materials)]
        unknown = [place for place, key in enumerate(keys) if key not in self.answered]
        references = [self.materials[place].task.reference for place in unknown]
        for place, before in zip(unknown, self._answers(references, unknown), strict=True):
            self.answered[keys[place]] = before
        return [self.answered[key] for key in keys]

    def _answers(self, hypernetworks: Sequence[Hypernetwork], places: Sequence[int]) -> list[np.ndarray]:
        """Return the answers of the tasks at these places, each under its hypernetwork."""
        tasks = [self.materials[place].task for place in places]
        questions = [
            Question(hypernetwork, task.z, task.trie, self._ids(place))
            for hypernetwork, task, place in zip(hypernetworks, tasks, places, strict=True)
        ]
        return answers(self.engine, questions, self.execution.before_batch, self.execution.scored_at_once)

    def _ids(self, place: int) -> list[Sequence[int]]:
        ids = self.materials[place].ids
        return [ids[row] for row in self._rows[place]]


def _key(task: str, ids: Sequence[Sequence[int]]) -> bytes:
    """Return the key of a task's answers on rows. A task's version never changes."""
    digest = hashlib.sha256(task.encode())
    for row in ids:
        digest.update(b"\n" + np.asarray(row, dtype=np.int64).tobytes())
    return digest.digest()


def _rule(unchecked: int) -> str | None:
    return _RULE if unchecked else None


def _barred(material: Material) -> GuardedTask | None:
    """Return the verdict on a task that cannot be judged, which counts as failed."""
    task = material.task
    if task.trouble is not None:
        return GuardedTask.unjudged(task.name, task.trouble)
    if material.evidence is None:
        return GuardedTask.unjudged(task.name, "There are too few rows and texts to judge it.")
    return None


def _accepted(share: float, tasks: int) -> str:
    if not tasks:
        return "There are no earlier tasks that could lose."
    who = "The earlier task loses" if tasks == 1 else f"The {tasks} earlier tasks that were checked lose"
    return f"{who} no more than the margin with {_step(share)}."


def _rejected(verdicts: Sequence[GuardedTask], share: float, again: bool) -> str:
    standing = [verdict for verdict in verdicts if not verdict.passed]
    lost = [verdict for verdict in standing if verdict.verdict == "fail"]
    what = "may lose accuracy" if lost else "has too few held-out rows to show that nothing is lost"
    when = "In the second test, with" if again else "Even with"
    return (
        f"{when} {_step(share)}, {_names(lost or standing)} {what}. The hypernetwork does not change, and only the "
        "embedding is published, as with --tune-hypernetwork never."
    )


def _step(share: float) -> str:
    return "the whole step" if share == 1.0 else f"{Fraction(share)} of the step"


def _cannot(barred: Sequence[GuardedTask]) -> str:
    return (
        f"{_names(barred)} cannot be judged ({barred[0].reason.rstrip('.')}): "
        "restore it (onboard restore), or delete it (onboard tasks delete TASK), and submit again."
    )


def _names(verdicts: Sequence[GuardedTask]) -> str:
    more = len(verdicts) - _NAMED
    named = ", ".join(verdict.task for verdict in verdicts[:_NAMED])
    return named if more <= 0 else f"{named} and {more} more"
