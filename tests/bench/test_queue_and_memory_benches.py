"""The measurements of a long queue and of a worker's memory: they do what they say, in small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench import memory
from bench.queue import __main__ as queue
from cli.main import app
from onboard.jobs.status import queues
from onboard.registry.services import Services

SIZES = queue.Sizes(jobs=6, versions=5, calls=2, commands=1, dispatched=4)


@pytest.fixture
def filled(tiny_services: Services, tmp_path: Path) -> queue.LongQueue:
    place = queue.LongQueue(tiny_services, tmp_path, SIZES)
    place.fill()
    return place


def test_a_long_queue_is_filled_and_each_call_does_its_work(filled: queue.LongQueue, tiny_services: Services) -> None:
    filled.submit()
    filled.claim()
    filled.select_one()
    filled.list_versions()
    (status,) = [seen for seen in queues(tiny_services.database).queues if seen.queue == "default"]
    assert (status.queued, status.running) == (6, 1)


def test_processes_claim_and_end_their_share_of_the_jobs(filled: queue.LongQueue, tiny_services: Services) -> None:
    figure = filled.dispatch(2)
    assert figure["n"] == 4
    assert 0 < figure["p50"] <= figure["p95"]
    (status,) = [seen for seen in queues(tiny_services.database).queues if seen.queue == "default"]
    assert status.queued == 2


def figures(milliseconds: float) -> dict[str, dict[str, Any]]:
    names = ["SELECT 1", *queue.WANTED, *(f"dispatch, {workers} workers" for workers in (1, 4, 16))]
    figure = {**queue.summary([milliseconds] * 3), "p50_by_select_1": 1.0, "per_job": milliseconds}
    return dict.fromkeys(names, figure)


@pytest.mark.parametrize(("milliseconds", "code"), [(20.0, 0), (20.5, 1)])
def test_the_queue_bench_fails_when_a_figure_is_above_what_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, milliseconds: float, code: int
) -> None:
    monkeypatch.setattr(queue, "measured_at", lambda name, sizes: figures(milliseconds))
    output, table = tmp_path / "queue.json", tmp_path / "queue.md"
    assert queue.main(["--output", str(output), "--table", str(table)]) == code
    assert json.loads(output.read_text())["kept"] is (code == 0)
    assert f"| claim | {milliseconds:.1f} | {milliseconds:.1f} | 1 × |" in table.read_text()


@pytest.mark.parametrize(("last", "code"), [(103, 0), (104, 1)])
def test_memory_that_grows_by_more_than_three_per_cent_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, code: int
) -> None:
    monkeypatch.setattr(memory, "tiny_base_in", str)
    monkeypatch.setattr(memory, "measure", lambda *_given: [90, 100, 100, last])
    output, table = tmp_path / "memory.json", tmp_path / "memory.md"
    given = ["--jobs", "4", "--early", "2", "--output", str(output), "--table", str(table)]
    assert memory.main(given) == code
    assert json.loads(output.read_text())["growth"] == pytest.approx(last / 100 - 1)
    assert f"**{last / 100 - 1:+.2%}** from job 2 to job 4" in table.read_text()


def test_onboard_versions_shows_the_newest_and_says_how_to_go_on(
    filled: queue.LongQueue, tiny_services: Services
) -> None:
    home = {"ONBOARD_HOME": str(tiny_services.settings.home), "ONBOARD_BASE": tiny_services.settings.base}
    given = ["versions", "sst2", "--limit", "2", "--json"]
    shown = CliRunner().invoke(app, given, env=home, catch_exceptions=False)
    document = json.loads(shown.stdout)
    assert [version["version"] for version in document["versions"]] == [4, 5]
    assert document["next"] == "4"
    assert shown.stderr == "There are older ones: onboard versions sst2 --before 4\n"
    last = CliRunner().invoke(app, [*given, "--before", "2"], env=home, catch_exceptions=False)
    document = json.loads(last.stdout)
    assert [version["version"] for version in document["versions"]] == [1]
    assert document["next"] is None
    assert last.stderr == ""
