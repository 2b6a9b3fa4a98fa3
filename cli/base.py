"""`onboard base`: the frozen models that tasks are learned on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit, say, table
from cli.services import local_only
from onboard.errors import NotFoundError

if TYPE_CHECKING:
    from onboard.bases import Base

_HEADS = ("base", "sources", "digest", "licence")
_MOST_NAMED = 8  # number of sources in a list of bases
app = typer.Typer(
    help="Manage bases, the frozen models that tasks are learned on.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_bases(as_json: AsJson = False) -> None:
    """List the bases that can be used by name."""
    bases = _bases(None)
    emit({"bases": bases}, as_json, lambda: table(_HEADS, map(_row, bases), folded=("sources", "licence")))


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name or folder of a base.")] = "mini", as_json: AsJson = False
) -> None:
    """Show a base's card: backbone, sources with their metrics, license, digest."""
    (base,) = _bases(name)
    emit(base, as_json, lambda: _card(base))


@app.command()
@local_only("base train")
def train(
    recipe: Annotated[Path | None, typer.Option(help="Recipe in TOML, see recipes/.")] = None,
    backbone: Annotated[str | None, typer.Option(help="Existing T5: id on the hub, or folder.")] = None,
    sources: Annotated[
        Path | None, typer.Option(help="Folder with one folder per source task: train, validation, test .jsonl.gz.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="hyperformer++ or hyperformer.")] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the base. Defaults to the recipe's name, or the backbone's.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="License of the new weights. Defaults to the recipe's, or the hub's.")
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="Plain text for training a new backbone, one paragraph per line, optionally .xz. Repeatable."
        ),
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of checkpoints, to resume from. Defaults to ONBOARD_HOME/training/NAME.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the new base. Defaults to ONBOARD_HOME/bases/NAME.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from a checkpoint; fail if there is none.")] = False,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Defaults to ONBOARD_DEVICE.")] = None,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads; 0 lets torch decide.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train a base. This takes hours; repeat the command to resume from the last checkpoint.

    With several GPUs: accelerate launch --multi_gpu --no_python onboard base train …
    """
    from cli.base_training import Order, train_base
    from onboard.making.multitask.processes import leave
    from onboard.making.multitask.signals import StoppedError

    order = Order(recipe, backbone, sources, method, name, licence, corpus or [], work, output, resume, device, threads)
    try:
        base = train_base(order)
    except StoppedError as stopped:
        say(f"stopped: {stopped.args[0] or 'nothing was trained since the last checkpoint'}")
        say("  → to continue, repeat the command")
        leave(stopped.exit_code)
    if base is not None:
        _tell(base, as_json)
    leave(0)


@app.command("import")
@local_only("base import")
def import_checkpoint(
    folder: Annotated[Path, typer.Argument(help="config.json, and model.safetensors or pytorch_model.bin.")],
    tokenizer: Annotated[str, typer.Option(help="Folder, or id on the hub (t5-base).")],
    labels: Annotated[
        Path,
        typer.Option(
            help='JSON with the answer words of each task: {"sst2": ["0", "1"], "stsb": {"low": 0, "high": 5}}'
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the base.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder of the base. Defaults to ONBOARD_HOME/bases/NAME.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a base from a HyperFormer or HyperFormer++ checkpoint of the authors' code (rabeehk/hyperformer)."""
    from onboard.bases import home_bases
    from onboard.making.exchange import import_base

    base = import_base(folder, tokenizer, labels, name, output or home_bases() / name)
    for note in base.document["imported"]["notes"]:
        say(f"note: {note}")
    _tell(base, as_json)


@app.command("export")
@local_only("base export")
def export_checkpoint(
    name: Annotated[str, typer.Argument(help="Name or folder of a base.")],
    output: Annotated[Path, typer.Option(help="A new folder.")],
    as_json: AsJson = False,
) -> None:
    """Export a base as a checkpoint for the authors' code; `onboard base import` can read it."""
    from onboard.bases import find_base
    from onboard.making.exchange import export_base

    base = find_base(name)
    files = [str(path) for path in export_base(base, output)]
    document = {"base": base.name, "digest": base.digest, "folder": str(output), "files": files}
    emit(document, as_json, lambda: "\n".join([f"base {base.name} in the authors' naming:", *files]))


@app.command()
@local_only("base lessons")
def lessons(
    name: Annotated[str, typer.Argument(help="Name or folder of a base.")],
    sources: Annotated[
        Path, typer.Option(help="Folder with one folder per source task: train, validation, test .jsonl.gz.")
    ],
    as_json: AsJson = False,
) -> None:
    """Write the lessons of a base's sources for its prior, lessons.safetensors. The base's digest does not change."""
    from onboard.bases import LESSONS, find_base
    from onboard.bases.lessons import pack_lessons
    from onboard.bases.load import load_engine
    from onboard.bases.placing import write_beside
    from onboard.making.multitask.lessons import lessons_of_sources
    from onboard.making.multitask.sources import folder_entries, read_sources

    base = find_base(name)
    shipped = {source.name for source in base.sources}
    entries = {task: entry for task, entry in folder_entries(sources).items() if task in shipped}
    engine = load_engine(base, "cpu")
    rows = [source.worded(engine.encoder) for source in read_sources(entries, 0)]
    taught = lessons_of_sources(engine, rows, say)
    file = write_beside(base, LESSONS, pack_lessons(taught, base.backbone_digest))
    document = {"base": base.name, "digest": base.digest, "lessons": base.lessons_digest, "tasks": sorted(taught)}
    emit(document, as_json, lambda: f"{len(taught)} of {len(shipped)} sources teach the prior of {base.name}: {file}")


def _tell(base: Base, as_json: bool) -> None:
    from onboard.bases.documents import base_document

    document = base_document(base)
    emit(document, as_json, lambda: _card(document))


def _bases(name: str | None) -> list[Document]:
    """The bases that can be used by name, or the one with this name or folder. Raises NotFoundError."""
    with connected() as service:
        return list[Document](service.bases(name))


def _row(base: Document) -> tuple[str, ...]:
    return base["base"], _sources(base["sources"]), base["digest"][:19], base["licence"].strip().splitlines()[0]


def _sources(names: Iterable[str]) -> str:
    """Join the names of sources, such as "sst2 mnli", or "127: annomi_client app_review_kind arct_warrant …"."""
    first = list(names)
    return " ".join(first) if len(first) <= _MOST_NAMED else f"{len(first)}: {' '.join(first[:3])} …"


def _card(base: Document) -> Any:
    from rich.console import Group
    from rich.markdown import Markdown

    from onboard.bases.documents import origins_table

    place = f"folder  {base['folder']}" if base["folder"] else "on the machine of the service"
    origins = "\n".join(origins_table(base["sources"]))
    return Group(Markdown(f"{_text_of_card(base)}\n{origins}"), f"digest  {base['digest']}", place)


def _text_of_card(base: Document) -> str:
    if base["folder"]:
        return (Path(base["folder"]) / "card.md").read_text(encoding="utf-8")
    with connected() as service:
        try:
            return service.base_card(base["digest"])
        except NotFoundError:  # it was never used on that service, which therefore does not send its files
            return f"# {base['base']}"
