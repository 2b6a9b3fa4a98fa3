"""A worker on a GPU from the first job to the last: learned, killed in mid-job, out of memory, and predictions.

    python -m bench.gpu_worker --output bench/results/gpu_worker.json --table bench/results/gpu_worker.md
    python -m bench.gpu_worker --device cpu   # a rehearsal: all steps but that without free memory

Real: the shipped base, PostgreSQL and Redis where they are installed (else the embedded default), `python -m workers`,
`onboard serve`, and rows of examples/. Takes at most four minutes. Each step is one of the page's rows, with what was
seen; a step that fails does not keep the others from running. Exits with 1 if one failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from bench.harness.command import CHECKOUT, command_line
from bench.harness.page import made_on, table
from bench.harness.programs import answer, ended_in_order, environment_of, start_worker
from bench.harness.report import made_by, report
from bench.harness.server import serving
from bench.harness.services import PostgresServer, RedisServer, missing, wait_until
from onboard.domain.job import Job, JobState, Stage
from onboard.domain.worker import WorkerRecord, WorkerState
from onboard.registry.jobs import JobRepository
from onboard.registry.schema import upgrade
from onboard.registry.services import open_services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

ROWS: Final = CHECKOUT / "examples" / "reviews.jsonl"
TASK: Final = "reviews"
TEXTS: Final = ("I would buy this again.", "It broke on the first day.")
LEASE_SECONDS: Final = 6.0  # short, so that a killed worker's job is taken over soon
MOST_VERSIONS: Final = 2  # of one job, whatever was killed: a provisional one and a better one
LEFT_BYTES: Final = 300 * 2**20  # of the GPU's memory, while it is nearly full
_READY_SECONDS: Final = 90.0
_JOB_SECONDS: Final = 120.0
_STARTING: Final = WorkerRecord(
    name="", state=WorkerState.STARTING, queues=(), host="", pid=None, device="", started_at=0.0, heartbeat_at=0.0,
    live=True,
)  # fmt: skip
_FILLER: Final = """
import sys, torch
free, _ = torch.cuda.mem_get_info(sys.argv[1])
held = torch.empty(max(free - int(sys.argv[2]), 1), dtype=torch.uint8, device=sys.argv[1])
print("full", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Step:
    """One step of the run.

    Args:
        what: was done.
        seen: the facts, JSON-compatible.
        seconds: that it took.
        passed: None if it was left out, with the reason in `seen`.
    """

    what: str
    seen: dict[str, Any]
    seconds: float
    passed: bool | None


class StepError(Exception):
    """What was seen is not what should have been."""


def main(arguments: list[str] | None = None) -> int:
    """Run all steps, print, and write the results; 1 if one failed."""
    parser = command_line(__doc__)
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu for a rehearsal")
    options = parser.parse_args(arguments)
    with ended_in_order(), tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        settings = stack.enter_context(_settings(Path(folder), options.device))
        run = InstallationSteps(settings, Path(folder), options.device)
        stack.callback(run.stop)
        steps = run.steps()
    document = {
        **made_by("python -m bench.gpu_worker", options.device), "device": options.device,
        "registry": "PostgreSQL and Redis" if settings.database_url else "the embedded default",
        "steps": [asdict(step) for step in steps], "kept": all(step.passed is not False for step in steps),
    }  # fmt: skip
    return report(document, options, page)


@contextmanager
def _settings(folder: Path, device: str) -> Iterator[Settings]:
    settings = Settings(home=folder / "home", base="mini", device=device)
    if missing("postgres") or missing("redis-server"):
        yield settings
        return
    with PostgresServer() as postgres, RedisServer() as redis:
        upgrade(url := postgres.create("gpu"))
        yield settings.model_copy(update={"database_url": url, "broker_url": redis.url})


class InstallationSteps:
    """The steps, on one installation.

    Args:
        settings: of it.
        folder: where logs go.
        device: of worker and server.
    """

    def __init__(self, settings: Settings, folder: Path, device: str) -> None:
        self._settings, self._folder, self._device = settings, folder, device
        self._services = open_services(settings)
        self._environment = environment_of(settings)
        self._workers: list[subprocess.Popen[bytes]] = []

    def steps(self) -> list[Step]:
        """Run all of them, one after the other."""
        return [
            _step("a worker starts and shows its device", self.start_worker),
            _step("a job is learned", self.learn),
            _step("a worker is killed in mid-job and another one finishes the job", self.kill),
            _step("a job meets a GPU without free memory, and is learned", self.fill_memory)
            if self._device.startswith("cuda")
            else Step("a job meets a GPU without free memory, and is learned", {"reason": "no GPU"}, 0.0, None),
            _step("the page shows the worker, and predictions are served", self.serve),
        ]

    def stop(self) -> None:
        """Stop every worker."""
        for process in self._workers:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._workers:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
        self._services.close()

    def start_worker(self) -> dict[str, Any]:
        """Start a worker and wait until it can take jobs."""
        name = f"gpu-{len(self._workers) + 1}"
        options = ["--device", self._device, "--lease-seconds", str(LEASE_SECONDS)]
        options += ["--heartbeat-seconds", "1", "--reconcile-seconds", "2"]
        self._workers.append(start_worker(self._settings, name, *options, log=self._folder / f"{name}.log"))
        wait_until(lambda: self._worker(name).state is WorkerState.RUNNING, _READY_SECONDS, f"{name} to be ready")
        if self._device.startswith("cuda"):
            wait_until(lambda: self._worker(name).facts.get("gpus"), LEASE_SECONDS, "its GPU to be shown")
        (listed,) = [
            worker for worker in answer(["workers", "list"], self._environment)["workers"] if worker["worker"] == name
        ]
        return {"device": listed["device"], "gpu": [gpu["name"] for gpu in listed["facts"].get("gpus") or []]}

    def _worker(self, name: str) -> WorkerRecord:
        """Its row; as one that starts while it has none."""
        with self._services.database.read() as session:
            workers = [worker for worker in WorkerRepository(session).list() if worker.name == name]
        return workers[0] if workers else _STARTING

    def learn(self) -> dict[str, Any]:
        """Submit rows with the defaults and wait."""
        result = self._learned(self._submit(TASK))
        accuracy = result["metrics"]["validation"]["accuracy"]["value"]
        return {"version": result["version"], "seconds": result["seconds"], "accuracy": accuracy}

    def kill(self) -> dict[str, Any]:
        """kill -9 of a worker, and its child, while it trains; the next worker takes the job over."""
        job = self._submit(f"{TASK}-killed")
        wait_until(lambda: self._job(job).stage in (Stage.TRAIN, Stage.TUNE), _JOB_SECONDS, "training")
        os.killpg(self._workers[-1].pid, signal.SIGKILL)
        self.start_worker()
        result = self._learned(job)
        attempts = self._job(job).attempt
        if attempts != 2 or result["version"] > MOST_VERSIONS:
            raise StepError(f"attempt {attempts}, version {result['version']}")
        return {"attempts": attempts, "version": result["version"]}

    def fill_memory(self) -> dict[str, Any]:
        """Hold nearly all of the GPU's memory while a job begins, then give it back."""
        filler = subprocess.Popen(
            [sys.executable, "-c", _FILLER, self._device, str(LEFT_BYTES)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with filler:
            assert filler.stdout is not None
            if filler.stdout.readline() != "full\n":
                raise StepError("the memory could not be filled")
            job = self._submit(f"{TASK}-full")
            wait_until(lambda: self._job(job).state is not JobState.QUEUED, _JOB_SECONDS, "the job to begin")
            time.sleep(LEASE_SECONDS)
            while_full = self._job(job)
            assert filler.stdin is not None
            filler.stdin.close()
        result = self._learned(job)
        return {
            "while full": {"state": while_full.state, "stage": while_full.stage, "attempt": while_full.attempt},
            "halved": result.get("halved"), "attempts": self._job(job).attempt, "version": result["version"],
        }  # fmt: skip

    def serve(self) -> dict[str, Any]:
        """Ask a server on the same device."""
        token = answer(["token", "create", "gpu", "--scope", "read", "--scope", "ops"], self._environment)["secret"]
        headers = {"Authorization": f"Bearer {token}"}
        request = {"inputs": [{"task": TASK, "text": text} for text in TEXTS]}
        with (
            serving(self._settings, self._folder / "serve.log") as server,
            httpx.Client(base_url=server.url, headers=headers, timeout=_READY_SECONDS) as client,
        ):
            first_seconds, first = _timed(lambda: client.post("/v1/predict", json=request))
            warm_seconds, _ = _timed(lambda: client.post("/v1/predict", json=request))
            shown = client.get("/v1/workers").raise_for_status().json()["workers"]
        labels = [prediction["label"] for prediction in first["predictions"]]
        return {
            "labels": labels, "first_ms": round(1000 * first_seconds, 1), "warm_ms": round(1000 * warm_seconds, 1),
            "workers": [[worker["worker"], worker["device"]] for worker in shown],
        }  # fmt: skip

    def _submit(self, task: str) -> str:
        document = answer(["submit", "--dataset", str(ROWS), "--task", task], self._environment)
        return str(document["job"])

    def _job(self, job: str) -> Job:
        with self._services.database.read() as session:
            return JobRepository(session).get(job)

    def _learned(self, job: str) -> dict[str, Any]:
        with suppress(AssertionError):  # it took too long, and is shown as it stands
            wait_until(lambda: self._job(job).finished_at is not None, _JOB_SECONDS, f"job {job}")
        ended = self._job(job)
        if ended.state is not JobState.SUCCEEDED or ended.result is None:
            raise StepError(
                f"job {job} is {ended.state.value} at {ended.stage}, attempt {ended.attempt}: {ended.error}"
            )
        return ended.result


def _timed(call: Callable[[], httpx.Response]) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    document: dict[str, Any] = call().raise_for_status().json()
    return time.perf_counter() - started, document


def _step(what: str, run: Callable[[], dict[str, Any]]) -> Step:
    started, passed = time.monotonic(), True
    try:
        seen = run()
    except (StepError, AssertionError, httpx.HTTPError, subprocess.CalledProcessError) as error:
        seen, passed = {"error": f"{type(error).__name__}: {error}"}, False
    step = Step(what, seen, round(time.monotonic() - started, 1), passed)
    print(step, flush=True)
    return step


def page(document: dict[str, Any]) -> str:
    """The steps for people, in Markdown."""
    words = {True: "passed", False: "**failed**", None: "left out"}
    rows = [
        [step["what"], _facts(step["seen"]), step["seconds"], words[step["passed"]]] for step in document["steps"]
    ]  # fmt: skip
    lines = [
        "# A worker on a GPU", "",
        f"{made_on(document)}, device {document['device']}, on {document['registry']}. [Numbers](gpu_worker.json).", "",
        *table("step | seen | seconds | ", rows),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _facts(seen: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {value}" for name, value in seen.items()).replace("|", "/")


if __name__ == "__main__":
    sys.exit(main())
