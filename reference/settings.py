"""docs/reference/settings.md: all settings, generated from their class.

After a change: python -m reference.settings
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from onboard.settings import Settings
from reference.cells import cell

PAGE: Final = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"
_HEAD: Final = """\
# Settings

All settings are environment variables. This page is generated from the code.

Onboard also reads them from files in the folder `ONBOARD_SECRETS_DIR` (default `/run/secrets`), named like the
variable in lower case, such as `onboard_database_url`, and from a `.env` file in the current folder. The environment
wins, then secrets, then `.env`. See [secrets](../how-to/deploy.md#secrets).

`ONBOARD_API_URL` and `ONBOARD_TOKEN` must come from the same place. If one is in `.env` and the other is not, every
command exits with 6, so that a `.env` file cannot send your token to another service.

If neither a database nor a broker URL is set, Onboard runs in **embedded mode**: everything is in the home folder,
the schema migrates itself, and `submit` starts a worker. Otherwise nothing is started or migrated automatically.

Credentials of an object store are those of its [fsspec](https://filesystem-spec.readthedocs.io) package. For S3, use
the usual `AWS_…` variables or a role, and install the extra: `pip install 'onboard[s3]'`.

| variable | default | meaning |
|---|---|---|
"""


def page() -> str:
    """Return the page, with a row per variable."""
    rows = [
        f"| `ONBOARD_{name.upper()}` | {_default(name, field.default)} | {cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    return _HEAD + "\n".join([*rows, ""])


def _default(name: str, value: object) -> str:
    if name == "home":
        return "`~/.onboard`"
    if isinstance(value, SecretStr) or value in ("", None) or value is PydanticUndefined:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
