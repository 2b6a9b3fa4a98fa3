"""Fit priors to their lessons, with a cache in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.data.verbaliser import silent_labels
from onboard.domain.dataset import Label
from onboard.domain.prior import Form, PriorVersion, Taught, digest_of_prior
from onboard.hypernetworks.prior.lessons import read_taught
from onboard.registry.services import Services
from onboard.statistics.prior import HALF_TAUGHT, RIDGE, Lesson, Prior, fit_prior
from onboard.statistics.readout import PRIOR_SCALES, SILENT_SCALE
from onboard.storage.cache import Cache

# part of the digest, because other releases may use other weights
WEIGHING: Final = f"ridge {RIDGE:g}, half at {HALF_TAUGHT:g} rows"
_FITTED: Final = 3  # priors kept in memory, about 15 MB each with their lessons

_fitted: Final = Cache[tuple[str, tuple[str, ...]], Prior | None](_FITTED)


@dataclass(frozen=True)
class PinnedPrior:
    """The prior of a job's readout.

    Args:
        version: of the base's prior.
        prior: its numbers, fitted without the tasks that are left out.
        left_out: the job's task, and tasks that were learned from rows of the job.
    """

    version: PriorVersion
    prior: Prior
    left_out: tuple[str, ...] = ()


def fitted(
    services: Services, base: Base, form: Form, taught: Iterable[Taught], without: Collection[str] = ()
) -> Prior | None:
    """Return the prior of these lessons, without those of some tasks; None if no usable lesson is left.

    Lessons that cannot be used are left out, and the prior names their tasks.

    Raises:
        UnavailableError: the artifact store cannot be reached.
    """
    lessons = [lesson for lesson in taught if lesson.task not in without]
    key = digest_of_prior(base.digest, form, WEIGHING, lessons), tuple(lesson.task for lesson in lessons)
    prior = _fitted.find(key)
    if prior is None or _restored(services, base, lessons, prior):
        prior = _alike_everywhere(lessons, read_taught(services, base, lessons))
        _fitted.keep(key, prior)
    return prior


def usual_scale(labels: Sequence[Label], words: Sequence[str], described: Collection[str] = ()) -> float:
    """Return the strength of the prior unless rows prefer another one: 0 unless two labels say something.

    Args:
        words: the base's words for the labels, from `onboard.data.verbaliser.verbalise`.
        described: keys of labels with a description, which says something.
    """
    speaking = len(labels) - len(silent_labels(labels, words, described))
    return PRIOR_SCALES[0] if speaking > 1 else SILENT_SCALE


def _restored(services: Services, base: Base, taught: Iterable[Taught], prior: Prior) -> bool:
    """Return whether a lesson that the prior leaves out can be used by now."""
    left_out = [lesson for lesson in taught if lesson.task in prior.left_out]
    return any(lesson.is_finite for lesson in read_taught(services, base, left_out).values())


def _alike_everywhere(taught: Iterable[Taught], lessons: Mapping[str, Lesson]) -> Prior | None:
    """Fit the prior with one thread, so that all bits are the same on any number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        prior = fit_prior(lessons)
    if prior is None:
        return None
    return replace(prior, left_out=tuple(sorted({lesson.task for lesson in taught} - prior.lessons.keys())))


def forget_fitted() -> None:
    """Clear the cache, as in a new process."""
    _fitted.clear()


def digest_of_numbers(prior: Prior) -> str:
    """Return `sha256:…` of the numbers of a prior, equal on the same build and machine."""
    return "sha256:" + hashlib.sha256(np.ascontiguousarray(prior.matrix, dtype="<f4").tobytes()).hexdigest()
