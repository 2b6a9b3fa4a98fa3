"""How long a newcomer waits: from `pip install` of a wheel to the first first version, on an empty machine.

    python -m bench.first_version --output bench/results/first_version.json --table bench/results/first_version.md
    python -m bench.first_version --here     # without pip: only how long a job takes

The wheel is built first, which is not counted. Then, with an empty home, without pip's cache and without compiled
modules: an environment is made, torch and the wheel are installed with the versions of constraints.txt, rows of
examples/ are checked, learned and requested, as the tutorial does it. How fast packages arrive is that of the index
that pip is configured for, and so is which torch: that for CPUs or that for GPUs. Wanted: at most three minutes, of
which the job takes 45 s at most.

Then 32 of these rows are submitted in turn to no worker (cold), to the worker that is there (warm), and to it with
`--fast`, several times over, each time from an empty home. Seconds count from the start of the command: until the
provisional version is published, and until the command ends. Wanted: a first version after 8 s cold and 3 s warm, and
25 s for the whole job of a warm worker. CPU seconds are those of the command and of the worker, whatever else the
machine does meanwhile.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from bench.harness.command import command_line
from bench.harness.page import VERDICTS, made_on, met, table, unmeasured
from bench.harness.programs import PROGRAM, answer, inherited
from bench.harness.report import made_by, report
from bench.harness.rows import Row
from onboard.domain.moment import from_iso

ROOT: Final = Path(__file__).parent.parent
WANTED_SECONDS: Final = 180.0
WANTED_JOB_SECONDS: Final = 45.0
ROWS: Final = 32
COLD, WARM, FAST = "cold", "warm", "fast"
WANTED_FIRST_SECONDS: Final = {COLD: 8.0, WARM: 3.0, FAST: 3.0}
WANTED_WHOLE_SECONDS: Final = 25.0  # of a job on a warm worker
STEPS: Final = {
    "environment": "`python -m venv`",
    "torch": "`pip install torch`",
    "install": "`pip install` of the wheel with all it needs",
    "check": "the first command, `onboard check`",
    "submit": "`onboard submit --wait`",
    "predict": "`onboard predict`",
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 where a wish was not kept."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=Path, default=ROOT / "examples" / "reviews.jsonl")
    parser.add_argument("--here", action="store_true", help="with the program of this environment, without pip")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args(arguments)
    newcomer: Row = {}
    with tempfile.TemporaryDirectory(prefix="onboard-first-") as made:
        folder = Path(made)
        if not asked.here:
            seconds, job = first_version(folder, asked.rows)
            newcomer = {
                "seconds": {step: round(spent, 1) for step, spent in seconds.items()},
                "total": round(sum(seconds.values()), 1), **job,
            }  # fmt: skip
        program = PROGRAM if asked.here else str(folder / "venv" / "bin" / "onboard")
        runs = first_versions(folder, program, asked.rows, asked.repeats)
    verdicts = [*(_newcomers(newcomer) if newcomer else []), *_first_versions(runs)]
    document = {
        **made_by(f"python -m bench.first_version{' --here' if asked.here else ''} --repeats {asked.repeats}"),
        "rows": asked.rows.name, **newcomer, "runs": runs, "verdicts": verdicts,
        "kept": all(verdict[2] for verdict in verdicts),
    }  # fmt: skip
    return report(document, asked, page)


def _newcomers(newcomer: Row) -> list[tuple[str, str, bool]]:
    total, job = newcomer["total"], newcomer["job_seconds"]
    return [
        (f"at most {WANTED_SECONDS:.0f} s in all", f"{total} s", total <= WANTED_SECONDS),
        (f"at most {WANTED_JOB_SECONDS:.0f} s of them the job", f"{job} s", job <= WANTED_JOB_SECONDS),
    ]


def _first_versions(runs: Sequence[Row]) -> list[tuple[str, str, bool]]:
    verdicts = []
    for how, most in WANTED_FIRST_SECONDS.items():
        median = statistics.median(run["first"] for run in runs if run["how"] == how)
        verdicts.append((f"a first version after {most:.0f} s, {how}", f"{median:.1f} s", median <= most))
    whole = statistics.median(run["job"] for run in runs if run["how"] == WARM)
    return [
        *verdicts,
        (f"the whole job in {WANTED_WHOLE_SECONDS:.0f} s", f"{whole:.1f} s", whole <= WANTED_WHOLE_SECONDS),
    ]


def first_versions(folder: Path, program: str, rows: Path, repeats: int) -> list[Row]:
    """The duration of each submission, in turn cold, warm and with `--fast`.

    Args:
        folder: for the homes.
        program: `onboard`.
        rows: of which `ROWS` are learned.
        repeats: how often all three are submitted.
    """
    runs: list[Row] = []
    for draw in range(repeats):
        home = folder / f"home-{draw}"
        environment = {**inherited(), "HOME": str(home), "ONBOARD_HOME": str(home / ".onboard")}
        home.mkdir()
        with workers_ended(environment, program):
            for how, options in ((COLD, ()), (WARM, ()), (FAST, ("--fast",))):
                words = ["submit", str(rows), "--task", how, "--shots", str(ROWS), "--seed", str(draw), *options]
                runs.append(_submitted([*words, "--wait"], environment, program) | {"how": how, "draw": draw})
    return runs


def _submitted(words: list[str], environment: Mapping[str, str], program: str) -> Row:
    before, begun_at, begun = _cpu_seconds(environment, program), time.time(), time.monotonic()
    submission = answer(words, environment, program)
    whole = time.monotonic() - begun
    job = answer(["jobs", "show", submission["job"]], environment, program)
    provisional = next(event for event in job["events"] if event["numbers"].get("provisional"))
    return {
        "first": round(from_iso(provisional["at"]) - begun_at, 2), "whole": round(whole, 2),
        "job": round(from_iso(job["finished_at"]) - from_iso(job["created_at"]), 2),
        "cpu": round(_cpu_seconds(environment, program) - before, 2),
        "stages": {stage: round(seconds, 2) for stage, seconds in job["seconds"].items()},
        "confirmed": job["provisional"]["confirmed"],
    }  # fmt: skip


def _cpu_seconds(environment: Mapping[str, str], program: str) -> float:
    """Of the commands so far, and of the workers that are there."""
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = own.ru_utime + own.ru_stime
    for worker in answer(["workers", "list"], environment, program)["workers"]:
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(worker["pid"])
            times = [process.cpu_times() for process in (parent, *parent.children(recursive=True))]
            spent += sum(used.user + used.system for used in times)
    return spent


def first_version(folder: Path, rows: Path) -> tuple[dict[str, float], Row]:
    """Seconds of each step in a folder that is empty, and what the job was."""
    wheel = built(folder / "wheels")
    environment = {**inherited(), "HOME": str(folder / "home"), "ONBOARD_HOME": str(folder / "home" / ".onboard")}
    (folder / "home").mkdir()
    python, program = folder / "venv" / "bin" / "python", str(folder / "venv" / "bin" / "onboard")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    pinned = ["-c", ROOT / "constraints.txt"]
    seconds: dict[str, float] = {}

    def step(name: str, done: Callable[[], Any]) -> Any:
        begun = time.monotonic()
        result = done()
        seconds[name] = time.monotonic() - begun
        return result

    def run(*words: object) -> None:
        subprocess.run([str(word) for word in words], check=True, cwd=folder, env=inherited())

    step("environment", lambda: run(sys.executable, "-m", "venv", folder / "venv"))
    step("torch", lambda: run(*pip, *pinned, "torch"))
    step("install", lambda: run(*pip, *pinned, wheel))
    with workers_ended(environment, program):
        step("check", lambda: answer(["check", str(rows)], environment, program))
        submitted = step("submit", lambda: answer(["submit", str(rows), "--wait"], environment, program))
        asked = ["predict", submitted["task"], "--text", "It broke on the second day."]
        step("predict", lambda: answer(asked, environment, program))
        return seconds, _job(answer(["jobs", "show", submitted["job"]], environment, program))


def built(folder: Path) -> Path:
    """The wheel of this checkout, made of a copy: what an earlier build left here would be in it."""
    copy = folder.with_name("source")
    apart = (".*", "build", "*.egg-info", "__pycache__", "tests", "bench", "site", "shared")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*apart))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*pip, folder, copy], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@contextmanager
def workers_ended(environment: Mapping[str, str], program: str) -> Iterator[None]:
    """When it is left, the workers of a home are asked to leave."""
    try:
        yield
    finally:
        for worker in answer(["workers", "list"], environment, program)["workers"]:
            answer(["workers", "drain", worker["worker"]], environment, program)


def _job(document: Row) -> Row:
    """The time between its row and its end, and where."""
    spent = from_iso(document["finished_at"]) - from_iso(document["created_at"])
    stages = {stage: round(seconds, 1) for stage, seconds in document["seconds"].items()}
    return {"job_seconds": round(spent, 1), "stages": stages, "version": f"{document['task']}@v{document['version']}"}


def page(document: Row) -> str:
    """The figures for people, in Markdown."""
    newcomer = _newcomer_lines(document) if "seconds" in document else []
    verdicts = document["verdicts"] if "verdicts" in document else _newcomers(document)
    return "\n".join([
        "# From `pip install` to the first version", "",
        f"{made_on(document)}. [The run](first_version.json).", "",
        *newcomer,
        *(_run_lines(document) if "runs" in document else []),
        *table(VERDICTS, [(wish, figure, met(holds)) for wish, figure, holds in verdicts]),
        *([] if "runs" in document else [unmeasured("a first version after 8 s cold and 3 s warm")]), "",
    ])  # fmt: skip


def _run_lines(document: Row) -> list[str]:
    runs = document["runs"]
    return [
        "## From `onboard submit` to a version", "",
        f"{ROWS} rows of `examples/{document['rows']}`, the defaults; medians, in brackets the slowest. Cold: the "
        "submission starts the worker. Warm: the worker is there. Seconds count from the start of the command. A first "
        "version is a readout alone, published as provisional. The last column says how often it was confirmed as the "
        "final one.", "",
        *table(
            "worker | first version | whole command | job | CPU seconds | whole / first | confirmed",
            [_run_cells(how, [run for run in runs if run["how"] == how]) for how in (COLD, WARM, FAST)],
        ), "",
    ]  # fmt: skip


def _newcomer_lines(document: Row) -> list[str]:
    stages = ", ".join(f"{stage} {spent}" for stage, spent in document["stages"].items())
    return [
        f"An empty environment, an empty home, no cache of pip; `examples/{document['rows']}` is learned as the "
        "tutorial does it, with the defaults. The wheel is at hand. Packages come from the index that pip is "
        "configured for, as fast as that gives them.", "",
        *table("step | seconds", [(what, document["seconds"][name]) for name, what in STEPS.items()]), "",
        f"The job took {document['job_seconds']} s from its row to the published version `{document['version']}`: "
        f"{stages}; the rest is the start of the worker.", "",
    ]  # fmt: skip


def _run_cells(how: str, runs: Sequence[Row]) -> tuple[str, ...]:
    cells = []
    for figure in ("first", "whole", "job", "cpu"):
        spent = [run[figure] for run in runs]
        cells.append(f"{statistics.median(spent):.1f} s ({max(spent):.1f})")
    ratio = statistics.median(run["whole"] / run["first"] for run in runs)
    title = f"{WARM}, `--fast`" if how == FAST else how
    return title, *cells, f"{ratio:.1f}", f"{sum(run['confirmed'] for run in runs)} of {len(runs)}"


if __name__ == "__main__":
    sys.exit(main())
