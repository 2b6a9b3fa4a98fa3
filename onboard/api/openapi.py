"""The API description for people (/docs) and client generators (/openapi.json)."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from onboard.api.problems import MEDIA_TYPE

_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Problem",
    "description": "An error and its remedy (RFC 9457). There may be more members (row, field, limit …).",
    "required": ["type", "title", "status", "detail", "code", "remedy"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable name of the problem type."},
        "remedy": {"type": "string"},
        "message": {"type": "string", "description": "The detail in words of the command line, if it differs."},
        "command": {"type": "string", "description": "The remedy as an `onboard` command, if there is one."},
        "field": {"type": ["string", "null"]},
        "row": {"type": ["integer", "null"]},
        "problems": {"type": "array", "items": {"type": "object", "additionalProperties": True}},
    },
    "additionalProperties": True,
}


# Descriptions of the tags, in the order of the page.
_TAGS: Final = {
    "predictions": "Predict with any task.",
    "tasks": "List tasks with their labels and newest versions.",
    "labeling": "Machine learning backend for Label Studio, which learns while people label.",
    "versions": "Learned tasks: versions and comparisons.",
    "aliases": "Aliases of versions, such as `latest`, and their history.",
    "embeddings": "Download embeddings and readouts.",
    "jobs": "Check and submit datasets, and follow their jobs.",
    "operations": "List queues and workers, pause queues, drain workers.",
    "hypernetworks": "Versions of the shared hypernetwork of a base.",
    "priors": "Versions of the prior of a base, which earlier tasks teach.",
    "bases": "The frozen model that tasks are learned on.",
    "access": "Tokens, browser sessions and the audit log.",
    "health": "Health checks and metrics.",
}
# Example values for every service: the base ships with the task sst2. No example would change a task.
_OF_PARAMETERS: Final[dict[str, Any]] = {
    "task": "sst2", "ref": "latest", "alias": "latest", "version": 1, "a": "v1", "b": "v1",
}  # fmt: skip
_OF_BODIES: Final[dict[str, Any]] = {
    "predict": {
        "inputs": [{"task": "sst2", "text": "A moving film with a wonderful cast."}, {"task": "sst2", "text": "Dull."}],
        "probabilities": True,
    },
    "pause_queue": {"queue": "default"},
    "resume_queue": {"queue": "default"},
    "create_token": {"name": "shop", "scopes": ["read"], "expires": "30d"},
    "carry_tasks": {"dry_run": True, "limit": 1},
    "carry_one_task": {"dry_run": True},
}


def _exemplify(method: str, operation: dict[str, Any]) -> None:
    """Add example values to an operation that can be sent as they are."""
    body = _OF_BODIES.get(operation["operationId"])
    if method == "get" or body is not None:
        for parameter in operation.get("parameters", []):
            if parameter.get("required") and parameter["name"] in _OF_PARAMETERS:
                parameter["example"] = _OF_PARAMETERS[parameter["name"]]
    if body is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = body


def install(app: FastAPI) -> None:
    """Describe every error of the application as a problem."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # the way that FastAPI documents


def _described(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    if app.state.settings.root_path:
        document["servers"] = [{"url": app.state.settings.root_path}]
    document["tags"] = [{"name": name, "description": said} for name, said in _TAGS.items()]
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    components["responses"] = {"Problem": {"description": "The request failed.", "content": content}}
    for path in document["paths"].values():
        for method, operation in path.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"$ref": "#/components/responses/Problem"}
            _exemplify(method, operation)
    return document
