"""The path prefix of the service behind a reverse proxy, ONBOARD_ROOT_PATH."""

from __future__ import annotations

import re
from typing import Final

from onboard.errors import InputError

_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def read_root_path(given: str) -> str:
    """Return the path without a trailing slash; "" for none. Raises InputError: it is not a plain path."""
    root = given.strip().rstrip("/")
    if root and not (_PATH.fullmatch(root) and {".", ".."}.isdisjoint(root.split("/"))):
        raise InputError("root-path-invalid", given=given)
    return root
