"""What every door shows of a base."""

from __future__ import annotations

from typing import Any

from onboard.bases import Base


def base_document(base: Base) -> dict[str, Any]:
    """Name, digests, size and what base.json says, but for the recipe."""
    facts = {key: value for key, value in base.document.items() if key not in ("recipe", "anchors")}
    size = sum(path.stat().st_size for path in base.folder.rglob("*") if path.is_file())
    return {
        "base": base.name, "digest": base.digest, "backbone_digest": base.backbone_digest, "folder": str(base.folder),
        "size_bytes": size, "anchors": [anchor.name for anchor in base.anchors], **facts,
    }  # fmt: skip
