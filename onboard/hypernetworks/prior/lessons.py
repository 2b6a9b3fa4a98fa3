"""The lessons of a base's prior: from the tasks that it was trained on, and from published tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from sqlalchemy.orm import Session

from onboard.bases import Base
from onboard.domain.prior import FORMS, Form, Taught, form_of
from onboard.errors import DamagedError, PinMismatchError
from onboard.registry.priors import PriorRepository
from onboard.registry.services import Services
from onboard.statistics.prior import Lesson
from onboard.storage.cache import Cache
from onboard.storage.lesson import unpack_lesson

_MOST_BYTES: Final = 128 << 20  # of lessons kept in memory, some thousand tasks

_read: Final = Cache[tuple[str, str], Lesson](
    _MOST_BYTES, weigh=lambda lesson: int(lesson.names.nbytes + lesson.weights.nbytes)
)


def present_lessons(session: Session, base: Base) -> Mapping[Form, list[Taught]]:
    """Return the current lessons of a base's prior, by form and in the order of the tasks.

    The lesson of a shipped task is that of the base, until its `latest` is a version that was learned here. Deleted
    tasks have no lesson.
    """
    priors = PriorRepository(session)
    published, shipped = priors.present(base.digest), priors.shipped(base.digest)
    taught = {form: list(lessons) for form, lessons in published.items()}
    published_tasks = {lesson.task for lessons in published.values() for lesson in lessons}
    digest = base.lessons_digest or ""  # of the whole file, which is read once
    for task, lesson in base.lessons.items():
        if task in shipped and task not in published_tasks:
            pairs = lesson.weights.shape[1] != lesson.names.shape[1]
            taught[form_of(pairs=pairs)].append(Taught(task, shipped[task], digest, shipped=True))
    return {form: sorted(taught[form], key=lambda lesson: lesson.task) for form in FORMS}


def read_taught(services: Services, base: Base, taught: Iterable[Taught]) -> dict[str, Lesson]:
    """Read lessons, by task. Lessons that are missing, damaged or of another base are left out.

    Raises:
        UnavailableError: the artifact store cannot be reached.
    """
    lessons = {}
    for lesson in taught:
        with suppress(DamagedError, PinMismatchError):
            lessons[lesson.task] = _lesson(services, base, lesson)
    return lessons


def unusable_lessons(services: Services, base: Base) -> list[str]:
    """Return the tasks whose current lessons cannot be used: unreadable ones, and those that are not finite.

    Raises:
        UnavailableError: the artifact store cannot be reached.
    """
    with services.database.read() as session:
        taught = [lesson for of_form in present_lessons(session, base).values() for lesson in of_form]
    usable = {task for task, lesson in read_taught(services, base, taught).items() if lesson.is_finite}
    return sorted({lesson.task for lesson in taught} - usable)


def forget_read() -> None:
    """Clear the cache, as in a new process."""
    _read.clear()


def _lesson(services: Services, base: Base, taught: Taught) -> Lesson:
    if taught.shipped:
        if taught.task not in base.lessons:  # the base has got another file of lessons since
            raise DamagedError("lesson-unreadable")
        return base.lessons[taught.task]
    key = base.digest, taught.lesson
    return _read.get(key, lambda: unpack_lesson(services.read(taught.lesson), base.digest))
