"""Finished steps in a file that several processes append to, and the hypernetworks of streams that are under way."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Final

from bench.harness.rows import Row, append, finished
from bench.stream.learning import BEGUN
from onboard.errors import DamagedError
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.weights import hypernetwork_digest, load_hypernetwork, save_hypernetwork

WEIGHTS: Final = ".safetensors"


@dataclass(frozen=True, order=True)
class Stream:
    """All tasks, one after the other, by one method.

    Args:
        order: number of the order of the tasks, from 0.
        method: one of METHODS.
    """

    order: int
    method: str


Steps = Mapping[Stream, Sequence[Row]]  # the finished steps of each stream, from its first task on


class Journal:
    """The finished steps.

    Args:
        path: JSON lines.
        settings: what a method's numbers depend on, by method; rows of other settings are not seen.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._settings = {method: digest_of(of_method) for method, of_method in settings.items()}

    def steps(self) -> dict[Stream, list[Row]]:
        """The rows of the file now, up to each stream's first step that is missing, since the stream last began."""
        by_stream: dict[Stream, dict[int, Row]] = {}
        for row in finished(self.path):
            if row["settings"] == self._settings.get(row["method"]):
                of_stream = by_stream.setdefault(Stream(row["order"], row["method"]), {})
                if row["index"] == 0:
                    of_stream.clear()  # it began again: what follows in the file has other heads
                of_stream[row["index"]] = row
        return {
            stream: [steps[index] for index in takewhile(steps.__contains__, count())]
            for stream, steps in by_stream.items()
        }

    def begun(self, order: int, index: int, given: str) -> Row | None:
        """The probe result of any method for a task with the same head and embeddings before it, or None."""
        for stream, rows in self.steps().items():
            if stream.order == order and index < len(rows) and rows[index].get("given") == given:
                row = rows[index]
                seconds = {part: row["seconds"][part] for part in ("probe", "train")}
                return {**{key: row[key] for key in BEGUN}, "seconds": seconds}
        return None

    def add(self, stream: Stream, index: int, task: str, row: Row) -> None:
        """Append a step; a line that a kill has cut off before it stays alone."""
        known = {"order": stream.order, "method": stream.method, "index": index, "task": task}
        append(self.path, {**known, **row, "settings": self._settings[stream.method]})


class Heads:
    """The hypernetworks that a stream under way would need to go on, in a separate folder.

    Args:
        folder: of all streams.
        stream: whose they are.
    """

    def __init__(self, folder: Path, stream: Stream) -> None:
        self._folder = folder / f"{stream.method}-{stream.order}"

    def keep(self, hypernetwork: Hypernetwork) -> None:
        """Write one, unless it is there."""
        path = self._path(hypernetwork_digest(hypernetwork))
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            save_hypernetwork(hypernetwork, path)

    def load(self, digests: Iterable[str]) -> dict[str, Hypernetwork]:
        """Hypernetworks by digest, frozen.

        Raises:
            NotFoundError: one was not kept.
            DamagedError: one is another than it was.
        """
        hypernetworks = {}
        for digest in digests:
            hypernetworks[digest] = load_hypernetwork(self._path(digest)).requires_grad_(False)
            if hypernetwork_digest(hypernetworks[digest]) != digest:
                raise DamagedError(f"{self._path(digest)} holds another hypernetwork.", "start this stream anew")
        return hypernetworks

    def forget(self) -> None:
        """Remove them: the stream is at its end."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}{WEIGHTS}"


def digest_of(settings: Any) -> str:
    """Identity of settings, JSON-compatible."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
