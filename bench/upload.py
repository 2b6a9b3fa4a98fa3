"""The memory that an upload of a gigabyte takes: its own process, and the child that checks the rows.

    python -m bench.upload --output bench/results/upload.json --table bench/results/upload.md

A real `onboard serve` is sent valid rows as they are made, over HTTP, as a submission; the job is cancelled and never
trained. Resident memory is looked at every 20 ms, compared with that after a small submission. The process may grow by
50 MiB; the child, which ends with the check, is reported next to it. Exits with 1 when the process grew by more.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from bench.harness.command import command_line
from bench.harness.page import made_on
from bench.harness.programs import resident
from bench.harness.report import made_by, report
from bench.harness.server import Asker, serving
from bench.harness.tiny_base import make_tiny_base
from onboard.data.limits import MAX_ROWS
from onboard.domain.access import Scope
from onboard.operations.access import create_token
from onboard.registry.services import open_services
from onboard.settings import Settings

WANTED_MIB: Final = 50.0  # growth of the server's process
_MEGABYTE: Final = 10**6
_MIB: Final = 2**20
_ROWS: Final = 900_000  # at most; the rest of the limit is for rows that come out shorter
_LEAST_ROW_BYTES: Final = 200
_LOOK_SECONDS: Final = 0.02
_ANSWER_SECONDS: Final = 3600.0
_BOUNDARY: Final = "rows"
_HEAD: Final = (
    f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="dataset"; filename="uploaded.jsonl"\r\n\r\n'
).encode()
_TAIL: Final = f"\r\n--{_BOUNDARY}--\r\n".encode()


@dataclass(frozen=True)
class Peak:
    """Resident memory in bytes: before, and the most at one moment."""

    before: int
    server: int
    children: int

    @property
    def growth_mib(self) -> float:
        """Of the server's process."""
        return round((self.server - self.before) / _MIB, 1)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    parser = command_line(__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    asked = parser.parse_args(arguments)
    size = asked.megabytes * _MEGABYTE
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), size)
    document = {
        **made_by(f"python -m bench.upload --megabytes {asked.megabytes}"),
        "megabytes": asked.megabytes, "wanted": f"server_growth_mib <= {WANTED_MIB:.0f}",
        "kept": figures["server_growth_mib"] <= WANTED_MIB, **figures,
    }  # fmt: skip
    return report(document, asked, page)


def measure(folder: Path, size: int) -> dict[str, Any]:
    """Upload so many bytes of rows to a separate server, and watch its memory."""
    settings = Settings(home=folder / "home", base=str(make_tiny_base(folder / "base").folder), device="cpu")
    with closing(open_services(settings)) as services:
        token = create_token(services.database, "bench", [Scope.SUBMIT, Scope.READ])[1]
    log = folder / "server.log"
    with serving(settings, log) as server, closing(Asker(server.url, token, _ANSWER_SECONDS)) as asker:
        submit(asker, _LEAST_ROW_BYTES * 100)  # what every submission loads once
        with _watched(psutil.Process(server.process.pid)) as peaks:
            started = time.perf_counter()
            rows, sent_after = submit(asker, size)
            seconds = time.perf_counter() - started
        (peak,) = peaks
        left = list(settings.resolved_home.joinpath("uploads").rglob("*.jsonl"))
    if left:
        raise RuntimeError(f"the upload is still there: {left}")
    return {
        "rows": rows, "seconds": {"sent": round(sent_after, 1), "answered": round(seconds, 1)},
        "server_growth_mib": peak.growth_mib, "children_peak_mib": round(peak.children / _MIB, 1),
        "resident_bytes": asdict(peak),
    }  # fmt: skip


def submit(asker: Asker, size: int) -> tuple[int, float]:
    """The number of rows, and after how many seconds they were sent. The job is cancelled."""
    started = time.perf_counter()
    rows = Rows(size)
    form = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
    job = asker.post("/v1/jobs", 202, form, rows.body())["job"]
    asker.post(f"/v1/jobs/{job}/cancel")
    return rows.count, rows.sent_at - started


class Rows:
    """So many bytes of valid rows of two labels, none of them twice."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._filler = "word " * (max(_LEAST_ROW_BYTES, size // _ROWS) // 5)
        self.count = 0
        self.sent_at = 0.0

    def body(self) -> Iterator[bytes]:
        """The form, a hundred rows at a time; when more is requested after its end, all of it has been sent."""
        yield _HEAD
        sent = 0
        while sent < self._size:
            piece = b"".join(self._row() for _ in range(100))
            sent += len(piece)
            yield piece
        yield _TAIL
        self.sent_at = time.perf_counter()

    def _row(self) -> bytes:
        self.count += 1
        label = ("yes", "no")[self.count % 2]
        return f'{{"text": "number {self.count}: {self._filler}", "label": "{label}"}}\n'.encode()


@contextmanager
def _watched(server: psutil.Process) -> Iterator[list[Peak]]:
    """Afterwards the list holds the peak of meanwhile."""
    before = resident(server)
    most = [before, 0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            most[0] = max(most[0], resident(server))
            most[1] = max(most[1], sum(map(resident, server.children(recursive=True))))

    thread = threading.Thread(target=watch)
    thread.start()
    peaks: list[Peak] = []
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()
        peaks.append(Peak(before, *most))


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    seconds, resident = document["seconds"], document["resident_bytes"]
    return "\n".join(
        [
            "# Cost of a large upload", "",
            f"{document['megabytes']:,} MB in {document['rows']:,} valid rows, sent as they are made to a real "
            f"`onboard serve`. The limit is {MAX_ROWS:,} rows and 1 GiB.", "",
            f"{made_on(document)}. "
            "[Numbers](upload.json).", "",
            "| | MiB | wanted |", "|---|---|---|",
            f"| the server's process before | {resident['before'] / _MIB:.1f} | |",
            f"| its growth at most | {document['server_growth_mib']} | ≤ {WANTED_MIB:.0f} |",
            f"| the child that checks the rows, at most | {document['children_peak_mib']} | |", "",
            f"Sent after {seconds['sent']} s, answered after {seconds['answered']} s. The child reads all rows, for "
            "duplicates, splits and the digest are about all of them; it ends with the check, one works at a time, and "
            "its memory goes back to the system.",
        ]
    ) + "\n"  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
