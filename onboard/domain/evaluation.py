"""The options for measuring a version on a labeled file, declared once for the command line, HTTP and the client."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from onboard.domain.job import UnknownLabels
from onboard.domain.submission import LabelField, Option, TextField, settle_fields


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A labeled file and how to read it.

    Raises:
        InputError: a choice does not exist.
    """

    dataset: Annotated[
        str | Path,
        Option("File or folder of labeled rows that the version was not trained on.", form="File of labeled rows."),
    ]
    _: KW_ONLY
    text_field: TextField = ()
    label_field: LabelField = None
    unknown_labels: Annotated[
        UnknownLabels,
        Option(
            "Rows with labels that the task does not have: refuse or drop.", wrong="is not a choice of --unknown-labels"
        ),
    ] = "refuse"

    def __post_init__(self) -> None:
        settle_fields(self)
