"""Use cases: store annotations as they arrive, and return the annotations of a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onboard.domain.annotation import Annotation, labels_of_texts
from onboard.domain.job import Job
from onboard.domain.names import require_name
from onboard.jobs.labelling.publishing import published_under
from onboard.registry.annotations import AnnotationRepository
from onboard.registry.audit import record
from onboard.registry.services import Services


def receive(services: Services, task: str, annotations: Iterable[Annotation]) -> int:
    """Store annotations; returns the number of changes. Repeated and outdated annotations change nothing.

    Raises:
        InputError: invalid task name.
    """
    require_name(task)
    arrived = list(annotations)
    if not arrived:
        return 0
    with services.database.write() as session:
        repository = AnnotationRepository(session)
        kept = sum([repository.put(task, annotation) for annotation in arrived])
        if kept:
            record(session, "task.annotate", task, annotations=kept)
    return kept


@dataclass(frozen=True)
class Labelled:
    """A task's annotations.

    Args:
        revision: number of changes.
        annotations: all of them.
        job: the job that learns this revision; None if there is none.
    """

    revision: int
    annotations: Sequence[Annotation]
    job: Job | None

    @property
    def texts(self) -> int:
        """Number of labeled texts."""
        return len(labels_of_texts(self.annotations))


def labelled(services: Services, task: str) -> Labelled:
    """Return the annotations of a task. Raises InputError: invalid task name."""
    require_name(task)
    with services.database.read() as session:
        repository = AnnotationRepository(session)
        annotations, revision = repository.list(task), repository.revision(task)
        return Labelled(revision, annotations, published_under(session, task, revision))
