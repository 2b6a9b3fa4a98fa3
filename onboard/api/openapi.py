"""The description of the door for people (/docs) and for generators of clients (/openapi.json)."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from onboard.api.problems import MEDIA_TYPE

_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Problem",
    "description": "What is wrong and what mends it (RFC 9457). Further members (row, field, limit …) may follow.",
    "required": ["type", "title", "status", "detail", "code", "remedy"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable name of the kind of problem."},
        "remedy": {"type": "string"},
        "command": {"type": "string", "description": "The remedy as a command of `onboard`, where there is one."},
        "field": {"type": ["string", "null"]},
        "row": {"type": ["integer", "null"]},
        "problems": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
    },
    "additionalProperties": True,
}


def install(app: FastAPI) -> None:
    """Let the application describe itself so that every error is a problem."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # the way that FastAPI documents


def _described(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    components["responses"] = {"Problem": {"description": "It did not work.", "content": content}}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
    return document
