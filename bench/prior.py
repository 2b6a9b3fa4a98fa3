"""How long it takes to fit a prior to the lessons of very many tasks, and to forget one of them exactly.

    python -m bench.prior --tasks 1000             of the width of `mini`, in a home of its own

Lessons are drawn at random, three quarters of single texts and a quarter of pairs, with 2 to 8 labels each; they are
stored and published as a job's are. Measured are a fit of both forms from the files, in a process that has read none of
them (what a worker does after a publish), and the deletion of a task with the fit without it (what `onboard tasks
delete` does). Last it is compared, byte for byte, with a fit that never knew the task.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.command import command_line
from bench.harness.page import made_on, table
from bench.harness.report import made_by, report
from onboard.bases import Base, find_base
from onboard.domain.task import EmbeddingVersion, Task
from onboard.hypernetworks.prior import fitting, lessons
from onboard.hypernetworks.prior.lessons import present_lessons, read_taught
from onboard.hypernetworks.prior.refit import refit
from onboard.hypernetworks.register import register_base
from onboard.model.backbone import backbone_shape
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.statistics.prior import Lesson, fit_prior, names_on_scale
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding
from onboard.storage.lesson import LESSON, pack_lesson
from onboard.versions.delete import delete_task


def publish(services: Services, base: Base, number: int, width: int) -> str:
    """A task with a made-up lesson; its name."""
    rng = np.random.default_rng(number)
    pairs, labels = number % 4 == 3, tuple(f"label {place}" for place in range(2 + number % 7))
    names = names_on_scale(rng.standard_normal((len(labels), 3 * width)))
    weights = (0.1 * rng.standard_normal((len(labels), (6 if pairs else 3) * width))).astype(np.float16)
    lesson = services.store(pack_lesson(Lesson(names, weights, 64), base.digest), LESSON)
    z = rng.standard_normal(64).astype(np.float32)
    draft = EmbeddingVersion(
        task=f"task-{number}", kind="onboarded", artifact="", embedding_digest=embedding_digest(z),
        backbone_digest=base.backbone_digest, base_digest=base.digest, hypernetwork_version=1, dataset_digest="",
        parent="random", task_kind="classification", labels=labels, words=labels, pairs=pairs, lesson=lesson,
        method="hyperformer++", code_version="bench", version=1,
    )  # fmt: skip
    stored = services.store(pack_embedding(z, embedding_facts(draft, "sha256:0")), "embedding")
    with services.database.write() as session:
        task = Task(draft.task, "classification", labels, labels)
        VersionRepository(session).add(replace(draft, artifact=stored), task)
    return draft.task


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """How long it took by the clock and on the processor, in a process that remembers nothing of before."""
    fitting.forget_fitted()
    lessons.forget_read()
    started, busy = time.monotonic(), time.process_time()
    work()
    return round(time.monotonic() - started, 3), round(time.process_time() - busy, 3)


def forgotten_exactly(services: Services, base: Base, task: str) -> bool:
    """Whether the heads are, byte for byte, fitted to lessons without the task's."""
    with services.database.read() as session:
        present = present_lessons(session, base)
    for form, taught in present.items():
        fresh = fit_prior(read_taught(services, base, taught))
        in_memory = fitting.fitted(services, base, form, taught)
        if fresh is None or in_memory is None or task in fresh.lessons:
            return False
        if fresh.matrix.tobytes() != in_memory.matrix.tobytes():
            return False
    return True


def measure(home: Path, base: Base, tasks: int) -> dict[str, Any]:
    """Seconds of the fit and of the deletion."""
    with closing(open_services(Settings(home=home, base=str(base.folder), device="cpu"))) as services:
        register_base(services, base)
        width = backbone_shape(base.folder / "backbone").config.d_model
        published = [publish(services, base, number, width) for number in range(tasks)]
        fitted = seconds_of(lambda: refit(services, base, "bench"))
        gone = published[len(published) // 2]
        deleted = seconds_of(lambda: delete_task(services, gone))
        exact = forgotten_exactly(services, base, gone)
        shipped = len(base.lessons)
    return {
        "tasks": tasks, "shipped": shipped, "width": width, "exact": exact,
        "fit_seconds": fitted[0], "fit_processor_seconds": fitted[1],
        "delete_seconds": deleted[0], "delete_processor_seconds": deleted[1],
    }  # fmt: skip


def page(document: dict[str, Any]) -> str:
    """The page of the results."""
    row = document["measured"]
    exact = "the same, byte for byte, as one that never knew the task" if row["exact"] else "NOT what it should be"
    cells = [
        ("fit of both priors", row["fit_seconds"], row["fit_processor_seconds"]),
        ("deletion of a task and fit", row["delete_seconds"], row["delete_processor_seconds"]),
    ]
    head = f"{row['tasks']:,} tasks published here, {row['shipped']} shipped with the base | seconds | of the processor"
    said = f"{made_on(document)}. After the deletion the prior is {exact}."
    return "\n".join(["# Fitting the prior again", "", said, "", *table(head, cells), "", WHAT, ""])


WHAT = (
    "Both include reading every lesson from its file. The fit runs in a worker's background after a publish, on one "
    "thread and with low priority; on a busy "
    "machine it takes longer by the clock. The deletion is the whole of `onboard tasks delete`."
)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    parser = command_line(__doc__, "prior")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--base", default="mini", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder) / "home", find_base(asked.base), asked.tasks)
    document = {**made_by(f"python -m bench.prior --tasks {asked.tasks}"), "measured": measured}
    return report(document, asked, page)


if __name__ == "__main__":
    sys.exit(main())
