"""The implementation of `onboard base train`: recipe, processes, signals, and the two ways of making a base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cli.output import say
from onboard.bases import Base, find_base, home_bases
from onboard.bases.load import resolve_device
from onboard.data.task_name import proposal
from onboard.domain.private import private_folder
from onboard.errors import InputError
from onboard.making.multitask import make
from onboard.making.multitask.checkpoint import require_checkpoint
from onboard.making.multitask.loop import Running
from onboard.making.multitask.processes import joined
from onboard.making.multitask.recipe import read_recipe
from onboard.making.multitask.signals import Signals
from onboard.making.multitask.sources import folder_entries
from onboard.making.pretrain.recipe import AnyRecipe, EpisodicRecipe, OwnRecipe, RenewedRecipe, recipe_of
from onboard.settings import Settings


@dataclass(frozen=True)
class Order:
    """The options of `onboard base train`."""

    recipe: Path | None
    backbone: str | None
    sources: Path | None
    method: str | None
    name: str | None
    licence: str | None
    corpus: Sequence[Path]
    work: Path | None
    output: Path | None
    resume: bool
    device: str | None
    threads: int


def train_base(order: Order) -> Base | None:
    """Train and write the base; None in every process but the first.

    Raises:
        OnboardError: with a remedy.
        StoppedError: SIGTERM or SIGINT; the progress is saved.
    """
    settings, recipe = Settings(), read_order(order)
    work = order.work or private_folder(settings.resolved_home / "training") / recipe.name
    output = order.output or home_bases() / recipe.name
    if order.resume:
        require_checkpoint(work)
    if order.threads:
        torch.set_num_threads(order.threads)
    device = resolve_device(order.device or settings.device)
    with Signals().handled() as signals, joined(device) as processes:
        running = Running(work, say, processes, signals)
        if isinstance(recipe, OwnRecipe):
            from onboard.making.pretrain import ingredients, run

            run.make_base(ingredients.Ingredients(recipe, order.corpus, running), output)
        elif isinstance(recipe, RenewedRecipe):
            from onboard.making.pretrain import ingredients, renew

            renew.renew_base(ingredients.Ingredients(recipe, order.corpus, running), output)
        elif isinstance(recipe, EpisodicRecipe):
            from onboard.making.pretrain import episodic

            episodic.learn_by_episodes(recipe, running, output)
        else:
            make.make_base(recipe, running, output)
        first = processes.first
    return find_base(str(output)) if first else None


def read_order(order: Order) -> AnyRecipe:
    """Return the recipe with the values of the options; without a recipe, the defaults for `--backbone`.

    Raises:
        InputError: neither recipe nor backbone, or a field is invalid.
    """
    if order.recipe is None and order.backbone is None:
        raise InputError("base-train-without-source")
    document: dict[str, Any] = {} if order.recipe is None else read_recipe(order.recipe)
    if order.backbone is not None:
        document["backbone"] = {**_given(document.get("backbone")), "from": order.backbone}
        document.setdefault("name", proposal(Path(order.backbone).name))
    if order.sources is not None:
        by_name = document.get("sources", {})
        entries = folder_entries(order.sources)
        document["sources"] = {
            name: {
                **entry.model_dump(by_alias=True, exclude_unset=True),
                **_kept(by_name.get(name)),
                "from": entry.source,
            }
            for name, entry in entries.items()
        }
    if order.method is not None:
        document["hypernetwork"] = {**document.get("hypernetwork", {}), "method": order.method}
    document |= {key: value for key, value in (("name", order.name), ("licence", order.licence)) if value is not None}
    return recipe_of(document, order.recipe or "of the options")


def _given(backbone: Any) -> dict[str, Any]:
    """Return the part of [backbone] that stays when --backbone names another one."""
    return {"max_tokens": backbone["max_tokens"]} if isinstance(backbone, dict) and "max_tokens" in backbone else {}


def _kept(entry: Any) -> dict[str, Any]:
    """Return the part of [sources.NAME] that stays when --sources provides its rows: all but their origin and split."""
    dropped = ("from", "splits", "held_out_rows")
    return {key: value for key, value in entry.items() if key not in dropped} if isinstance(entry, dict) else {}
