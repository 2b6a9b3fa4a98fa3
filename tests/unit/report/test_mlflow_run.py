"""A job as a run of MLflow, in a real store of it; and what is said where that cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.command_line import CommandLine
from support.real_programs import running
from support.real_services import free_port
from support.refusals import refused as error_of
from support.registry_samples import sample_spec

from onboard.errors import UnavailableError
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.report.mlflow_run import JOB_TAG, JobRun, log_job

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of an empty store, which tells nobody."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what MLflow imports
        import mlflow  # noqa: F401
    return (tmp_path / "mlflow").as_uri()


def client_of(uri: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def test_metrics_stand_beside_the_baselines_and_what_is_not_known_is_left_out(document: dict[str, Any]) -> None:
    run = JobRun.of({**document, "spec": {"base": "mini", "seed": 0, "shots": None}})
    assert run.name == "tickets@v3"
    assert run.metrics.items() >= {
        "test/accuracy": 0.8125, "test/majority/accuracy": 0.2, "test/tfidf_logistic_regression/accuracy": 0.66,
        "seconds/train": 75.0,
    }.items()  # fmt: skip
    assert run.parameters.items() >= {"base": "mini", "seed": "0", "init.chosen": "trec@v1", "rows.test": "30"}.items()
    assert "shots" not in run.parameters
    assert run.tags[JOB_TAG] == "3f9a1c0be77d"
    assert run.tags["onboard.backbone_digest"] == "sha256:beef"
    assert run.tags["onboard.weak"] == "False"


def test_a_run_has_metrics_times_and_the_report_and_comes_once(document: dict[str, Any], store: str) -> None:
    run, new = log_job(document, store, "tickets")
    assert new
    assert log_job(document, store, "tickets") == (run, False)
    client = client_of(store)
    logged = client.get_run(run)
    assert logged.data.metrics["test/accuracy"] == 0.8125
    assert logged.data.tags["onboard.version"] == "3"
    assert (logged.info.status, logged.info.end_time - logged.info.start_time) == ("FINISHED", 90_000)
    page, facts = (Path(client.download_artifacts(run, name)) for name in ("report.html", "job.json"))
    assert "tickets" in page.read_text(encoding="utf-8")
    assert json.loads(facts.read_text(encoding="utf-8"))["job"] == document["job"]


@pytest.fixture
def server(tmp_path: Path, store: str) -> Iterator[str]:
    """The URL of a real server, of an environment of its own as it is heavy: MLFLOW_SERVER names its `mlflow`."""
    program = os.environ.get("MLFLOW_SERVER")
    if not program:
        pytest.skip("MLFLOW_SERVER names no program (pip install mlflow in another environment)")
    port = free_port()
    command = [
        program, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{tmp_path / 'runs.db'}", "--artifacts-destination", str(tmp_path / "files"),
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with running(command, url, tmp_path, "MLflow's server", 300):
        yield url


@pytest.mark.timeout(900)
def test_a_real_server_takes_the_run_with_its_files_once(document: dict[str, Any], server: str) -> None:
    run, new = log_job(document, server, "tickets")
    assert new
    assert log_job(document, server, "tickets") == (run, False)
    logged = client_of(server).get_run(run)
    assert (logged.info.status, logged.data.metrics["test/accuracy"]) == ("FINISHED", 0.8125)
    assert logged.data.params["init.chosen"] == "trec@v1"
    page = Path(client_of(server).download_artifacts(run, "report.html")).read_text(encoding="utf-8")
    assert "tickets" in page


@pytest.mark.parametrize("error", [OSError("the bucket is away"), KeyboardInterrupt()])
def test_a_run_whose_report_cannot_be_stored_is_withdrawn_and_logged_by_the_next_attempt(
    document: dict[str, Any], store: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("mlflow.MlflowClient.log_text", refuse)
        with pytest.raises(UnavailableError if isinstance(error, OSError) else KeyboardInterrupt):
            log_job(document, store, "tickets")
    client = client_of(store)
    (place,) = [one.experiment_id for one in client.search_experiments() if one.name == "tickets"]
    assert client.search_runs([place]) == []
    run, new = log_job(document, store, "tickets")
    assert new
    assert client.get_run(run).info.status == "FINISHED"


def test_a_run_that_a_killed_process_left_half_logged_is_replaced(document: dict[str, Any], store: str) -> None:
    client = client_of(store)
    place = client.create_experiment("tickets")
    half = client.create_run(place, tags={JOB_TAG: document["job"]}).info.run_id
    run, new = log_job(document, store, "tickets")
    assert (new, run != half) == (True, True)
    assert [one.info.run_id for one in client.search_runs([place])] == [run]


def test_the_same_job_in_another_experiment_is_a_run_of_its_own(document: dict[str, Any], store: str) -> None:
    first, second = (log_job(document, store, name) for name in ("one", "two"))
    assert first[0] != second[0]
    assert second[1]


def test_a_job_without_a_version_is_refused_before_anything_is_asked(document: dict[str, Any]) -> None:
    with error_of("job-without-version"):
        log_job({**document, "version": None, "state": "failed"}, "nowhere://", "tickets")


def test_a_server_that_is_away_is_told_at_once(document: dict[str, Any], store: str) -> None:
    port = free_port()
    with error_of("mlflow-unreachable"):
        log_job(document, f"http://127.0.0.1:{port}", "tickets")


def test_an_address_that_mlflow_does_not_know_is_refused(document: dict[str, Any], store: str) -> None:
    with error_of("mlflow-refuses", uri="nowhere://there"):
        log_job(document, "nowhere://there", "tickets")


def test_its_makers_are_not_told_how_it_is_used(document: dict[str, Any], store: str) -> None:
    program = (
        "import json, sys\n"
        "from onboard.report.mlflow_run import log_job\n"
        "log_job(json.load(sys.stdin), sys.argv[1], 'tickets')\n"
        "from mlflow.telemetry.utils import is_telemetry_disabled\n"
        "assert is_telemetry_disabled()"
    )
    # an environment of its own: where MLflow sees that it is tested, it tells nothing anyway
    environment = {"PYTHONPATH": str(ROOT), "MLFLOW_ALLOW_FILE_STORE": "true"}
    done = subprocess.run(
        [sys.executable, "-c", program, store], input=json.dumps(document), env=environment, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_without_the_extra_the_command_that_installs_it_is_the_remedy(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with error_of("extra-not-installed", extra="mlflow"):
        log_job(document, "file:///there", "tickets")


def test_the_command_logs_by_task_and_refuses_what_has_not_ended(
    command_line: CommandLine,
    tiny_services: Services,
    document: dict[str, Any],
    store: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tiny_services.database.write() as session:
        JobRepository(session).add(sample_spec())
    command_line.at_home(tiny_services.settings)
    refused = command_line("mlflow", "log", sample_spec().task, "--uri", store, "--json")
    assert (refused.code, refused.error["type"]) == (4, "job-without-version")
    monkeypatch.setattr("onboard.local.Onboard.job", lambda self, job: SimpleNamespace(document=document))
    logged = command_line("mlflow", "log", "tickets", "--uri", store, "--json")
    assert (logged.code, logged.document["new"], logged.document["version"]) == (0, True, 3), logged.err
    monkeypatch.setattr("onboard.client.Onboard.job", lambda self, job: SimpleNamespace(document=document))
    monkeypatch.setenv("ONBOARD_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ONBOARD_TOKEN", "onb_nobody")
    elsewhere = command_line("mlflow", "log", "tickets", "--uri", store, "--json")
    assert (elsewhere.document["new"], elsewhere.document["run"]) == (False, logged.document["run"]), elsewhere.err
