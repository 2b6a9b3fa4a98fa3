"""The measurement of the latest embedding: it does what it says, in small."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.real_door import answering

from bench import api
from bench.harness import deployed
from bench.harness.server import Asker
from onboard.api.app import create_app
from onboard.registry.services import Services
from onboard.settings import Settings

SIZES = api.Sizes(versions=5, requests=3, warm_up=1)


@contextmanager
def in_this_process(settings: Settings, _log: Path, _core: int | None) -> Iterator[Any]:
    with answering(create_app(settings)) as port:
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}")


def test_every_kind_of_request_is_made_and_answered_as_it_should(
    tiny_services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "serving", in_this_process)
    figures_by_request = api.measure(tiny_services.settings, tmp_path, SIZES)
    assert {*api.WANTED} < {*figures_by_request}
    assert all(figure["n"] == 3 and 0 < figure["p50"] <= figure["p99"] for figure in figures_by_request.values())


def test_one_task_has_as_many_versions_as_are_wanted_and_the_last_is_the_latest(tiny_services: Services) -> None:
    token = api.fill(tiny_services, 5)
    with in_this_process(tiny_services.settings, Path(), None) as server, closing(Asker(server.url, token)) as asker:
        last, latest = (asker.ask(f"/v1/tasks/sst2/embeddings/{ref}") for ref in ("v5", "latest"))
        assert last == latest != ""
        for path, status in (("/v1/tasks/sst2/embeddings/v6", 404), ("/v1/tokens", 403)):
            asker.ask(path, status)
        with pytest.raises(RuntimeError, match="v6: 404"):
            asker.ask("/v1/tasks/sst2/embeddings/v6")


def figures(latest: float, unchanged: float) -> dict[str, dict[str, Any]]:
    values = {"/healthz": 0.5, "latest": latest, "latest, unchanged": unchanged}
    return {what: {"n": 3, "p50": value, "p95": value, "p99": value} for what, value in values.items()}


@pytest.mark.parametrize(("latest", "unchanged", "code"), [(10.0, 5.0, 0), (10.1, 5.0, 1), (10.0, 5.1, 1)])
def test_it_fails_when_a_figure_is_above_what_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latest: float, unchanged: float, code: int
) -> None:
    monkeypatch.setattr(api, "measurable", lambda: ["sqlite", "postgres"])
    monkeypatch.setattr(api, "measured_at", lambda name, sizes: figures(latest, unchanged))
    output, table = tmp_path / "api.json", tmp_path / "api.md"
    assert api.main(["--output", str(output), "--table", str(table)]) == code
    assert json.loads(output.read_text())["kept"] is (code == 0)
    page = table.read_text()
    assert "10,000 versions" in page
    mark = " **missed**" if latest > 10 else ""
    assert f"| latest | {latest:.2f} | {latest:.2f} | {latest:.2f}{mark} | {latest:.2f} " in page
    assert page.count("**missed**") == 2 * code  # of both places
    what = "latest" if latest > 10 else "latest, unchanged"
    assert (f"above what is wanted: `{what}` on SQLite, `{what}` on PostgreSQL." in page) is (code == 1)


def test_a_measurement_that_is_told_to_stop_ends_what_it_started() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit), deployed.deployed("sqlite") as (_, folder):
        signal.raise_signal(signal.SIGTERM)
    assert not folder.exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_postgresql_only_sqlite_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(deployed, "missing", lambda program: program)
    assert deployed.measurable() == ["sqlite"]
    assert "skipped: postgres is not installed" in capsys.readouterr().out
