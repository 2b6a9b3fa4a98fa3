"""One run: workers, somebody who submits, a plan of kills and faults, an operator; and the check when all is quiet."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import func, select

from bench.chaos.backups import Backups
from bench.chaos.checker import DOUBLED, LOST, Verdict, check
from bench.chaos.faults import Faults
from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.chaos.place import Deployment, PlaceName, open_place
from bench.chaos.plan import Step, plan, sleepers
from bench.chaos.poison import is_poison
from bench.chaos.prey import Hunter
from bench.chaos.readers import PAUSE_SECONDS, reading
from bench.chaos.reruns import reruns
from bench.chaos.server_faults import Mend
from bench.chaos.submitter import Submitter
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobState
from onboard.errors import ConflictError, UnavailableError
from onboard.jobs.doorbell import DEFAULT_QUEUE, ring_or_warn
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services, open_services
from onboard.registry.tables import JobRow
from workers.reconciler import LEASE

TIMINGS: Final = {"lease_seconds": 5.0, "heartbeat_seconds": 1.0, "reconcile_seconds": 1.0, "drain_seconds": 5.0}
PIPELINE: Final = "bench.chaos.pipeline"
UNFENCED: Final = "bench.chaos.unfenced_pipeline"
_CLOCKS: Final = (0.0, 3600.0, 0.0, -3600.0)
_AHEAD: Final = 12  # jobs that wait at most
_TURN_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 60.0
_CHAOS_SHARE: Final = 0.75  # of the time; the rest is for the accepted jobs to end


@dataclass(frozen=True)
class Options:
    """How much is done.

    Args:
        readers: of the latest embeddings, over HTTP.
        pause: seconds of each reader between two requests, on average.
        seconds: after so long it is over if no job has ended for a minute, and what was accepted and has not ended
            counts as lost; after three quarters of it nothing more is submitted, killed or broken.
        cycles: how often workers are killed, all of them, when that is the fault.
        asleep: nothing is done but to put whole workers to sleep, `faults` times, until others have done their jobs.
        fence: whether workers have it; without one the run has to be found wrong.
    """

    seed: int = 0
    jobs: int = 300
    kills: int = 40
    faults: int = 18
    workers: int = 3
    readers: int = 100
    pause: float = PAUSE_SECONDS
    seconds: float = 300.0
    cycles: int = 12
    asleep: bool = False
    fence: bool = True


def run(name: PlaceName, options: Options, folder: Path, base: Path) -> dict[str, Any]:
    """Make a run in `folder`, which is emptied first; the journal and the workers' logs stay there.

    Args:
        base: folder of the base that the jobs are learned on.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    journal = Journal(folder / "journal.jsonl")
    journal.write("run", place=name, **asdict(options))
    with open_place(name, folder, base) as place, closing(open_services(place.direct)) as services:
        scene = Scene(place, services, options, folder, journal)
        with reading(place, services, options.readers, folder, options.pause) as auditor:
            scene.play()
        verdict = check(services, scene.submitter.accepted)
        wrong, read = auditor.verdict(services)
        verdict.violations.extend(wrong)
        wrong, restored = scene.backups.verdict()
        verdict.violations.extend(wrong)
        for violation in verdict.violations:
            journal.write("violation", kind=violation.kind, sentence=violation.what)
        document = scene.told(verdict) | {
            "reading": {"readers": options.readers, **read},
            "backups": restored,
            "rerun_seconds": reruns(services, journal, TIMINGS["lease_seconds"]),
        }
    journal.write("verdict", **document)
    return document


def _command(name: PlaceName, options: Options) -> str:
    given = f"--jobs {options.jobs} --kills {options.kills} --faults {options.faults} --workers {options.workers}"
    given += f" --readers {options.readers} --cycles {options.cycles}"
    return f"python -m bench.chaos --place {name} --seed {options.seed} {given}"


class Scene:
    """Everything that acts in a run."""

    def __init__(self, place: Deployment, services: Services, options: Options, folder: Path, journal: Journal) -> None:
        rng = random.Random(f"{options.seed} {place.name} moments")
        clocks = [_CLOCKS[slot % len(_CLOCKS)] for slot in range(options.workers)]
        self._services = services
        self._journal = journal
        self._folder = folder
        self._options = options
        self._bell = CeleryDoorbell(place.direct)
        pipeline = PIPELINE if options.fence else UNFENCED
        self._fleet = Fleet(place.settings, folder, journal, clocks, TIMINGS, pipeline)
        self._hunter = Hunter(self._fleet, services.database, journal, rng, self._turn)
        self.backups = Backups(services, folder, journal)
        self._faults = Faults(place, services, self._fleet, self._hunter, self.backups, journal, rng, options.cycles)
        self._place = place
        self._mends: dict[str, tuple[float, Mend]] = {}
        self._counts: Counter[str] = Counter()
        self._dead_of_poison = 0
        self._ended_before, self._ended_at = 0, 0.0  # jobs, and when their number was last seen to grow
        self._orphans: list[int] = []
        poison = self._faults.poison
        self.submitter = Submitter(place.settings, folder, options.jobs, journal, self._wants_more, poison=poison)

    def play(self) -> None:
        """Until every job has ended, or the time is over; then stop all workers and wait for the leases to run out."""
        self._started = time.monotonic()
        with running(self._fleet):
            self.submitter.start()
            try:
                self._go_on(self._steps())
            finally:
                self._mend_all()
                self.submitter.stop()
                self._orphans = self._fleet.stop()
        self._seconds = time.monotonic() - self._started
        self._until_quiet()

    def _steps(self) -> list[Step]:
        options = self._options
        if options.asleep:
            return sleepers(options.faults)
        return plan(options.seed, self._place.name, options.kills, options.faults)

    def told(self, verdict: Verdict) -> dict[str, Any]:
        """The run as a JSON-compatible document."""
        journal, options = self._journal, self._options
        return {
            "place": self._place.name,
            "seed": options.seed,
            "command": _command(self._place.name, options),
            "jobs": len(self.submitter.accepted),
            "workers": options.workers,
            "lease_seconds": TIMINGS["lease_seconds"],
            "seconds": round(self._seconds, 1),
            "kills": len(journal.of("kill")),
            "kills_by_stage": journal.counted("kill", "stage"),
            "kills_by_victim": journal.counted("kill", "victim"),
            "faults": journal.counted("fault", "fault"),
            "lost": verdict.count(LOST),
            "doubled": verdict.count(DOUBLED),
            "violations": [asdict(violation) for violation in verdict.violations],
            "dead_and_retried": len(journal.of("dead")),
            "restarts_in_a_row": len(journal.of("restarted")),
            "backends_terminated": sum(line["backends"] for line in journal.of("terminated")),
            "reconcilers_killed": len(journal.of("reconciler killed")),
            "cancelled": len(journal.of("cancelled")),
            "submissions_tried_again": self.submitter.tried_again,
            "late_writers_refused": self._in_logs("no longer owns job"),
            "processes_left_behind": len(self._orphans),
            **verdict.facts,
        }

    def _go_on(self, steps: list[Step]) -> None:
        cut = False
        while not self._is_over():
            self._turn()
            self._retry_what_is_dead()
            if not cut and time.monotonic() > self._started + _CHAOS_SHARE * self._options.seconds:
                cut = True
                self._journal.write("cut short", steps=len(steps), jobs=len(self.submitter.accepted))
                self.submitter.enough()
                steps = []
            if steps and self._is_due(steps[0]) and self._take(steps[0]):
                steps = steps[1:]
            if not steps and not self._mends and self.submitter.done and self._ended == len(self.submitter.accepted):
                return
            if self.submitter.error is not None:
                return
            time.sleep(_TURN_SECONDS)
        self._journal.write("out of time", counts=dict(self._counts))

    def _is_over(self) -> bool:
        """The time has passed, and no job has ended for a minute: on a slow machine the accepted jobs take longer."""
        now = time.monotonic()
        if self._ended != self._ended_before:
            self._ended_before, self._ended_at = self._ended, now
        return now > max(self._started + self._options.seconds, self._ended_at + _PATIENCE_SECONDS)

    def _is_due(self, step: Step) -> bool:
        """So many jobs have ended; or, on a slow machine, so much of the time has passed."""
        passed = (time.monotonic() - self._started) / (_CHAOS_SHARE * self._options.seconds)
        return self._ended >= step.at * self._options.jobs or passed >= step.at

    def _turn(self) -> None:
        """The continuous work, also while a kill waits for its moment."""
        self._fleet.tend()
        self._mend_due()
        self._count()

    def _take(self, step: Step) -> bool:
        """Whether it was done; others are retried at the next turn."""
        if step.what == "kill":
            return self._hunter.kill(step.victim, step.aim)
        resource = step.what.partition(" ")[0]  # of two faults of one server the second waits for the end of the first
        if resource in self._mends:
            self._mend(resource)
        mend = self._faults.begin(step.what)
        if mend is not None:
            self._mends[resource] = (time.monotonic() + step.seconds, mend)
        return True

    def _mend_due(self) -> None:
        for resource, (moment, _) in list(self._mends.items()):
            if time.monotonic() >= moment:
                self._mend(resource)

    def _mend(self, resource: str) -> None:
        _, mend = self._mends[resource]
        try:
            mend()
        except UnavailableError:  # another fault is in the way: at the next turn
            return
        del self._mends[resource]
        self._journal.write("mended", what_was_broken=resource)

    def _mend_all(self) -> None:
        for resource in sorted(self._mends, key=lambda broken: broken == "queue"):  # which needs the database
            self._mend(resource)

    def _count(self) -> None:
        try:
            with self._services.database.read() as session:
                rows = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state)).all()
                dead = list(session.scalars(select(JobRow.task).where(JobRow.state == JobState.DEAD)))
        except UnavailableError:
            return
        self._counts = Counter(dict(rows))
        self._dead_of_poison = sum(map(is_poison, dead))

    @property
    def _ended(self) -> int:
        """Jobs that have ended for good: an operator retries those that are dead, but for poison."""
        ended = sum(self._counts[state] for state in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED))
        return ended + self._dead_of_poison

    def _wants_more(self, submitted: int) -> bool:
        return submitted - self._ended < _AHEAD

    def _retry_what_is_dead(self) -> None:
        if self._counts[JobState.DEAD] <= self._dead_of_poison:
            return
        try:
            with self._services.database.write() as session:
                jobs = JobRepository(session)
                dead = [job for job in jobs.list(states=[JobState.DEAD]) if not is_poison(job.spec.task)]
                for job in dead:
                    jobs.retry(job.id)
        except (UnavailableError, ConflictError):
            return
        for job in dead:
            self._journal.write("dead", job=job.id, attempt=job.attempt, error=(job.error or {}).get("message"))
        ring_or_warn(self._bell, DEFAULT_QUEUE)

    def _until_quiet(self) -> None:
        """A killed worker's lease of the reconciler runs out by itself: taking it is the proof that nobody has it."""
        deadline = time.monotonic() + 3 * TIMINGS["reconcile_seconds"] + 1
        while time.monotonic() < deadline:
            with self._services.database.write() as session:
                leases = LeaseRepository(session)
                if leases.take(LEASE, "checker", 1.0):
                    leases.give_back(LEASE, "checker")
                    return
            time.sleep(0.1)

    def _in_logs(self, text: str) -> int:
        return sum(log.read_text(encoding="utf-8").count(text) for log in self._folder.glob("worker-*.log"))
