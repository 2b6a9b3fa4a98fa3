"""What the ops team reads: the words of `queue show`, `workers list`, `jobs show` and `jobs watch`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from support import watched_jobs as past
from support.command_line import CommandLine
from typer.testing import CliRunner

from cli import live, watch
from cli.columns import Columns
from cli.live import keep_looking
from cli.main import app
from onboard import __version__, local
from onboard.contract.operations import QueueList
from onboard.domain.job import JobState, Stage
from onboard.domain.moment import to_iso
from onboard.domain.worker import WorkerState
from onboard.errors import UnavailableError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.workers import QueueRepository

GPU = {
    "name": "NVIDIA H100", "memory_used_bytes": 12 * 2**30, "memory_total_bytes": 80 * 2**30, "utilization_ratio": 0.37,
    "temperature_celsius": 54,
}  # fmt: skip


@pytest.fixture
def database(services: Services) -> Database:
    """That of the home in which the commands run."""
    return services.database


def lines(*words: str) -> list[str]:
    """What a command prints where no terminal is, without the blanks between its columns."""
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_queue_show_has_a_row_per_queue_and_one_for_what_ended(database: Database) -> None:
    past.worker(database, "w1")
    past.running(database, "w1", ago=200)
    past.queued(database, ago=7500)
    past.queued(database, ago=-300)
    for run in (100.0, 200.0):
        past.ended(database, ago=1000, wait=20, run=run, attempts=2)
    past.ended(database, ago=1000, wait=20, run=300, state=JobState.DEAD, attempts=3)
    shown = lines("queue", "show")
    assert shown[0] == "queue queued oldest running oldest workers"
    assert shown[1].startswith("default 2, 1 of them later 2 h 5 min 1 3 min ")
    assert shown[2] == "Jobs that ended in the last 24 h; wait and run as median / 95th percentile"
    assert shown[3] == "queue ended last hour wait run retries dead"
    assert shown[4] == "default 3 3 20 s / 20 s 3.3 min / 4.8 min 4 1"


def test_queue_show_cries_when_jobs_wait_for_nobody(database: Database) -> None:
    past.worker(database, "leaving", state=WorkerState.DRAINING)
    past.queued(database)
    past.queued(database, queue="gpu-large")
    past.queued(database, queue="gpu-large")
    with database.write() as session:
        QueueRepository(session).set_paused("gpu-large", True)
    shown = lines("queue", "show")
    assert shown[0] == "default: 1 job waits, and no live worker serves it: onboard worker --queue default"
    assert shown[1] == "gpu-large: 2 jobs wait, and no live worker serves it: onboard worker --queue gpu-large"
    assert shown[4].split()[-2:] == ["none", "paused"]


def test_queue_show_as_a_document_names_its_units(database: Database) -> None:
    past.ended(database, ago=100)
    document = json.loads("\n".join(lines("queue", "show", "--json")))
    (queue,) = document["queues"]
    assert document["at"].endswith("Z")
    assert queue["recent"]["run_p50_seconds"] == pytest.approx(10, abs=0.01)
    assert {key for key in queue["recent"] if key.endswith("_seconds")} == {
        "window_seconds", "wait_p50_seconds", "wait_p95_seconds", "run_p50_seconds", "run_p95_seconds",
    }  # fmt: skip


def test_workers_list_tells_machine_job_and_time_left(database: Database) -> None:
    past.worker(database, "gpu-a-0", device="cuda:0", gpus=[GPU], resident_bytes=700 * 2**20)
    past.worker(database, "lost", silent=300, gpus=[], gpu_reason="runs on the CPU")
    past.worker(database, "leaving", state=WorkerState.DRAINING, queues=("default", "urgent"))
    for _ in range(2):
        past.ended(database, ago=100, stages={"train": 7200.0, "evaluate": 3600.0})
    job = past.running(database, "gpu-a-0", stage=Stage.TRAIN, stage_ago=3600)
    head, lost, leaving, gpu = lines("workers", "list")
    assert head == "worker state heartbeat memory device job time left"
    assert gpu.startswith(f"gpu-a-0, on box, onboard {__version__} running, default ")
    readings = "cuda:0, NVIDIA H100, 12.9 GB of 85.9 GB, 37% busy, 54 °C"
    assert f" s 734 MB {readings} {job.id} colours, train for 1 h" in gpu
    assert re.search(r", attempt 1 of 3 about (2 h|1 h 59 min)$", gpu)
    assert leaving.startswith(f"leaving, on box, onboard {__version__} draining, default, urgent ")
    assert lost.startswith(f"lost, on box, onboard {__version__} lost, default 5 min ")
    assert lost.endswith(" cpu, runs on the CPU")


def test_a_forecast_that_nobody_can_make_is_unknown(database: Database) -> None:
    past.worker(database, "w1")
    past.running(database, "w1", stage=Stage.TRAIN, base_digest="new")
    assert lines("workers", "list")[1].endswith(" attempt 1 of 3 unknown")


def test_jobs_show_explains_the_wait_and_what_ends_it(database: Database) -> None:
    past.queued(database, queue="gpu-large", priority=1)
    job = past.queued(database, queue="gpu-large")
    shown = lines("jobs", "show", job.id)
    assert shown[:2] == ["Waits: 1 ahead, no worker on gpu-large", "→ onboard worker --queue gpu-large"]
    document = json.loads("\n".join(lines("jobs", "show", job.id, "--json")))
    assert document["running"] is None
    assert (document["waiting"]["ahead"], document["waiting"]["live_workers"]) == (1, 0)
    assert document["waiting"]["message"] == "1 ahead, no worker on gpu-large"


def test_jobs_show_tells_who_works_where_and_how_long_still(database: Database) -> None:
    past.worker(database, "w1", silent=30)
    past.ended(database, ago=100, stages={"train": 36_000.0})
    job = past.running(database, "w1", stage=Stage.TRAIN, stage_ago=18_000, note="train step 20/40")
    shown = lines("jobs", "show", job.id)
    assert shown[0].startswith("Worker: w1 on box, heartbeat 3")
    assert shown[1] == "Stage: train for 5 h, attempt 1 of 3: train step 20/40"
    assert shown[2].endswith("(1 similar job)")
    document = json.loads("\n".join(lines("jobs", "show", job.id, "--json")))
    assert document["waiting"] is None
    assert (document["running"]["worker"], document["running"]["host"]) == ("w1", "box")
    assert document["running"]["left_seconds"] == pytest.approx(18_000, abs=60)


def test_jobs_show_says_that_a_lease_ran_out(database: Database) -> None:
    job = past.running(database, "gone", lease_left=-5)
    shown = lines("jobs", "show", job.id)
    assert shown[0] == "Worker: gone, which is gone"
    assert "Its lease has expired: the next free worker takes it over." in shown


def test_jobs_show_of_an_ended_job_neither_waits_nor_runs(database: Database) -> None:
    document = json.loads("\n".join(lines("jobs", "show", past.ended(database, ago=10), "--json")))
    assert (document["waiting"], document["running"]) == (None, None)


def test_draining_an_unknown_worker_exits_with_3(database: Database, command_line: CommandLine) -> None:
    said = command_line("workers", "drain", "nobody")
    assert said.code == 3
    assert "There is no live worker 'nobody'." in said.err


def test_jobs_list_is_not_cut_where_no_terminal_is(database: Database) -> None:
    past.worker(database, "w1")
    job = past.running(database, "w1", stage=Stage.TRAIN)
    done = past.ended(database, ago=10, attempts=2)
    head, newest, older = lines("jobs", "list")
    assert head == "job task state stage attempt version submitted"
    assert newest.startswith(f"{done} colours succeeded 2 of 3 20")
    assert re.fullmatch(rf"{job.id} colours running train 1 of 3 \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d", older)


ROWS = Columns("worker", "state", "device", folded=("device",))
ROWS.add(("gpu-a-0", "on [box]"), ("lost", "default", "gpu-large"), "")
ROWS.add("w1", "running", ("cpu", "runs on the CPU, and a long reason why it does that"))


def drawn(width: int, *, terminal: bool = True, forced: bool = False) -> list[str]:
    screen = Console(
        file=StringIO(), force_terminal=terminal or forced, color_system=None, width=width, highlight=False
    )
    screen.print(ROWS, soft_wrap=not terminal)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_on_a_wide_terminal_rows_are_a_table_whose_long_cells_are_folded() -> None:
    head, rule, *rows = drawn(45)
    assert (head.split(), set(rule)) == (["worker", "state", "device"], {"─"})
    assert rows == [
        "gpu-a-0   lost",
        "on [box]  default",
        "          gpu-large",
        "w1        running    cpu",
        "                     runs on the CPU, and a",
        "                     long reason why it does",
        "                     that",
    ]


def test_on_a_narrow_terminal_each_row_is_a_paragraph_and_nothing_is_cut_off() -> None:
    assert drawn(44) == [
        "gpu-a-0, on [box]",
        "  state lost, default, gpu-large",
        "w1",
        "  state running; device cpu, runs on the",
        "  CPU, and a long reason why it does that",
    ]
    assert "".join(drawn(9)).replace(" ", "") == "".join(drawn(44)).replace(" ", "")


def test_where_no_terminal_is_every_row_is_one_line_of_whatever_width() -> None:
    _, first, second = drawn(20, terminal=False)
    assert drawn(20, terminal=False, forced=True)[1:] == [first, second]  # FORCE_COLOR
    assert first == "gpu-a-0, on [box]  lost, default, gpu-large"
    assert second.endswith("  cpu, runs on the CPU, and a long reason why it does that")


def test_following_a_job_without_a_terminal_says_once_what_somebody_has_to_do(
    services: Services, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = past.queued(services.database, queue="gpu-large")
    display, follower = watch._Plain(), watch._Follower(local.Onboard(services), job.id)
    monkeypatch.setattr(watch, "_WAIT_SECONDS", -1.0)
    for _ in range(3):
        follower.step(display)
    past.worker(services.database, "w1", queues=("gpu-large",))
    follower.step(display)
    assert capsys.readouterr().err.splitlines() == [
        "queued", "waiting: next in line, no worker on gpu-large", "  → onboard worker --queue gpu-large",
    ]  # fmt: skip


class Looks:
    """What is seen at each look: a document, an error, or in the end Ctrl-C."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._found: Iterator[dict[str, Any] | Exception] = iter(answers)

    def __call__(self) -> dict[str, Any]:
        answer = next(self._found, None)
        if answer is None:
            raise KeyboardInterrupt
        if isinstance(answer, Exception):
            raise answer
        return answer


AWAY = UnavailableError("The database cannot be reached.", "Start PostgreSQL.")
Watched = Callable[..., tuple[int, str, str]]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Watched:
    """Looks again and again without the time between; exit code, standard output and error."""
    monkeypatch.setattr(live.time, "sleep", lambda seconds: None)

    def watched(*answers: dict[str, Any] | Exception, as_json: bool = False) -> tuple[int, str, str]:
        with pytest.raises(live.typer.Exit) as exit_:
            keep_looking(Looks(*answers), lambda seen: f"{len(seen['queues'])} queues", as_json, 2.0)
        return (exit_.value.exit_code, *capsys.readouterr())

    return watched


def seen(at: float) -> dict[str, Any]:
    return QueueList(at=to_iso(at), queues=()).to_json()


def test_without_a_terminal_each_look_is_a_block_headed_by_its_moment(watched: Watched) -> None:
    code, out, err = watched(seen(0.0), seen(2.0))
    assert out == "1970-01-01T00:00:00.000Z\n0 queues\n\n1970-01-01T00:00:02.000Z\n0 queues\n\n"
    assert (code, err) == (130, "")


def test_with_json_each_look_is_one_document_on_one_line(watched: Watched) -> None:
    code, out, err = watched(seen(0.0), AWAY, seen(2.0), as_json=True)
    first, away, second = (json.loads(line) for line in out.splitlines())
    assert (first["queues"], second["at"]) == ([], "1970-01-01T00:00:02.000Z")
    assert away["error"]["code"] == "unavailable"
    assert (code, err) == (130, "")


def test_a_database_that_goes_away_is_said_and_waited_for(watched: Watched) -> None:
    code, out, err = watched(seen(0.0), AWAY, AWAY, seen(2.0))
    assert out.count("0 queues") == 2
    assert err.splitlines() == ["The database cannot be reached. Waiting for it."] * 2
    assert code == 130


def test_on_a_terminal_the_old_figures_stay_under_the_words_for_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = Console(file=StringIO(), force_terminal=True, color_system=None, width=200)
    monkeypatch.setattr("cli.console.CleanConsole", lambda: screen)
    with live._InPlace(2.0) as display:
        display.show(seen(0.0), lambda _: "the figures")
        display.away(AWAY, 12.0)
        drawn = screen.file.getvalue().rpartition("\x1b[2K")[2]
    assert [line.strip() for line in drawn.splitlines()] == [
        "The database cannot be reached. Waiting for it for 12 s; the data below is old.", "the figures",
    ]  # fmt: skip


def test_an_event_shows_its_error_as_sentences() -> None:
    error = {"code": "damaged", "type": "artifact-gone", "message": "It is missing.", "remedy": "Restore it.", "row": 1}
    event = {"kind": "state", "message": "failed", "stage": None, "seconds": None, "numbers": {"error": error}}
    assert watch.event_line(event) == "failed: It is missing. Restore it."
    later = {**event, "message": "queued", "numbers": {"error": error, "delay_seconds": 3.0}}
    assert watch.event_line(later) == "queued  (delay_seconds 3): It is missing. Restore it."
    deleted = {**event, "message": "cancelled", "numbers": {"error": {"code": "cancelled"}}}
    assert watch.event_line(deleted) == "cancelled"


def test_following_a_job_waits_for_a_database_that_goes_away(
    services: Services, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    past.worker(services.database, "w1")
    job = past.queued(services.database)
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: None)
    step = watch._Follower.step
    turns: Iterator[Any] = iter([None, AWAY, AWAY, None, "end"])

    def stumbling(self: Any, display: Any) -> Any:
        turn = next(turns)
        if isinstance(turn, Exception):
            raise turn
        if turn == "end":
            with services.database.write() as session:
                claims = ClaimRepository(session)
                claimed = claims.claim("w1", ["default"])
                assert claimed is not None
                claims.finish(claimed.id, claimed.attempt, JobState.FAILED, error={"message": "No."})
        return step(self, display)

    monkeypatch.setattr(watch._Follower, "step", stumbling)
    assert watch.follow(local.Onboard(services), job.id)["state"] == "failed"
    assert capsys.readouterr().err.splitlines() == [
        "queued", "The database cannot be reached. Waiting for it.", "The connection is back.",
        "running  (worker w1)", "failed: No.",
    ]  # fmt: skip
