"""What a service gives and takes in one request; it and its clients count by the same numbers."""

from __future__ import annotations

from typing import Final

MAX_PAGE: Final = 200  # entries of a listing
MAX_CARRIED: Final = 20  # tasks that are judged together: their rows are in memory at once
MAX_LABELS: Final = 1_000  # distinct classes of a task
MAX_INPUTS: Final = 256  # texts to predict
MAX_TEXT_CHARACTERS: Final = 100_000  # one text; below the csv module's own limit of 131,072 a field
