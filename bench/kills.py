"""kill -9 while a job tunes, is guarded and is published: the head is the old one or the new one, and nothing is half.

    python -m bench.kills --times 20 --output bench/results/kills.json --table bench/results/kills.md

A real attempt on a base of random weights is killed so often in each of the three stages, at a place drawn from a seed:
before any of the stage's statements of SQL, artifacts, steps or batches. Then a second attempt goes on. Looked at after
both: head, line of hypernetworks, versions, and the weights of everything that was published before. Exits with 1
when something is lost, doubled or half.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from sqlalchemy import event

from bench.harness.command import command_line
from bench.harness.generated import generated_digest
from bench.harness.opinions import opinions
from bench.harness.page import table
from bench.harness.programs import in_a_process
from bench.harness.report import made_by, report
from bench.harness.tiny_base import make_tiny_base
from onboard.bases import Base
from onboard.data.read import ReadOptions, read_dataset
from onboard.domain.job import Job, JobSpec, JobState, Stage
from onboard.domain.progress import Progress
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.hypernetworks.register import register_base
from onboard.jobs.submit import JobRequest, submit
from onboard.pipeline import run as pipeline
from onboard.pipeline import train as training
from onboard.pipeline import tune as tuned
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore
from onboard.storage.embedding import unpack_embedding
from onboard.testing import MemoryDoorbell
from onboard.train.settings import FewShotSettings, TuningSettings
from workers.shell import work

STAGES: Final = (Stage.TUNE, Stage.GUARD, Stage.PUBLISH)
WORKER: Final = "prey"
EARLIER: Final = ("earlier@v1", "sst2@v1", "stsb@v1")


@dataclass(frozen=True)
class Killed:
    """One attempt that was killed, and the result.

    Args:
        stage: that it was killed in.
        place: how many things the stage did before.
        head: after the kill; `final` when the second attempt had ended.
        published: whether the version was there when it was killed.
        faults: the violations, in words.
    """

    stage: str
    place: int
    head: int
    final: int
    published: bool
    faults: tuple[str, ...]


class Deadly:
    """A job's Progress that ends the process, for good, before the given thing that a stage does; None: never."""

    def __init__(self, progress: Progress, place: tuple[Stage, int] | None) -> None:
        self._told, self._place = progress, place
        self._inside: Stage | None = None
        self.done: Counter[Stage] = Counter()

    def stage_started(self, stage: Stage) -> None:
        """The job enters a stage."""
        self._inside = stage
        self._told.stage_started(stage)

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """The stage ended."""
        self._told.stage_finished(stage, seconds, numbers)
        self._inside = None

    def note(self, message: str, **numbers: Any) -> None:
        """One line of progress."""
        self._told.note(message, **numbers)

    def raise_if_cancelled_or_fenced(self) -> None:
        """A step or a batch."""
        self.reached()
        self._told.raise_if_cancelled_or_fenced()

    def over(self) -> None:
        """Nothing that comes now belongs to a stage."""
        self._inside = None

    def reached(self, *_: Any, **__: Any) -> None:
        """The stage is about to do something; the heartbeat's thread does not belong to it."""
        if self._inside is None or threading.current_thread() is not threading.main_thread():
            return
        if self._place == (self._inside, self.done[self._inside]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.done[self._inside] += 1


def main(arguments: list[str] | None = None) -> int:
    """Kill, look, print, and write the results."""
    parser = command_line(__doc__)
    parser.add_argument("--times", type=int, default=20, help="kills in each stage")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    _take_few_steps()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = kills(Path(folder), asked.times, asked.seed)
    document = {
        **made_by(f"python -m bench.kills --times {asked.times} --seed {asked.seed}"),
        "kills": [asdict(outcome) for outcome in outcomes],
        "kept": not any(outcome.faults for outcome in outcomes),
    }
    return report(document, asked, page)


def _take_few_steps() -> None:
    """Jobs of this process and its children take a fraction of a second, and the guard lets their tunings through."""
    vars(training)["FewShotSettings"] = partial(FewShotSettings, steps=3, batch=8)
    vars(tuned)["TuningSettings"] = partial(TuningSettings, steps=5, most_steps=5, learning_rate=1e-7)


def kills(folder: Path, times: int, seed: int) -> list[Killed]:
    """So many kills in each stage, each in a separate home."""
    base = make_tiny_base(folder / "base")
    template = folder / "template"
    in_a_process(lambda: _fill(template, base))
    with _services(template, base) as services:
        before = made_weights(services, base)
    drawn = random.Random(seed)
    things = _things(folder, template, base)
    outcomes = []
    for stage in STAGES:
        for number in range(times):
            home = Path(shutil.copytree(template, folder / f"{stage}-{number}"))
            outcomes.append(_killed(home, base, before, stage, drawn.randrange(things[stage])))
            shutil.rmtree(home)
    return outcomes


def _fill(home: Path, base: Base) -> None:
    """A home with a task that was learned, and a job that waits to be tuned."""
    with _services(home, base) as services:
        register_base(services, base)
        _submit(services, home, "earlier", 20, "never")
        work(services, WORKER, ["default"], pipeline.run)
        _submit(services, home, "mood", 24, "always")


def _submit(services: Services, home: Path, task: str, count: int, tune: Any) -> None:
    rows = home / f"{task}.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in opinions(count)), encoding="utf-8")
    alone = {"readout": "never"}  # embeddings are tuned and guarded
    spec = JobSpec(task, "", init="sst2", tune_hypernetwork=tune, base=services.settings.base, options=alone)
    submit(services, MemoryDoorbell(), JobRequest(read_dataset(rows, ReadOptions(suspects=False)), spec))


def _things(folder: Path, template: Path, base: Base) -> dict[Stage, int]:
    """How many things each stage does, and with them in how many places it can be killed."""
    home = Path(shutil.copytree(template, folder / "counted"))
    counted = home / "things.json"

    def count() -> None:
        done = _attempt(home, base).done
        counted.write_text(json.dumps([done[stage] for stage in STAGES]), encoding="utf-8")

    in_a_process(count)
    return dict(zip(STAGES, json.loads(counted.read_text(encoding="utf-8")), strict=True))


def _killed(home: Path, base: Base, made: dict[str, str], stage: Stage, place: int) -> Killed:
    pid, status = in_a_process(lambda: _attempt(home, base, (stage, place)))
    faults = [] if os.WIFSIGNALED(status) else [f"it was not killed at place {place} of {stage}"]
    with _services(home, base) as services:
        with services.database.write() as session:
            ClaimRepository(session).expire(WORKER, pid)  # as its worker's parent does
        before, seen = _looked_at(services, base, made)
    faults += [f"after the kill: {fault}" for fault in seen]
    published = before == 2
    if not published:
        _, status = in_a_process(lambda: _attempt(home, base))
        faults += [] if status == 0 else [f"the second attempt ended with {status}"]
    with _services(home, base) as services:
        final, seen = _looked_at(services, base, made)
    faults += [f"at the end: {fault}" for fault in seen]
    faults += [] if final == 2 else ["the job was not published under a new head"]
    return Killed(stage.value, place, before, final, published, tuple(faults))


def _attempt(home: Path, base: Base, place: tuple[Stage, int] | None = None) -> Deadly:
    """Claim the job and run it; the process may not come back from there."""
    made: list[Deadly] = []

    def run(job: Job, services: Services, progress: Progress) -> None:
        deadly = Deadly(progress, place)
        made.append(deadly)
        event.listen(services.database.engine, "before_cursor_execute", deadly.reached)
        event.listen(services.database.engine, "commit", deadly.reached)
        put = ArtifactStore.put

        def store(self: ArtifactStore, data: bytes, kind: str) -> str:
            deadly.reached()
            return put(self, data, kind)

        vars_of: Any = ArtifactStore
        vars_of.put = store
        pipeline.run(job, services, deadly)
        deadly.reached()  # the last place: all is committed
        deadly.over()

    with _services(home, base) as services:
        done = work(services, WORKER, ["default"], run)
    assert done is not None
    assert done.state is JobState.SUCCEEDED, done.error
    return made[0]


def _looked_at(services: Services, base: Base, before: dict[str, str]) -> tuple[int, list[str]]:
    """The head, and the problems; `before` are the generated weights that were there before."""
    with services.database.read() as session:
        bases, versions = BaseRepository(session), VersionRepository(session)
        head, line = bases.get(base.digest).head, bases.hypernetworks(base.digest)
        mood = versions.list(task="mood")
        job = JobRepository(session).list(task="mood")[0]
        earlier = [versions.resolve(name) for name in EARLIER]
    holds_by_fault = {
        "the line has another head": [row.version for row in line] == list(range(1, head + 1)),
        "version and head do not belong together": [row.hypernetwork_version for row in mood] == [2] * (head - 1),
        "the job's state does not fit": (job.state is JobState.SUCCEEDED) == (head == 2),
        "an earlier version moved": all(version.hypernetwork_version == 1 for version in earlier),
        "somebody was not guarded": head == 1 or _guarded(line[-1].metrics) == set(EARLIER),
        "weights are not what they were": made_weights(services, base) == before,
    }
    return head, [fault for fault, holds in holds_by_fault.items() if not holds]


def _guarded(metrics: dict[str, Any]) -> set[str]:
    return {task["task"] for task in metrics["guard"]["tasks"] if task["verdict"] == "pass"}


def made_weights(services: Services, base: Base) -> dict[str, str]:
    """Digest of the weights that are generated for each of the earlier versions."""
    with services.database.read() as session:
        earlier = [VersionRepository(session).resolve(name) for name in EARLIER]
    made = {}
    for version in earlier:
        z = torch.from_numpy(unpack_embedding(services.read(version.artifact)))[None]
        hypernetwork = hypernetwork_at(services, base, version.hypernetwork_version, "cpu")
        with torch.no_grad():
            generated = hypernetwork(z)
        made[version.reference] = generated_digest(generated)
    return made


def _services(home: Path, base: Base) -> closing[Services]:
    return closing(open_services(Settings(home=home, base=str(base.folder), device="cpu")))


def page(document: dict[str, Any]) -> str:
    """The table of the results."""
    rows = []
    for stage in STAGES:
        of_stage = [outcome for outcome in document["kills"] if outcome["stage"] == stage.value]
        moved = sum(outcome["published"] for outcome in of_stage)
        faults = sum(bool(outcome["faults"]) for outcome in of_stage)
        rows.append([stage.value, len(of_stage), len(of_stage) - moved, moved, faults])
    faulty = [f"- {kill['stage']}, {kill['place']}: {fault}" for kill in document["kills"] for fault in kill["faults"]]
    lines = [
        "# kill -9 of jobs that tune",
        "",
        "A job that tunes the hypernetwork is killed while it tunes, is guarded, or is published: before a statement "
        "of SQL, an artifact, a step or a batch that is drawn from a seed. A second attempt goes on. After both are "
        "looked at: the head and its line, the versions, who was guarded, and the bytes of the weights that "
        "are generated for everything that was published before.",
        "",
        f"`{document['command']}`, SQLite. [Numbers](kills.json).",
        "",
        *table("killed in | times | head after it: the old one | the new one | lost, doubled or half", rows),
        "",
        *(["Nothing was lost, doubled or half."] if document["kept"] else faulty),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
