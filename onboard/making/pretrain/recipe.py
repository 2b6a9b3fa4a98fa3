"""Recipes of bases with a curriculum: those with a new backbone, those with another base's backbone and a new
hypernetwork, and those that train a base further by episodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from onboard.making.curriculum.counts import KINDS, CurriculumCounts
from onboard.making.multitask.episode_recipe import EpisodesStage
from onboard.making.multitask.recipe import (
    HypernetworkStage,
    Recipe,
    Schedule,
    Section,
    SourceEntry,
    held_out_named,
    validated,
)


class BackboneShape(Section):
    """Shape of the T5 backbone. Width, heads and depth of the encoder are the teacher's."""

    vocabulary_size: int = Field(ge=64, description="WordPiece pieces, of the teacher's.")
    d_ff: int = Field(ge=8, description="Hidden units of the feed-forward, the teacher's strongest.")
    decoder_layers: int = Field(ge=1, description="Layers of the decoder.")
    max_tokens: int = Field(ge=8, description="Tokens of a source text, longer ones are cut.")


class TextCounts(Section):
    """Amounts of text for derived tasks. The teacher reads all of it."""

    from_sources: int | None = Field(
        default=None, ge=1, description="Texts of the sources' training rows, drawn by the seed; all if left out."
    )
    from_corpus: int = Field(default=0, ge=0, description="Sentences of the corpus.")
    paragraphs: int = Field(default=0, ge=0, description="Longer passages of it.")


class SentenceCounts(TextCounts):
    """Amounts of text for derived tasks, and for distillation."""

    from_corpus: int = Field(ge=0, description="Sentences of which the made tasks are made.")
    paragraphs: int = Field(ge=0, description="Longer passages, for the same.")
    more_from_corpus: int = Field(ge=0, description="Further sentences, for distillation alone.")
    more_paragraphs: int = Field(ge=0, description="Further passages, for distillation alone.")


class Inheritance(Section):
    """Least-squares conversion of the teacher's matrices."""

    texts: int = Field(ge=1, description="Texts that the matrices are fitted on.")
    most_tokens: int = Field(ge=2, description="Tokens of each.")


class DistillStage(Schedule):
    """Distillation. The learning rate is relative: each matrix uses this value times its root mean square."""

    batch: int = Field(ge=1, description="Padded tokens a step.")


class KeepsTeacher(Section):
    """Keeps a backbone close to its teacher while it learns tasks."""

    teacher_share: float = Field(
        default=0.0,
        ge=0,
        description="Weight of the distance to the teacher's vectors of texts, relative to 1 for the tasks.",
    )
    teacher_tokens: int = Field(default=800, ge=1, description="Padded tokens of those texts, a step.")


class BackboneStage(Schedule, KeepsTeacher):
    """The bare backbone on tasks that their label words define. The learning rate is relative, as in `DistillStage`."""

    dropout: float = Field(ge=0, lt=1, description="As T5 has it.")
    label_smoothing: float = Field(ge=0, lt=1, description="Share of the target spread evenly over the labels.")
    shares: dict[str, Annotated[float, Field(gt=0)]] = Field(min_length=1, description="Of the steps, by kind of task.")
    decoder_rate: float = Field(
        gt=0, description="Multiple of the learning rate for the decoder, which starts from scratch."
    )
    temperature: float = Field(
        default=10.0, gt=0, description="T: a task is drawn in proportion to (its rows)^(1/T), within its kind."
    )

    @field_validator("shares")
    @classmethod
    def _of_kinds(cls, shares: dict[str, float]) -> dict[str, float]:
        unknown = sorted(shares.keys() - KINDS)
        if unknown:
            raise ValueError(f"there is no kind {unknown[0]!r} of tasks; use some of {', '.join(KINDS)}")
        return shares


class JointStage(HypernetworkStage, KeepsTeacher):
    """Hypernetwork and embeddings, together with the backbone, which adapts to adapters; then all is frozen."""

    backbone_rate: float = Field(
        default=0.0, ge=0, description="Relative learning rate of the backbone; 0 trains its norms at most."
    )
    dropout: float = Field(default=0.0, ge=0, lt=1, description="As T5 has it.")


class CurriculumRecipe(Section):
    """Fields common to all recipes with a curriculum."""

    name: str
    seed: int
    licence: str = Field(min_length=1)
    sources: dict[str, SourceEntry] = Field(default={}, description="Source tasks by name; or --sources DIR.")
    held_out: tuple[str, ...] = Field(default=(), description="Names of tasks that no base may be trained on.")
    curriculum: CurriculumCounts

    @model_validator(mode="after")
    def _holds_out(self) -> Self:
        held_out_named(self.sources, self.held_out)
        return self


class OwnRecipe(CurriculumRecipe):
    """The whole recipe of a base with a new backbone."""

    backbone: BackboneShape
    sentences: SentenceCounts
    inherit: Inheritance
    distill: DistillStage
    multitask: BackboneStage
    hypernetwork: JointStage


class Growth(Section):
    """A larger T5 that starts as the base's backbone; sizes that are left out stay the same."""

    d_model: int | None = Field(default=None, ge=1, description="Width.")
    d_ff: int | None = Field(default=None, ge=1, description="Hidden units of the feed-forward.")
    num_heads: int | None = Field(default=None, ge=1, description="Heads, each as wide as before.")
    num_layers: int | None = Field(default=None, ge=1, description="Layers of the encoder.")
    num_decoder_layers: int | None = Field(default=None, ge=1, description="Layers of the decoder.")


class BackboneOfBase(Section):
    """The backbone, norms and tokenizer of an existing base."""

    of: str = Field(min_length=1, description="Name or folder of the base.")
    grow: Growth | None = Field(default=None, description="Sizes of a larger one, which learns on from it.")


class RenewedStage(JointStage):
    """Hypernetwork and embeddings on the backbone of a base, which is trained too if it has a rate."""

    train_norms: Literal[False] = Field(default=False, description="Never apart from the rest of the backbone.")


class RenewedRecipe(CurriculumRecipe):
    """The recipe of a base with another base's backbone and a new hypernetwork trained on a curriculum.

    With [multitask], the backbone is trained further first, and then jointly at `hypernetwork.backbone_rate`. Without
    it, the backbone is unchanged byte for byte.
    """

    backbone: BackboneOfBase
    sentences: TextCounts = TextCounts()
    multitask: BackboneStage | None = Field(default=None, validate_default=True)
    hypernetwork: RenewedStage

    @field_validator("multitask")
    @classmethod
    def _teaches_what_grew(cls, stage: BackboneStage | None, info: ValidationInfo) -> BackboneStage | None:
        backbone = info.data.get("backbone")
        if stage is None and backbone is not None and backbone.grow is not None:
            raise ValueError("a backbone that grows has to learn on: say in [multitask] how, or leave grow out")
        return stage

    @field_validator("hypernetwork")
    @classmethod
    def _learns_on(cls, stage: RenewedStage, info: ValidationInfo) -> RenewedStage:
        if stage.backbone_rate and info.data.get("multitask") is None:
            raise ValueError(
                "backbone_rate trains the backbone, which stays as it is without [multitask]; "
                "leave the rate out, or say in [multitask] how the backbone learns on"
            )
        return stage


class BackboneThatLearnsOn(Section):
    """A base that is trained further with its backbone, hypernetwork and embeddings."""

    of: str = Field(min_length=1, description="Name or folder of the base.")


class EpisodicRecipe(Section):
    """The recipe for training another base further by episodes, including its hypernetwork and embeddings."""

    name: str
    seed: int
    licence: str = Field(min_length=1)
    sources: dict[str, SourceEntry] = Field(default={}, description="Source tasks by name; or --sources DIR.")
    held_out: tuple[str, ...] = Field(default=(), description="Names of tasks that no base may be trained on.")
    backbone: BackboneThatLearnsOn
    episodes: EpisodesStage

    @model_validator(mode="after")
    def _holds_out(self) -> Self:
        held_out_named(self.sources, self.held_out)
        return self


AnyRecipe = Recipe | OwnRecipe | RenewedRecipe | EpisodicRecipe


def recipe_of(document: dict[str, Any], path: Path | str) -> AnyRecipe:
    """Return the recipe of a document, by its [backbone] section.

    With `from`, it is a recipe on an existing T5; with `of`, one on a base (by episodes if there is a section
    [episodes]); otherwise one with a new backbone.

    Args:
        document: parsed TOML.
        path: the origin, for errors.

    Raises:
        InputError: a field is missing, unknown or out of range.
    """
    backbone = document.get("backbone")
    section: dict[str, Any] = backbone if isinstance(backbone, dict) else {}
    if "from" in section:
        return validated(Recipe, document, path)
    if "of" in section and "episodes" in document:
        return validated(EpisodicRecipe, document, path)
    if "of" in section:
        return validated(RenewedRecipe, document, path)
    return validated(OwnRecipe, document, path)
