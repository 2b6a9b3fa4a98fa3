"""A recipe: every number that makes a base, read from TOML and checked before hours are spent."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from onboard.errors import InputError


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BackboneShape(_Section):
    """Shape of the T5 backbone."""

    vocabulary_size: int = Field(ge=400)
    d_model: int = Field(ge=8)
    d_ff: int = Field(ge=8)
    d_kv: int = Field(ge=4)
    heads: int = Field(ge=1)
    encoder_layers: int = Field(ge=1)
    decoder_layers: int = Field(ge=1)
    max_tokens: int = Field(ge=8)


class SentenceCounts(_Section):
    """How much text is taken from the corpus, beside every text of the sources."""

    from_corpus: int = Field(ge=0)
    paragraphs: int = Field(ge=0)


class Schedule(_Section):
    """A training stage: AdamW, linear warm-up, linear decay to zero."""

    steps: int = Field(ge=1)
    batch: int = Field(ge=1)
    learning_rate: float = Field(gt=0)
    warmup_steps: int = Field(ge=0)

    def factor(self, step: int) -> float:
        """Share of the learning rate at `step` (counted from 0)."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        return max(0.0, (self.steps - step) / max(1, self.steps - self.warmup_steps))


class HypernetworkSchedule(Schedule):
    """The hypernetwork's stage and its shape."""

    reduction_factor: int = Field(ge=1)
    task_embedding_size: int = Field(ge=1)
    projector_width: int = Field(ge=1)


class CurriculumCounts(_Section):
    """How many tasks are made from the sources and the corpus."""

    renamings: int = Field(ge=0)
    topic_levels: tuple[int, ...]
    topic_subsets: int = Field(ge=0)
    share_of_sources: float = Field(gt=0)
    share_of_topics: float = Field(ge=0)
    share_of_renamed: float = Field(ge=0)
    share_of_subsets: float = Field(ge=0)


class Recipe(_Section):
    """The whole recipe of a base."""

    name: str
    seed: int
    licence: str
    backbone: BackboneShape
    sentences: SentenceCounts
    distill: Schedule
    read: Schedule
    curriculum: CurriculumCounts
    multitask: Schedule
    hypernetwork: HypernetworkSchedule


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        InputError: the file is missing, no TOML, or a field is missing, unknown or out of range.
    """
    try:
        return Recipe.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"recipe {path} cannot be read: {error.strerror}", "name a recipe of recipes/") from error
    except UnicodeDecodeError as error:
        raise InputError(f"recipe {path} is not UTF-8 (byte {error.start})", f"save {path} as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"recipe {path} is no TOML: {error}", f"mend {path}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"recipe {path}, field {field}: {first['msg']}", f"mend {field} in {path}", field=field
        ) from error
