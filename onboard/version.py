"""What code this is: the version and a digest of the package's own source."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from onboard import __version__


@cache
def code_version() -> str:
    """`0.1.0+1a2b3c4d5e6f`: the version and twelve hex digits of sha256 over the package's Python files."""
    root = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{total.hexdigest()[:12]}"
