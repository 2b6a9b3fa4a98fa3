"""How long a newcomer waits: from `pip install` of a wheel to the first version of their own, on an empty machine.

    python -m bench.first_version --output bench/results/first_version.json --table docs/results/first_version.md

The wheel is built first, which is not counted. Then, with an empty home, without pip's cache and without compiled
modules: an environment is made, torch and the wheel are installed with the versions of constraints.txt, rows of
examples/ are checked, learned and asked for, as the tutorial does it. How fast packages arrive is that of the index
that pip is configured for, and so is which torch: that for CPUs or that for GPUs. Wanted: at most three minutes, of
which the job takes 45 s at most.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.harness.command import command_line
from bench.harness.page import VERDICTS, made_on, met, table
from bench.harness.programs import answer, inherited
from bench.harness.report import made_by, report
from bench.harness.rows import Row
from onboard.domain.moment import from_iso

ROOT: Final = Path(__file__).parent.parent
WANTED_SECONDS: Final = 180.0
WANTED_JOB_SECONDS: Final = 45.0
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
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="onboard-first-") as folder:
        seconds, job = first_version(Path(folder), asked.rows)
    total = sum(seconds.values())
    document = {
        **made_by("python -m bench.first_version"),
        "rows": asked.rows.name, "seconds": {step: round(spent, 1) for step, spent in seconds.items()},
        "total": round(total, 1), **job,
        "wanted": f"total <= {WANTED_SECONDS:.0f}, job <= {WANTED_JOB_SECONDS:.0f}",
        "kept": total <= WANTED_SECONDS and job["job_seconds"] <= WANTED_JOB_SECONDS,
    }  # fmt: skip
    return report(document, asked, page)


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
    with _workers_ended(environment, program):
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
def _workers_ended(environment: Mapping[str, str], program: str) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in answer(["workers", "list"], environment, program)["workers"]:
            answer(["workers", "drain", worker["worker"]], environment, program)


def _job(document: Row) -> Row:
    """What it took between its row and its end, and where."""
    spent = from_iso(document["finished_at"]) - from_iso(document["created_at"])
    stages = {stage: round(seconds, 1) for stage, seconds in document["seconds"].items()}
    return {"job_seconds": round(spent, 1), "stages": stages, "version": f"{document['task']}@v{document['version']}"}


def page(document: Row) -> str:
    """The figures for people, in Markdown."""
    seconds, stages = document["seconds"], document["stages"]
    job = document["job_seconds"]
    return "\n".join([
        "# From `pip install` to the first version", "",
        f"An empty environment, an empty home, no cache of pip; `examples/{document['rows']}` is learned as the "
        "tutorial does it, with the defaults. The wheel is at hand. Packages come from the index that pip is "
        "configured for, as fast as that gives them.", "",
        f"{made_on(document)}. [The run](../../bench/results/first_version.json).", "",
        *table("step | seconds", [(what, seconds[name]) for name, what in STEPS.items()]), "",
        f"The job took {job} s from its row to the published version `{document['version']}`: "
        f"{', '.join(f'{stage} {spent}' for stage, spent in stages.items())}; the rest is the start of the worker.", "",
        *table(VERDICTS, [
            (f"at most {WANTED_SECONDS:.0f} s in all", f"{document['total']} s",
             met(document["total"] <= WANTED_SECONDS)),
            (f"at most {WANTED_JOB_SECONDS:.0f} s of them the job", f"{job} s", met(job <= WANTED_JOB_SECONDS)),
        ]), "",
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
