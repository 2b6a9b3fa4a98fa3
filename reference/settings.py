"""Every setting, from the class that reads them."""

from __future__ import annotations

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from onboard.settings import Settings
from reference.cells import cell


def page() -> str:
    """The page: a row a variable."""
    rows = [
        f"| `ONBOARD_{name.upper()}` | {_default(name, field.default)} | {cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(
        [
            "# Settings",
            "",
            "Made from the code. Where they are read from, and which wins: [operations](../operations.md#settings).",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _default(name: str, value: object) -> str:
    if name == "home":
        return "`~/.onboard`"
    if isinstance(value, SecretStr) or value in ("", None) or value is PydanticUndefined:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
