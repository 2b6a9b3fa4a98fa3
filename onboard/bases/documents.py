"""What a base says of itself: base.json for programs, card.md and LICENSE.md for people, and at every door."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onboard.bases import Base


def write_documents(
    folder: Path, document: Mapping[str, Any], made: str, table: Sequence[str], notes: Sequence[str] = ()
) -> None:
    """Write the three files; base.json, without which a folder is no base, comes last.

    Args:
        folder: of the base.
        document: base.json.
        made: how the base came about, up to the words "with … adapters".
        table: of the sources, lines of Markdown.
        notes: paragraphs above the table.

    Raises:
        OSError: a file cannot be written.
    """
    licence = document["licence"].strip()
    paragraphs = [f"# Base `{document['name']}`", licence, f"{made} {_adapters(document)}", *notes, "\n".join(table)]
    _write(folder / "card.md", "\n\n".join(paragraphs))
    _write(folder / "LICENSE.md", f"# Licence of the base `{document['name']}`\n\n{licence}")
    write_json(folder / "base.json", document)


def base_document(base: Base) -> dict[str, Any]:
    """Name, digests, size and what base.json says, but for the recipe."""
    facts = {key: value for key, value in base.document.items() if key not in ("recipe", "anchors")}
    size = sum(path.stat().st_size for path in base.folder.rglob("*") if path.is_file())
    return {
        "base": base.name, "digest": base.digest, "backbone_digest": base.backbone_digest, "folder": str(base.folder),
        "size_bytes": size, "anchors": [anchor.name for anchor in base.anchors], **facts,
    }  # fmt: skip


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """JSON as people can read it."""
    _write(path, json.dumps(document, indent=2, ensure_ascii=False))


def _adapters(document: Mapping[str, Any]) -> str:
    return (
        f"of bottleneck d_model/{document['reduction_factor']}, generated from task embeddings of "
        f"{document['task_embedding_size']} numbers. Texts are cut at {document['max_tokens']} tokens."
        f"{' Weights are stored in int8 with a scale per row.' if document.get('weights') == 'int8' else ''}"
    )


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8")
