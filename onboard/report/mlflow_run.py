"""Log a job as an MLflow run: parameters, metrics, tags, and the report with its document as files.

A job is logged once per experiment; the tag `onboard.job` identifies its run. Incomplete runs are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onboard.domain.extras import require_extra
from onboard.domain.moment import from_iso
from onboard.errors import ConflictError, InputError, UnavailableError
from onboard.report.html import render
from onboard.settings import switch_off_mlflow_telemetry

if TYPE_CHECKING:
    from mlflow import MlflowClient

JOB_TAG: Final = "onboard.job"
_FINISHED: Final = "FINISHED"
_REACH_SECONDS: Final = 10.0
_PARAMETERS: Final = ("metric", "validation_kind", "hypernetwork_version")
_OF_THE_SPEC: Final = ("base", "init", "tune_hypernetwork", "method", "seed", "shots")


@dataclass(frozen=True)
class JobRun:
    """The contents of a run.

    Args:
        name: name of the run: the version that the job published.
        parameters: requested and chosen options.
        metrics: by split ("test/accuracy"), baseline ("test/majority/accuracy") and stage ("seconds/train").
        tags: job, task, version, digests.
    """

    job: str
    name: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> JobRun:
        """Create from a job's document, as `onboard jobs show --json` prints it.

        Raises:
            ConflictError: the job has not published a version.
        """
        job, task, version = document["job"], document["task"], document.get("version")
        if version is None:
            raise ConflictError("job-without-version", job=job, state=document["state"])
        spec, init = document.get("spec") or {}, document.get("init") or {}
        asked = {name: spec.get(name) for name in _OF_THE_SPEC} | {name: document.get(name) for name in _PARAMETERS}
        parameters = {**asked, "init.chosen": init.get("chosen"), **_rows(document)}
        tags = {
            JOB_TAG: job, "onboard.task": task, "onboard.version": version, "onboard.weak": document.get("weak"),
            "onboard.embedding_digest": document.get("embedding_digest"),
            **{f"onboard.{name}": digest for name, digest in (document.get("pins") or {}).items()},
        }  # fmt: skip
        return cls(job, f"{task}@v{version}", _texts(parameters), dict(_metrics(document)), _texts(tags))


def log_job(document: Mapping[str, Any], uri: str, experiment: str) -> tuple[str, bool]:
    """Log a job to the MLflow at `uri`, unless it is already there.

    Args:
        uri: URI of the tracking server, or of another store that MLflow supports.
        experiment: its name; created if it does not exist.

    Returns:
        The run's id, and whether it is new.

    Raises:
        ConflictError: the job has not published a version.
        NotFoundError: the extra `mlflow` is not installed.
        InputError, UnavailableError: MLflow rejects the address or the data, or cannot be reached.
    """
    run = JobRun.of(document)
    switch_off_mlflow_telemetry()
    require_extra("mlflow", "mlflow")
    _require_reachable(uri)
    with _errors_in_our_words(uri):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=uri)
        place = _experiment(client, experiment)
        for logged in client.search_runs([place], f"tags.`{JOB_TAG}` = '{run.job}'"):
            if logged.info.status == _FINISHED:
                return str(logged.info.run_id), False
            _withdraw(client, logged.info.run_id)  # an interrupted attempt left it incomplete
        return _log(client, place, run, document), True


def _log(client: MlflowClient, experiment: str, run: JobRun, document: Mapping[str, Any]) -> str:
    from mlflow.entities import Metric, Param

    begun, ended = _milliseconds(document.get("created_at")), _milliseconds(document.get("finished_at"))
    new = client.create_run(experiment, start_time=begun, tags=dict(run.tags), run_name=run.name).info.run_id
    is_whole = False
    try:
        metrics = [Metric(name, value, ended or begun or 0, 0) for name, value in run.metrics.items()]
        client.log_batch(new, metrics, [Param(name, value) for name, value in run.parameters.items()])
        client.log_text(new, render(document), "report.html")
        client.log_text(new, json.dumps(document, ensure_ascii=False, indent=2), "job.json")
        client.set_terminated(new, _FINISHED, ended)
        is_whole = True
    finally:
        if not is_whole:
            _withdraw(client, new)
    return str(new)


def _withdraw(client: MlflowClient, run: str) -> None:
    """Delete an incomplete run if MLflow can be reached; otherwise the next attempt does."""
    from mlflow.exceptions import MlflowException

    with suppress(MlflowException, OSError):
        client.set_terminated(run, "FAILED")
        client.delete_run(run)


def _experiment(client: MlflowClient, name: str) -> str:
    known = client.get_experiment_by_name(name)
    return str(known.experiment_id if known is not None else client.create_experiment(name))


def _rows(document: Mapping[str, Any]) -> dict[str, Any]:
    rows = (document.get("dataset") or {}).get("rows") or {}
    return {f"rows.{split}": count for split, count in rows.items()}


def _metrics(document: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for split, metrics in (document.get("metrics") or {}).items():
        yield from ((f"{split}/{name}", metric["value"]) for name, metric in (metrics or {}).items())
    for split, baselines in (document.get("baselines") or {}).items():
        for baseline, metrics in (baselines or {}).items():
            yield from ((f"{split}/{baseline}/{name}", metric["value"]) for name, metric in metrics.items())
    for stage, seconds in (document.get("seconds") or {}).items():
        yield f"seconds/{stage}", seconds


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items() if value not in (None, "", [])}


def _milliseconds(moment: str | None) -> int | None:
    return None if moment is None else int(from_iso(moment) * 1_000)


def _require_reachable(uri: str) -> None:
    """Fail early: MLflow's client retries an unreachable server for minutes. Raises UnavailableError."""
    if uri.startswith(("http://", "https://")):
        import httpx

        try:
            httpx.get(uri, timeout=_REACH_SECONDS)
        except httpx.InvalidURL as error:
            raise InputError("mlflow-address-invalid", uri=uri, reason=error) from error
        except httpx.TransportError as error:
            raise UnavailableError("mlflow-unreachable", uri=uri, reason=error) from error


@contextmanager
def _errors_in_our_words(uri: str) -> Iterator[None]:
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        raise InputError("mlflow-refuses", uri=uri, reason=error.message) from error
    except OSError as error:  # from the file store, which may be on another host than the server
        raise UnavailableError("mlflow-artifacts-unavailable", uri=uri, reason=error) from error
