"""The section [episodes] of a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from onboard.making.multitask.recipe import Schedule


class EpisodesStage(Schedule):
    """Small tasks drawn from the sources: a readout is solved on a few rows, and other rows train the encoder.

    `batch` counts episodes per step. The learning rate is the encoder's; the other rates are multiples of it.
    """

    labels: int = Field(default=8, ge=2, description="Most labels of an episode.")
    fewest_support: int = Field(default=2, ge=2, description="Fewest support rows; every label has one at least.")
    most_support: int = Field(default=32, ge=2, description="Most support rows, unless a label would have only one.")
    queries: int = Field(default=20, ge=2, description="Query rows.")
    tokens: int = Field(default=72, ge=8, description="Tokens of a row; longer ones are cut.")
    named: float = Field(default=0.5, ge=0, le=1, description="Share of episodes with the labels' words as rows.")
    names_weight: float = Field(default=0.25, ge=0, description="Weight of answering from the labels' words alone.")
    teacher_weight: float = Field(default=0.7, ge=0, description="Weight of the likeness to the second teacher.")
    teacher_rows: int = Field(default=200, ge=2, description="Rows of a source of single texts that it reads.")
    adapted_rows: int = Field(default=16, ge=1, description="Rows a step that are scored under their task's adapters.")
    adapted_weight: float = Field(default=0.5, ge=0, description="Weight of their loss, which keeps adapters fitting.")
    decoder_rate: float = Field(default=2.0, ge=0, description="Multiple of the learning rate for the decoder.")
    hypernetwork_rate: float = Field(default=2.0, ge=0, description="The same for the hypernetwork.")
    embedding_rate: float = Field(default=40.0, ge=0, description="The same for the task embeddings.")
    label_smoothing: float = Field(default=0.05, ge=0, lt=1, description="Of the rows under adapters.")
    temperature: float = Field(default=10.0, gt=0, description="T: a task is drawn by its rows^(1/T).")
    most_of_a_family: float = Field(default=1.0, gt=0, le=1, description="Largest share that a family of sources gets.")
    way: float = Field(
        default=0.5, ge=0, le=1,
        description="How far all weights go from where they started to where the training ended (WiSE-FT).",
    )  # fmt: skip
    precision: Literal["fp32", "bf16"] = Field(default="bf16", description="Of the encoder; the solution is fp32.")
