"""Trace requests with FastAPI's OpenTelemetry support, if ONBOARD_TRACES is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from onboard.operations.tracing import make_provider

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

    from onboard.settings import Settings

# Requested every few seconds by monitoring; and the address of the sign-in page contains a code.
_SILENT: Final = ("/healthz", "/readyz", "/metrics", "/login")


def telemetry(settings: Settings) -> TelemetryConfig:
    """Return the configuration for FastAPI. A request with a `traceparent` continues its trace.

    Raises:
        NotFoundError: the extra `otel` is not installed.
    """
    provider = make_provider(settings, "api")
    return {
        "tracing": provider is not None,
        "tracer_provider": provider,
        "metrics": False,  # Prometheus has them
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,
        "exclude": _is_silent,
    }


def _is_silent(scope: Scope) -> bool:
    return scope.get("path") in _SILENT
