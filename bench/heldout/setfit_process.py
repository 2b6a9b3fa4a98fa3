"""SetFit itself (Tunstall et al. 2022, arXiv 2209.11055) on all-MiniLM-L6-v2: its own environment, and a process
in it that answers cell by cell.

The environment sees the packages of this one, so that only SetFit is installed into it: no dependency of ours.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from bench.harness.command import CHECKOUT
from bench.heldout.learned import Learned
from bench.heldout.material import Cell
from onboard.domain.dataset import Example
from onboard.errors import NotFoundError

RELEASE: Final = "setfit==1.2.0"
RECIPE: Final[dict[str, Any]] = {}  # next to the release's defaults: every pair of rows once, positives oversampled
_WORKER: Final = Path(__file__).with_name("setfit_worker.py")
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
_LAST_CHARACTERS: Final = 2000  # of what a failed process said
_SEPARATOR: Final = " [SEP] "  # between the texts of a pair, as BERT parts them


class SetFit:
    """The process, started for the first cell.

    Args:
        python: of the environment, from `installed`.
        model: folder of the sentence encoder that it starts from.
        log: what it says.
        threads: that it computes with.
    """

    def __init__(self, python: Path, model: Path, log: Path, threads: int = 1) -> None:
        self._command = [str(python), str(_WORKER), str(model)]
        self._log, self._threads = log, threads
        self._process: subprocess.Popen[str] | None = None

    def answer(self, cell: Cell) -> Learned:
        """Fine-tune on all rows of a cell, and answer its test rows.

        Raises:
            RuntimeError: the process ended; its last words are reported.
        """
        request = {
            "texts": [text_of(row) for row in cell.dataset.train], "labels": cell.train_labels.tolist(),
            "asked": [text_of(row) for row in cell.test], "seed": cell.draw, "device": cell.place.device,
            "recipe": RECIPE,
        }  # fmt: skip
        reply = self._asked(request)
        return Learned(np.array(reply["probabilities"], dtype=np.float64), reply["seconds"], {})

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"SetFit's process has ended ({self._log}): {said[-_LAST_CHARACTERS:]}")
        return dict(json.loads(line))

    def _started(self) -> subprocess.Popen[str]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **_OFFLINE, "OMP_NUM_THREADS": str(self._threads)}
        with self._log.open("w", encoding="utf-8") as said:
            return subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, env=environment
            )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def text_of(row: Example) -> str:
    """A row as one text, the only thing that SetFit takes."""
    return row.text_a if row.text_b is None else f"{row.text_a}{_SEPARATOR}{row.text_b}"


def installed(folder: Path) -> Path:
    """The Python of an environment with SetFit in it, made where it is not there yet.

    Raises:
        NotFoundError: it cannot be installed.
    """
    python, mark = folder / "bin" / "python", folder / "installed.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == RELEASE:
        return python
    try:
        venv.create(folder, clear=True, with_pip=True)
        _share_packages(folder)
        constraints = ["-c", str(CHECKOUT / "constraints.txt")]
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, RELEASE]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise NotFoundError(
            f"SetFit cannot be installed: {said[-1] if said else error}", f"pip install {RELEASE}"
        ) from (error)
    mark.write_text(RELEASE, encoding="utf-8")
    return python


def _share_packages(folder: Path) -> None:
    """Let the environment see what this one has: its site folders, and those that these name."""
    own = {*site.getsitepackages(), *(path for path in sys.path if path.endswith("site-packages"))}
    (packages,) = (folder / "lib").glob("python*/site-packages")
    (packages / "shared.pth").write_text("".join(f"{path}\n" for path in sorted(own)), encoding="utf-8")
