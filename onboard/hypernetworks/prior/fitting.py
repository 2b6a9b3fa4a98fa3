"""The numbers of a prior, fitted to the lessons that it names; what was fitted lately stays in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.domain.prior import Form, PriorVersion, Taught, digest_of_prior
from onboard.hypernetworks.prior.lessons import read_taught
from onboard.registry.services import Services
from onboard.statistics.prior import HALF_TAUGHT, RIDGE, Lesson, Prior, fit_prior
from onboard.storage.cache import Cache

WEIGHING: Final = f"ridge {RIDGE:g}, half at {HALF_TAUGHT:g} rows"  # in the digest: another release may weigh otherwise
_FITTED: Final = 3  # priors that stay in memory, of some 15 MB and their lessons

_fitted: Final = Cache[tuple[str, tuple[str, ...]], Prior | None](_FITTED)


@dataclass(frozen=True)
class PinnedPrior:
    """What a job draws its readout towards.

    Args:
        version: of the base's prior.
        prior: its numbers, fitted without the tasks that are left out.
        left_out: the job's own task, and tasks that were learned from rows of the job.
    """

    version: PriorVersion
    prior: Prior
    left_out: tuple[str, ...] = ()


def fitted(
    services: Services, base: Base, form: Form, taught: Iterable[Taught], without: Collection[str] = ()
) -> Prior | None:
    """The prior of these lessons, but for those of some tasks; None where no sound lesson is left.

    Raises:
        DamagedError: a lesson is gone or damaged.
        PinMismatchError: a lesson belongs to another base.
    """
    lessons = [lesson for lesson in taught if lesson.task not in without]
    key = digest_of_prior(base.digest, form, WEIGHING, lessons), tuple(lesson.task for lesson in lessons)
    return _fitted.get(key, lambda: _alike_everywhere(read_taught(services, base, lessons)))


def _alike_everywhere(lessons: dict[str, Lesson]) -> Prior | None:
    """The prior of lessons, the same to the last bit however many threads a process has."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return fit_prior(lessons)


def forget_fitted() -> None:
    """As in a process that has fitted nothing yet."""
    _fitted.clear()


def digest_of_numbers(prior: Prior) -> str:
    """`sha256:…` of the numbers of a prior: equal on the same build and machine."""
    return "sha256:" + hashlib.sha256(np.ascontiguousarray(prior.matrix, dtype="<f4").tobytes()).hexdigest()
