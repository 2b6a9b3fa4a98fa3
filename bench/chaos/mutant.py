"""Does a run see that the fence is gone? The same run twice: with it nothing may be wrong, without it something must.

Workers are put to sleep with SIGSTOP in the midst of a job, for longer than their lease lasts and another worker takes
to do it; then they go on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.chaos.place import PlaceName
from bench.chaos.run import Options, run

JOBS, SLEEPERS, WORKERS = 12, 5, 2
SEEN: Final = "seen"  # of the document: whether the run without the fence was found wrong, and only that
_SECONDS: Final = 280.0
_MOST_LETTERS: Final = 200


def measure(name: PlaceName, seed: int, folder: Path, base: Path) -> dict[str, Any]:
    """Both runs at one place, in separate folders in `folder`."""
    runs = {fence: _run(name, seed, folder / fence, base) for fence in ("with", "without")}
    kinds = {fence: Counter(violation["kind"] for violation in made["violations"]) for fence, made in runs.items()}
    return {
        "place": name,
        "seed": seed,
        "command": f"python -m bench.chaos --mutant --place {name} --seed {seed}",
        "sleepers": {fence: made["faults"].get("sleeper", 0) for fence, made in runs.items()},
        "late_writers_refused": {fence: made["late_writers_refused"] for fence, made in runs.items()},
        "violations": {fence: dict(counted.most_common()) for fence, counted in kinds.items()},
        "examples": [violation["what"][:_MOST_LETTERS] for violation in runs["without"]["violations"][:3]],
        "seconds": {fence: made["seconds"] for fence, made in runs.items()},
        SEEN: bool(kinds["without"]) and not kinds["with"],
    }


def _run(name: PlaceName, seed: int, folder: Path, base: Path) -> dict[str, Any]:
    options = Options(
        seed=seed, jobs=JOBS, kills=0, faults=SLEEPERS, workers=WORKERS, readers=0, seconds=_SECONDS, asleep=True,
        fence=folder.name == "with",
    )  # fmt: skip
    return run(name, options, folder, base)
