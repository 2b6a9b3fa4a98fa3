"""Every route of the HTTP API, from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from onboard.api.access import routes_of, scope_of
from onboard.api.app import create_app
from onboard.settings import Settings
from reference.cells import cell


def page() -> str:
    """The page: one section per route, with its scope."""
    app = create_app(Settings(home=Path(gettempdir()) / "onboard"))  # nothing is opened before it is served
    scopes = {
        (route.path_format, method): scope_of(route) for route in routes_of(app) for method in route.methods or ()
    }
    head = [
        "# HTTP routes",
        "",
        "Generated from the OpenAPI document, which a service returns at `/openapi.json`. How to use it: "
        "[HTTP API](http-api.md). Errors are problem documents with a `code`: [errors](errors.md).",
        "",
    ]
    parts = [
        part
        for path, operations in app.openapi()["paths"].items()
        for method, operation in operations.items()
        for part in _operation(method, path, operation, scopes.get((path, method.upper())))
    ]
    return "\n".join([*head, *parts])


def _operation(method: str, path: str, operation: Mapping[str, Any], scope: Any) -> Iterator[str]:
    yield f"## {method.upper()} {path}\n"
    yield f"{cell(operation.get('description') or operation.get('summary', ''))}\n"
    yield f"Scope: {scope.value if scope else 'none'}\n"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "| parameter | in | meaning |\n|---|---|---|"
        yield "\n".join(_parameter(parameter) for parameter in parameters) + "\n"
    body = operation.get("requestBody", {}).get("content", {})
    if body:
        yield f"Body: {', '.join(f'`{kind}` ({_schema(content)})' for kind, content in body.items())}\n"
    yield "| status | answer |\n|---|---|"
    yield "\n".join(_answer(status, answer) for status, answer in operation["responses"].items()) + "\n"


def _parameter(parameter: Mapping[str, Any]) -> str:
    need = "" if parameter.get("required") else " (optional)"
    return f"| `{parameter['name']}` | {parameter['in']}{need} | {cell(parameter.get('description', ''))} |"


def _answer(status: str, answer: Mapping[str, Any]) -> str:
    if "$ref" in answer:
        return f"| {status} | a problem document |"
    kinds = ", ".join(f"`{kind}` ({_schema(content)})" for kind, content in answer.get("content", {}).items())
    said = answer.get("description", "").replace("Successful Response", "")  # FastAPI's word for nothing
    return f"| {status} | {': '.join(filter(None, [cell(said), kinds]))} |"


def _schema(content: Mapping[str, Any]) -> str:
    schema = content.get("schema", {})
    return str(schema.get("$ref", schema.get("title", schema.get("type", "any")))).rpartition("/")[2]
