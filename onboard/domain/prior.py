"""The prior of a base, with the lessons of earlier tasks in each version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from onboard.errors import InputError

Form = Literal["single", "pairs"]  # single texts, or pairs of them
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def require_form(name: str) -> Form:
    """Return the form with that name. Raises InputError."""
    for form in FORMS:
        if form == name:
            return form
    raise InputError("unknown-form", field="form", name=name)


def form_of(*, pairs: bool) -> Form:
    """Return the form of a task with pairs of texts or single ones."""
    return "pairs" if pairs else "single"


@dataclass(frozen=True, slots=True)
class Taught:
    """A lesson as listed by a prior.

    Args:
        lesson: digest of the lesson's file; for a shipped task, of the base's file of lessons.
        shipped: whether the lesson comes with the base.
    """

    task: str
    version: int
    lesson: str
    shipped: bool = False

    @property
    def reference(self) -> str:
        """`task@vN`."""
        return f"{self.task}@v{self.version}"


@dataclass(frozen=True, slots=True)
class PriorVersion:
    """One immutable version of a base's prior for one form of task. It depends only on its lessons.

    Args:
        version: 1, 2, …; 0 until it is registered. Numbers are never reused.
        digest: of its inputs: base, form, lessons, and how lessons are weighted.
        fitted: digest of its numbers, on the machine that fitted it.
        lessons: number of lessons.
        left_out: tasks with lessons that cannot be used: missing, damaged, of another base, or not finite.
        created_at: epoch seconds.
        retired_at: epoch seconds at which it stopped being the head; None for the head.
        unlearning: the deleted task that it was fitted to; None if there is none.
    """

    base_digest: str
    form: Form
    version: int
    digest: str
    fitted: str
    lessons: int
    left_out: tuple[str, ...] = ()
    reason: str = ""
    created_at: float = 0.0
    retired_at: float | None = None
    unlearning: str | None = None

    @property
    def parent(self) -> int | None:
        """The previous version; None for the first."""
        return self.version - 1 or None

    @property
    def head(self) -> bool:
        """Whether new tasks use it."""
        return self.retired_at is None


def digest_of_prior(base_digest: str, form: Form, weighing: str, taught: Iterable[Taught]) -> str:
    """Return the `sha256:…` digest of a prior's inputs.

    Args:
        weighing: how lessons are weighted, which may differ between releases.
        taught: its lessons, in any order.
    """
    lessons = sorted((lesson.task, lesson.lesson) for lesson in taught)
    content = json.dumps([base_digest, form, weighing, lessons], separators=(",", ":"))
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()
