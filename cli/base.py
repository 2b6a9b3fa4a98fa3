"""`onboard base`: the frozen models that tasks are learned on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit, say

if TYPE_CHECKING:
    from rich.table import Table

    from onboard.bases import Base

app = typer.Typer(help="The frozen models that tasks are learned on.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_bases(as_json: AsJson = False) -> None:
    """Bases that can be used by name."""
    from onboard.bases import shipped_bases

    bases = shipped_bases()
    emit({"bases": [_document(base) for base in bases]}, as_json, lambda: _table(bases))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name or folder of a base.")] = "mini", as_json: AsJson = False
) -> None:
    """A base's card: backbone, sources with their metrics, licence, digest."""
    from onboard.bases import find_base

    base = find_base(name)
    emit(_document(base), as_json, lambda: _card(base))


@app.command()
def train(
    recipe: Annotated[Path, typer.Option(help="Recipe in TOML, see recipes/.")],
    sources: Annotated[
        Path, typer.Option(help="Folder with one folder per source task: train, validation, test .jsonl.gz.")
    ],
    corpus: Annotated[
        list[Path], typer.Option(help="Plain text, one paragraph a line, .xz or not; may be given again.")
    ],
    work: Annotated[Path, typer.Option(help="Checkpoints; the same folder again resumes.")],
    output: Annotated[Path, typer.Option(help="Folder of the new base.")],
    threads: Annotated[int, typer.Option(help="CPU threads; 0 leaves it to torch.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a base by a recipe: hours of work, resumed from the last checkpoint when given again."""
    import torch

    from onboard.bases import find_base
    from onboard.pretrain.recipe import load_recipe
    from onboard.pretrain.run import Ingredients, make_base

    if threads:
        torch.set_num_threads(threads)
    make_base(Ingredients(load_recipe(recipe), sources, corpus, work, say), output)
    base = find_base(str(output))
    emit(_document(base), as_json, lambda: _card(base))


def _document(base: Base) -> dict[str, Any]:
    facts = {key: value for key, value in base.document.items() if key not in ("recipe", "anchors")}
    size = sum(path.stat().st_size for path in base.folder.rglob("*") if path.is_file())
    return {
        "base": base.name, "digest": base.digest, "backbone_digest": base.backbone_digest, "folder": str(base.folder),
        "size_bytes": size, "anchors": [anchor.name for anchor in base.anchors], **facts,
    }  # fmt: skip


def _table(bases: list[Base]) -> Table:
    from rich.table import Table

    table = Table("base", "sources", "digest", "licence")
    for base in bases:
        table.add_row(
            base.name,
            " ".join(source.name for source in base.sources),
            base.digest[:19],
            base.document["licence"].strip().splitlines()[0],
        )
    return table


def _card(base: Base) -> Any:
    from rich.console import Group
    from rich.markdown import Markdown

    return Group(
        Markdown((base.folder / "card.md").read_text(encoding="utf-8")),
        f"digest  {base.digest}",
        f"folder  {base.folder}",
    )
