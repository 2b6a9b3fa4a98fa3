"""A recipe: all settings of a base, read from TOML and validated before training starts.

Sources of the defaults: "paper" is arXiv 2106.04489, "authors" its code (rabeehk/hyperformer at 56b0f99, the
configuration hyperformer++.json).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from onboard.domain.dataset import Kind
from onboard.domain.names import require_name
from onboard.domain.report import LOWER_IS_BETTER, METRICS
from onboard.errors import InputError
from onboard.model.methods import METHODS

if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(METHODS)]  # validated when the recipe is read
Splits = Literal["own", "hold-out", "halve"]
_FORBIDS: Final = re.compile(
    r"non-?\s?commercial|\bNC\b|-NC\b|research (?:use|purposes?) only|only for research|for research only|"
    r"no derivatives|-ND\b|all rights reserved",
    re.IGNORECASE,
)


def held_out_named(sources: Iterable[str], held_out: Collection[str]) -> None:
    """Raise ValueError with the first source that is held out and must not be trained on."""
    for name in sources:
        if name in held_out:
            raise ValueError(
                f"{name} is held out: no base may be trained on it; take it out of sources, or of --sources"
            )


class Section(BaseModel):
    """A table of a recipe: immutable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class GivenBackbone(Section):
    """An existing T5: t5, v1.1, flan, mt5 or byt5, with safetensors weights."""

    source: str = Field(alias="from", min_length=1, description="Id on the Hugging Face hub, or a folder.")
    revision: str | None = Field(
        default=None, description="Commit, tag or branch on the hub; the main branch if left out."
    )
    max_tokens: int = Field(
        default=128, ge=8, description="Tokens of a source text, longer ones are cut (authors: max_source_length 128)."
    )


class SourceEntry(Section):
    """A source task: the location of its rows, and how they are read."""

    source: str = Field(
        alias="from", min_length=1,
        description="hf://NAME[/CONFIG], or a folder with train, validation and test .jsonl.gz.",
    )  # fmt: skip
    text_fields: tuple[str, ...] = Field(
        default=(), description="Columns of the text or the two texts; empty: the usual names."
    )
    label_field: str | None = Field(default=None, description="Column of the label; empty: the usual names.")
    splits: Splits = Field(
        default="own",
        description="own: train, validation and test as they are. hold-out: `held_out_rows` training rows become the "
        "validation, and the validation becomes the test where no labeled test exists. halve: the first half of the "
        "validation stays, the second is the test. The last two are the authors' for GLUE, whose test has no labels.",
    )  # fmt: skip
    held_out_rows: int = Field(default=1000, ge=1, description="Rows, for splits = hold-out (authors: 1,000).")
    kind: Literal["auto", "classification", "regression"] = Field(default="auto", description="Kind of the task.")
    metric: str | None = Field(
        default=None, description="The metric that counts in choosing the checkpoint; the kind's own if left out."
    )
    rows: int | None = Field(default=None, ge=2, description="Most training rows, drawn by the seed; all if left out.")
    title: str = Field(default="", description="What the task asks, in a few words.")
    family: str = Field(
        default="",
        description="Kind of the task: `curriculum.most_of_a_family` bounds what a family gets of the steps.",
    )
    weight: float = Field(default=1.0, gt=0, description="Times as many steps as its rows alone would give it.")
    licence: str = Field(default="", description="Of the rows, as their publisher states it.")
    publisher: str = Field(default="", description="Who publishes the rows: owner/name of a repository, as a rule.")

    @field_validator("licence")
    @classmethod
    def _allows_training(cls, licence: str) -> str:
        if _FORBIDS.search(licence):
            raise ValueError(
                f"{licence!r} does not allow weights to be trained on the rows for everyone; "
                "leave the source out, or state the license under which you have them"
            )
        return licence

    @field_validator("metric")
    @classmethod
    def _known(cls, metric: str | None) -> str | None:
        allowed = sorted({name for kind in METRICS for name in selecting_metrics(kind)})
        if metric is not None and metric not in allowed:
            raise ValueError(
                f"there is no metric {metric!r} to choose a checkpoint by; use one of {', '.join(allowed)}"
            )
        return metric


def selecting_metrics(kind: Kind | str) -> tuple[str, ...]:
    """Return the metrics that a checkpoint can be chosen by. Larger is better, so their mean is meaningful."""
    return tuple(name for name in METRICS[kind] if name not in LOWER_IS_BETTER)


class Schedule(Section):
    """A training stage: AdamW with linear warm-up."""

    steps: int = Field(ge=1, description="Optimiser steps.")
    batch: int = Field(ge=1, description="Rows a step, of all processes together.")
    learning_rate: float = Field(gt=0, description="Of AdamW, at the end of the warm-up.")
    warmup_steps: int = Field(ge=0, description="Steps of the linear warm-up.")
    schedule: Literal["linear", "constant"] = Field(
        default="linear", description="After the warm-up: linear decay to zero (authors), or constant (paper)."
    )
    clip: float = Field(default=1.0, gt=0, description="Largest norm of the whole gradient (authors: 1.0).")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW (authors: none).")

    def factor(self, step: int) -> float:
        """Return the factor on the learning rate at `step` (counted from 0)."""
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        if self.schedule == "constant":
            return 1.0
        return max(0.0, (self.steps - step) / max(1, self.steps - self.warmup_steps))


class HypernetworkStage(Schedule):
    """Shape and training of hypernetwork, task embeddings and T5 norms, trained on all tasks (Eq. 2)."""

    method: MethodName = Field(
        default="hyperformer++",
        description="hyperformer++: one hypernetwork a stack (Eq. 8). hyperformer: one in every layer (Eqs. 5-7).",
    )  # fmt: skip
    reduction_factor: int = Field(
        default=32, ge=1, description="r, the bottleneck is d_model / r (authors: 16 or 32, the better on validation)."
    )
    task_embedding_size: int | None = Field(
        default=None,
        ge=1,
        description="t, numbers of z; 64 for hyperformer++ and 512 for hyperformer if left out (authors).",
    )
    projector_width: int = Field(default=128, ge=1, description="e, hidden units of the projector (authors: 128).")
    projector_start: Literal["authors", "scaled", "open"] = Field(
        default="authors",
        description="First weights of the projector. authors: N(0, 0.01). scaled: unit inputs give unit outputs; "
        "without it many tasks in few steps end with one conditioning for all. open: z reaches the adapters linearly, "
        "and new embeddings reach farther; for hyperformer++, with projector_width above the size of z.",
    )
    projector_rate: float = Field(
        default=1.0, gt=0, description="Multiple of the learning rate for the projector (authors: 1, one rate)."
    )
    steps: int = Field(
        default=65536, ge=1, description="Optimiser steps (authors: 65,536 of 4 x 32 rows; paper: 2^18)."
    )
    batch: int = Field(default=128, ge=1, description="Rows a step, of all processes together (authors: 4 GPUs x 32).")
    tasks_per_batch: int = Field(
        default=1, ge=1,
        description="Tasks a step; each brings batch / tasks_per_batch rows, all in one pass (paper, authors: 1).",
    )  # fmt: skip
    learning_rate: float = Field(
        default=3e-4, gt=0, description="Of AdamW, at the end of the warm-up (paper, authors)."
    )
    embedding_rate: float = Field(
        default=1.0, gt=0, description="Multiple of the learning rate for the task embeddings (authors: 1, one rate)."
    )
    embedding_start: Literal["random", "fingerprint"] = Field(
        default="random",
        description="Where z starts. random: N(0, 1) (authors). fingerprint: at what the task's rows look like to the "
        "bare backbone, so that tasks that are alike start alike.",
    )
    fingerprint_share: float = Field(
        default=0.0, ge=0, le=1,
        description="Share of a task's turns under the fingerprint of other rows of it, as a new task starts, instead "
        "of its own embedding; needs embedding_start = fingerprint.",
    )  # fmt: skip
    warmup_steps: int = Field(default=500, ge=0, description="Steps of the linear warm-up (authors).")
    label_smoothing: float = Field(
        default=0.1, ge=0, lt=1,
        description="Share of the target spread evenly over the task's labels (authors: 0.1, over the vocabulary).",
    )  # fmt: skip
    temperature: float = Field(
        default=10.0, gt=0, description="T: a task is drawn in proportion to (its rows)^(1/T) (paper, authors: 10)."
    )
    train_norms: bool = Field(default=True, description="Whether every T5 RMSNorm is trained with it (paper, authors).")
    validate_every: int = Field(default=1000, ge=1, description="Steps between two validations (authors: 1,000).")
    validation_rows: int = Field(default=1000, ge=1, description="Most validation rows a source, drawn by the seed.")
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto", description="auto: bf16 where a GPU computes in it, else fp32. Weights are always kept in fp32."
    )

    @field_validator("precision", mode="before")
    @classmethod
    def _never_half(cls, precision: Any) -> Any:
        if precision in ("fp16", "float16", "half"):
            raise ValueError(
                "T5 overflows in fp16 and the loss becomes NaN (transformers issue 5651): use bf16 or fp32"
            )
        return precision

    @field_validator("projector_start")
    @classmethod
    def _fits_the_projector(cls, start: str, info: ValidationInfo) -> str:
        method, width = info.data.get("method"), info.data.get("projector_width")  # missing if they are invalid
        if start != "open" or method is None or width is None:
            return start
        if method != "hyperformer++":
            raise ValueError('"open" is a start of hyperformer++')
        size = info.data.get("task_embedding_size") or METHODS[method].EMBEDDING_SIZE
        if width <= size:
            raise ValueError(f'"open" needs a projector_width above {size}, the size of the task embeddings')
        return start

    @field_validator("tasks_per_batch")
    @classmethod
    def _shares_the_batch(cls, tasks: int, info: ValidationInfo) -> int:
        batch = info.data.get("batch")  # missing if it is invalid itself
        if batch is not None and batch % tasks:
            raise ValueError(f"{batch} rows a step cannot be shared evenly by {tasks} tasks")
        return tasks

    @field_validator("fingerprint_share")
    @classmethod
    def _has_fingerprints(cls, share: float, info: ValidationInfo) -> float:
        if share and info.data.get("embedding_start") == "random":
            raise ValueError('needs embedding_start = "fingerprint"')
        return share

    @property
    def embedding_size(self) -> int:
        """t: size of a task embedding."""
        return self.task_embedding_size or METHODS[self.method].EMBEDDING_SIZE


class Recipe(Section):
    """The recipe of a base on an existing T5."""

    name: str = Field(description="What `--base` calls it.")
    seed: int = Field(default=0, description="Of every draw.")
    licence: str = Field(
        default="", description="Licence of the weights; empty: the hub's for this backbone, when known."
    )
    backbone: GivenBackbone
    sources: dict[str, SourceEntry] = Field(default={}, description="Source tasks by name; or --sources DIR.")
    held_out: tuple[str, ...] = Field(default=(), description="Names of tasks that no base may be trained on.")
    hypernetwork: HypernetworkStage = HypernetworkStage()

    @model_validator(mode="after")
    def _holds_out(self) -> Self:
        held_out_named(self.sources, self.held_out)
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        for name, what in ((self.name, "base name"), *((source, "task name") for source in self.sources)):
            try:
                require_name(name, what)
            except InputError as error:
                raise ValueError(f"{error.message} {error.remedy}") from error
        return self


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file as a document.

    Raises:
        InputError: the file is missing, not UTF-8 or not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("recipe-unreadable", path=path, reason=error.strerror) from error
    except UnicodeDecodeError as error:
        raise InputError("recipe-not-utf8", path=path, byte=error.start) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError("recipe-not-toml", path=path, reason=error) from error


def read_recipe(path: Path, behind: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a recipe, merged into the recipe that it names under `like`, without sections named in `without`.

    Args:
        behind: files that refer to this one by `like`, directly or indirectly.

    Raises:
        InputError: as `read_toml`, or `like` names a missing file or forms a cycle.
    """
    document, visited = read_toml(path), (*behind, path.resolve())
    name = document.pop("like", None)
    if name is None:
        return document
    parent_path = path.parent / str(name)
    if parent_path.resolve() in visited or not parent_path.is_file():
        raise InputError("recipe-like-unknown", field="like", path=path, name=name)  # fmt: skip
    whole = read_recipe(parent_path, visited)
    for section in document.pop("without", ()):
        whole.pop(section, None)
    for key, value in document.items():
        tables = isinstance(value, dict) and isinstance(whole.get(key), dict)
        whole[key] = {**whole[key], **value} if tables else value
    return whole


Found = TypeVar("Found", bound=Section)


def validated(kind: type[Found], document: dict[str, Any], path: Path | str) -> Found:
    """Return the document as a recipe.

    Raises:
        InputError: a field is missing, unknown or out of range; the error names it.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "name"
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError("recipe-field-wrong", field=field, path=path, reason=reason) from error


def as_told(recipe: BaseModel) -> dict[str, Any]:
    """Return a recipe for storage in a base, with folder names instead of paths."""
    document: dict[str, Any] = recipe.model_dump(mode="json", by_alias=True)
    for entry in document["sources"].values():
        if "://" not in entry["from"]:
            entry["from"] = Path(entry["from"]).name
    if "of" in document["backbone"]:
        document["backbone"]["of"] = Path(document["backbone"]["of"]).name
    return document
