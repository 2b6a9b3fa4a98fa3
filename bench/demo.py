"""The first five minutes: `make demo` in a fresh clone with an empty HOME, timed, with the seconds of every job.

python -m bench.demo [--output bench/results/demo.json]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.harness.command import CHECKOUT
from bench.harness.programs import answer
from bench.harness.report import as_json, made_by, write


def main() -> int:
    """Clone, run, report; the exit code is that of `make demo`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone, home = Path(folder) / "onboard", Path(folder) / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
        environment = {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key == "LANG"}
        environment |= {"HOME": str(home), "DEMO_HOME": str(home / "onboard")}
        environment["PATH"] = ":".join(part for part in os.environ["PATH"].split(":") if ".venv" not in part)
        started = time.monotonic()
        code = subprocess.run(["make", "install"], cwd=clone, env=environment, check=False).returncode
        installed = time.monotonic() - started
        code = code or subprocess.run(["make", "demo"], cwd=clone, env=environment, check=False).returncode
        seconds = time.monotonic() - started
        jobs = _jobs(clone, environment) if code == 0 else []
    document = {
        **made_by("python -m bench.demo"), "exit_code": code, "seconds": round(seconds, 1),
        "of_which_installation": round(installed, 1), "jobs": jobs,
    }  # fmt: skip
    print(as_json(document))
    if code == 0:
        write(document, asked.output)
    return code


def _jobs(clone: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    program = str(clone / ".venv" / "bin" / "onboard")
    environment = {**environment, "ONBOARD_HOME": environment["DEMO_HOME"]}
    reports = []
    for job in answer(["jobs", "list"], environment, program)["jobs"]:
        shown = answer(["jobs", "show", job["job"]], environment, program)
        created, finished = (datetime.fromisoformat(job[key]) for key in ("created_at", "finished_at"))
        reports.append(
            {
                "task": job["task"], "seconds_from_submit": round((finished - created).total_seconds(), 1),
                "stages": shown["seconds"], "chosen": shown["init"]["chosen"], "weak": shown["weak"],
                "test_accuracy": shown["metrics"]["test"]["accuracy"],
                "tfidf_accuracy": shown["baselines"]["test"]["tfidf_logistic_regression"]["accuracy"],
            }
        )  # fmt: skip
    return reports


if __name__ == "__main__":
    sys.exit(main())
