"""Requests as OpenTelemetry sees them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.callers import bearer

from onboard.api.app import create_app
from onboard.domain.access import ALL_SCOPES
from onboard.registry.services import Services

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    monkeypatch.setattr("onboard.operations.tracing.make_processor", lambda: SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def traced_door(tiny_services: Services, exporter: InMemorySpanExporter) -> Iterator[TestClient]:
    app = create_app(tiny_services.settings.model_copy(update={"traces": True}))
    headers = bearer(tiny_services.database, *ALL_SCOPES, name="tester")
    with TestClient(app, "http://localhost", headers=headers) as client:
        yield client


def test_a_request_is_a_span_of_its_route_in_the_trace_of_whoever_asks(
    traced_door: TestClient, exporter: InMemorySpanExporter
) -> None:
    traced_door.get("/v1/tasks/nothing", headers={"traceparent": f"00-{TRACE}-{CALLER}-01"})
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/tasks/{task}"
    assert (span.attributes or {})["http.response.status_code"] == 404
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, CALLER)
    assert service_of(span) == "onboard-api"


def test_what_is_asked_all_the_time_and_the_sign_in_page_with_its_code_are_no_spans(
    traced_door: TestClient, exporter: InMemorySpanExporter
) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/login?code=secret"):
        traced_door.get(path)
    assert exporter.get_finished_spans() == ()


def service_of(span: ReadableSpan) -> str:
    return str(span.resource.attributes["service.name"])
