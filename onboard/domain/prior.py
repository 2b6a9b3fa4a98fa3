"""The prior of a base: which lessons of earlier tasks make it, version by version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from onboard.errors import InputError

Form = Literal["single", "pairs"]  # texts by themselves, or two of them
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def require_form(name: str) -> Form:
    """The form of that name. Raises InputError."""
    for form in FORMS:
        if form == name:
            return form
    raise InputError("unknown-form", field="form", name=name)


def form_of(*, pairs: bool) -> Form:
    """The form of a task that takes pairs of texts, or single ones."""
    return "pairs" if pairs else "single"


@dataclass(frozen=True, slots=True)
class Taught:
    """A lesson as a prior names it.

    Args:
        task, version: whose it is.
        lesson: digest of the lesson's file; of a shipped task that of the base's file of lessons.
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
    """One version of a base's prior for one form of task: immutable. It is a function of its lessons alone.

    Args:
        version: 1, 2, …; 0 until it is in the line. A number is never given out again.
        digest: of what it is made of: base, form, lessons, and how lessons are weighed.
        fitted: digest of its numbers, on the machine that fitted it.
        lessons: how many it was fitted to.
        left_out: tasks whose lesson has numbers that are not finite.
        reason: why it was fitted.
        created_at: epoch seconds.
        retired_at: epoch seconds at which it stopped being the head; None of the head.
        unlearning: the deleted task that it was fitted to; None where there is none.
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
        """The version before it; None of the first."""
        return self.version - 1 or None

    @property
    def head(self) -> bool:
        """Whether new tasks are learned with it."""
        return self.retired_at is None


def digest_of_prior(base_digest: str, form: Form, weighing: str, taught: Iterable[Taught]) -> str:
    """`sha256:…` of all that a prior is made of.

    Args:
        weighing: how lessons are weighed; another release may do it in another way.
        taught: its lessons, in any order.
    """
    lessons = sorted((lesson.task, lesson.lesson) for lesson in taught)
    content = json.dumps([base_digest, form, weighing, lessons], separators=(",", ":"))
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()
