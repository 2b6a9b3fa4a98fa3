"""The description of the door as one page of HTML without scripts, so that it works behind any policy and offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ info.title }} {{ info.version }}</title>
<h1>{{ info.title }} {{ info.version }}</h1>
<p>{{ info.description }} For generators of clients: <a href="/openapi.json">/openapi.json</a>.</p>
{% for operation in operations %}
<h2><code>{{ operation.method }} {{ operation.path }}</code></h2>
<p>{{ operation.description }}</p>
{% if operation.parameters %}
<dl>
{% for each in operation.parameters %}
<dt><code>{{ each.name }}</code> ({{ each.in }})</dt><dd>{{ each.description }}</dd>
{% endfor %}
</dl>
{% endif %}
{% if operation.body %}<p>Body:</p><pre>{{ operation.body }}</pre>{% endif %}
{% endfor %}
<h1>Schemas</h1>
{% for name, schema in schemas %}<h2 id="{{ name }}">{{ name }}</h2><pre>{{ schema }}</pre>
{% endfor %}
</html>
"""


def render_description(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True).from_string(_PAGE)
    schemas = [(name, _shown(schema)) for name, schema in sorted(document["components"]["schemas"].items())]
    return template.render(info=document["info"], operations=list(_operations(document)), schemas=schemas)


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody")
            yield {
                "method": method.upper(),
                "path": path,
                "description": operation.get("description", ""),
                "parameters": operation.get("parameters", []),
                "body": _shown(body["content"]) if body else "",
            }


def _shown(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
