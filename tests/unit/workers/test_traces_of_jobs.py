"""An attempt at a job as OpenTelemetry sees it; and nothing of OpenTelemetry where nobody asked for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.refusals import refused
from support.registry_samples import sample_spec
from support.small_server import SilentHandler, serving

from onboard.domain.job import Job, Stage
from onboard.domain.progress import Progress
from onboard.errors import UnavailableError
from onboard.operations.tracing import make_provider, send_spans
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.settings import Settings
from workers.plan import WorkerPlan
from workers.run import run_worker
from workers.shell import RunJob, work

ROOT = Path(__file__).parents[3]
QUOTED = "the row 'my secret' is odd"


def learn(job: Job, services: Services, progress: Progress) -> None:
    progress.stage_started(Stage.PROBE)
    progress.stage_finished(Stage.PROBE, 0.1, {"loss": 0.5, "chosen": "sst2", "losses": {"sst2": 0.5}})
    progress.stage_started(Stage.PUBLISH)  # whose end stands in the transaction that publishes


def fail(job: Job, services: Services, progress: Progress) -> None:
    progress.stage_started(Stage.TRAIN)
    progress.note(QUOTED)
    raise UnavailableError(QUOTED)


def spans_of(services: Services, run: RunJob) -> dict[str, ReadableSpan]:
    """The spans of one attempt by name."""
    with services.database.write() as session:
        JobRepository(session).add(sample_spec())
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    assert work(services, "gpu-a", ["default"], run, tracing=provider) is not None
    provider.shutdown()
    return {span.name: span for span in exporter.get_finished_spans()}


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_every_stage_is_a_span_below_that_of_the_attempt_with_its_plain_numbers(services: Services) -> None:
    spans = spans_of(services, learn)
    assert set(spans) == {"job", "probe", "publish"}
    job = spans["job"].context
    assert job is not None
    assert {span.parent.span_id for name, span in spans.items() if name != "job" and span.parent} == {job.span_id}
    assert facts(spans["probe"]) == {"onboard.loss": 0.5, "onboard.chosen": "sst2"}
    assert facts(spans["job"]).items() >= {
        "onboard.task": sample_spec().task, "onboard.attempt": 1, "onboard.worker": "gpu-a", "onboard.queue": "default",
    }.items()  # fmt: skip
    assert all(span.status.is_unset for span in spans.values())
    assert (spans["publish"].end_time or 0) <= (spans["job"].end_time or 0)


def test_what_fails_has_the_code_of_the_error_and_quotes_nobody(services: Services) -> None:
    spans = spans_of(services, fail)
    assert set(spans) == {"job", "train"}
    assert [(span.status.is_ok, span.status.description) for span in spans.values()] == [(False, "unavailable")] * 2
    assert not any("secret" in span.to_json() for span in spans.values())


def test_spans_reach_a_collector(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "learners")
        provider = make_provider(Settings(traces=True), "worker")
        assert provider is not None
        with provider.get_tracer("tests").start_as_current_span("probe"):
            pass
        send_spans(provider)
        provider.shutdown()
    (path, body), *_ = received
    assert path == "/v1/traces"
    assert b"probe" in body
    assert b"learners" in body


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Takes what is sent to it."""
    received: list[tuple[str, bytes]] = []

    class Handler(SilentHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

    with serving(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}", received


def test_without_the_setting_there_is_nothing_to_make_spans_with(tmp_path: Path) -> None:
    assert make_provider(Settings(home=tmp_path), "worker") is None
    program = (
        "import sys, workers.tasks, workers.run, onboard.api.app\n"
        "from onboard.settings import Settings\n"
        f"onboard.api.app.create_app(Settings(home={str(tmp_path)!r}))\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "[]\n", done.stderr


def test_a_worker_that_lacks_the_extra_says_so_before_it_takes_a_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)  # as if it were not installed
    settings = Settings(home=tmp_path, traces=True)
    with refused("extra-not-installed", extra="otel"):
        run_worker(WorkerPlan(settings=settings, name="w", queues=("default",), device="cpu"))


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_a_protocol_other_than_http_is_refused_before_anything_starts(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(variable, "grpc")
    settings = Settings(home=tmp_path, traces=True)
    with refused("trace-protocol-unsupported", variable=variable, protocol="grpc"):
        run_worker(WorkerPlan(settings=settings, name="w", queues=("default",), device="cpu"))
    with refused("trace-protocol-unsupported", variable=variable):
        make_provider(settings, "api")
    assert make_provider(Settings(home=tmp_path), "api") is None
    monkeypatch.setenv(variable, "http/protobuf")
    assert make_provider(settings, "api") is not None
