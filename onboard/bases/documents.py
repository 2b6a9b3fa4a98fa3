"""Documents of a base: base.json for programs, card.md and LICENSE.md for people, and NOTICE.

Regenerate NOTICE of the repository from the shipped bases with: python -c "from onboard.bases.documents import notice;
print(notice(), end='')" > NOTICE
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onboard.bases import Base, shipped_bases

_STATIC = Path(__file__).parents[1] / "api" / "pages" / "static"  # only read, no package is imported
_TOLD = ("title", "publisher", "licence")  # facts about a source in base.json, if its recipe states them


def write_documents(
    folder: Path, document: Mapping[str, Any], made: str, table: Sequence[str], notes: Sequence[str] = ()
) -> None:
    """Write the three files, base.json last, because only then the folder is a base.

    Args:
        made: how the base was made, up to the words "with … adapters".
        table: of the sources, lines of Markdown.
        notes: paragraphs above the table.

    Raises:
        OSError: a file cannot be written.
    """
    licence = document["licence"].strip()
    paragraphs = [f"# Base `{document['name']}`", licence, f"{made} {_adapters(document)}", *notes, "\n".join(table)]
    _write(folder / "card.md", "\n\n".join(paragraphs))
    origins = ["\n".join(table) for table in [origins_table(document["sources"])] if table]
    _write(folder / "LICENSE.md", "\n\n".join([f"# Licence of the base `{document['name']}`", licence, *origins]))
    write_json(folder / "base.json", document)


def base_document(base: Base) -> dict[str, Any]:
    """Return name, digests, size and the contents of base.json without the recipe."""
    facts = {key: value for key, value in base.document.items() if key not in ("recipe", "anchors")}
    size = sum(path.stat().st_size for path in base.folder.rglob("*") if path.is_file())
    return {
        "base": base.name, "digest": base.digest, "backbone_digest": base.backbone_digest, "folder": str(base.folder),
        "size_bytes": size, "anchors": [anchor.name for anchor in base.anchors], **facts,
    }  # fmt: skip


def origins_table(sources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return publishers and licenses of the rows that a base was trained on, as a Markdown table.

    Args:
        sources: as in base.json; those without facts are left out. Without any facts, there is no table.
    """
    rows = [[name, *(facts.get(fact, "") for fact in _TOLD)] for name, facts in sources.items()]
    lines = [f"| {' | '.join(_cell(text) for text in row)} |" for row in rows if any(row[1:])]
    heads = ["| source | what it asks | publisher | licence of the rows, as stated there |", "|---|---|---|---|"]
    return heads + lines if lines else []


def notice() -> str:
    """Return the file NOTICE: the origins of the weights in the package, as their bases state them."""
    paragraphs = [
        "Onboard\nCopyright the maintainers of Onboard",
        "This product is given under the Apache License 2.0, see LICENSE. What it needs at run time is not part of it, "
        "and has licences of its own.",
    ]
    for base in shipped_bases():
        place = f"onboard/bases/{base.folder.name}"
        paragraphs.append(
            f"It holds weights: the base `{base.name}` in {place} (`onboard base show {base.name}`, and LICENSE.md "
            f"there).\n{base.document['licence'].strip()}"
        )
        names = ", ".join(source.name for source in base.sources)
        table = origins_table(base.document["sources"])
        paragraphs.append("\n".join([f"The sources of `{base.name}`: {names}.", *table]))
    paragraphs.append(_vendored())
    return "\n\n".join(paragraphs) + "\n"


def _vendored() -> str:
    """Return the vendored files of the pages, as listed next to them."""
    listed = json.loads((_STATIC / "vendored.json").read_text(encoding="utf-8"))
    names = sorted({f"{entry['name']} {entry['version']} ({entry['licence']})" for entry in listed})
    notices = [(_STATIC / entry["file"]).read_text(encoding="utf-8") for entry in listed if "NOTICE" in entry["file"]]
    texts = [" ".join(notice.split()) for notice in notices]
    return "\n".join(
        [f"It holds programs of others for its pages, in onboard/api/pages/static: {', '.join(names)}.", *texts]
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write readable JSON."""
    _write(path, json.dumps(document, indent=2, ensure_ascii=False))


def _adapters(document: Mapping[str, Any]) -> str:
    return (
        f"of bottleneck d_model/{document['reduction_factor']}, generated from task embeddings of "
        f"{document['task_embedding_size']} numbers. Texts are cut at {document['max_tokens']} tokens."
        f"{' Weights are stored in int8 with a scale per row.' if document.get('weights') == 'int8' else ''}"
    )


def _write(path: Path, text: str) -> None:
    path.write_text(f"{text}\n", encoding="utf-8")
