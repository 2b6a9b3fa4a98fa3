"""Traces by OpenTelemetry, off unless ONBOARD_TRACES is on: without it nothing of its SDK is imported.

Where they go is for OpenTelemetry's own variables to say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME …). They say
what ran, how long and with which numbers; texts of rows and messages of errors are not among them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from onboard import __version__
from onboard.domain.extras import require_extra
from onboard.errors import InputError
from onboard.settings import trace_protocol

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    from onboard.settings import Settings

_PROTOCOL: Final = "http/protobuf"
_SEND_SECONDS: Final = 3.0  # the exporter itself tries a collector that is away for 10


def require_tracing(settings: Settings) -> None:
    """Check that traces can be sent, if they are on.

    Raises:
        NotFoundError: the extra `otel` is not installed.
        InputError: OpenTelemetry's variables name a protocol other than OTLP over HTTP.
    """
    if settings.traces:
        require_extra("otel", "opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
        variable, protocol = trace_protocol()
        if protocol not in ("", _PROTOCOL):
            raise InputError("trace-protocol-unsupported", variable=variable, protocol=protocol, known=_PROTOCOL)


def make_provider(settings: Settings, part: str) -> TracerProvider | None:
    """What makes the spans of this process; None where nobody asked for them.

    Args:
        settings: `traces` says whether.
        part: of the service, in the name that OTEL_SERVICE_NAME may replace: `onboard-worker`, `onboard-api`.

    Raises:
        NotFoundError, InputError: as `require_tracing`.
    """
    if not settings.traces:
        return None
    require_tracing(settings)
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider

    ours = {"service.name": f"onboard-{part}", "service.version": __version__}
    provider = TracerProvider(resource=Resource.create({**ours, **OTELResourceDetector().detect().attributes}))
    provider.add_span_processor(make_processor())
    return provider


def make_processor() -> SpanProcessor:
    """Sends finished spans in batches, by OTLP over HTTP, from a thread: a collector that is away holds up nothing."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())


def send_spans(provider: TracerProvider | None) -> None:
    """Send what has finished, now: the process may be ended without a word. A dead collector is not waited for."""
    if provider is not None:
        sending = threading.Thread(target=provider.force_flush, name="traces", daemon=True)
        sending.start()
        sending.join(_SEND_SECONDS)
