"""OpenTelemetry traces, off unless ONBOARD_TRACES is on. While off, the SDK is not imported.

The destination is set with OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME …). Traces
contain names, durations and numbers, but no texts of rows and no error messages.
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
_SEND_SECONDS: Final = 3.0  # the exporter itself retries an unreachable collector for 10


def require_tracing(settings: Settings) -> None:
    """Check that traces can be sent if they are on.

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
    """Return the tracer provider of this process; None if traces are off.

    Args:
        settings: `traces` enables them.
        part: part of the service, in its default name: `onboard-worker`, `onboard-api`. OTEL_SERVICE_NAME overrides it.

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
    """Return a processor that sends finished spans in batches by OTLP over HTTP, in a thread that blocks nothing."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())


def send_spans(provider: TracerProvider | None) -> None:
    """Send finished spans now, because the process may be killed. Does not wait long for an unreachable collector."""
    if provider is not None:
        sending = threading.Thread(target=provider.force_flush, name="traces", daemon=True)
        sending.start()
        sending.join(_SEND_SECONDS)
