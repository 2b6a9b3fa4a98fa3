"""Limits of requests, shared by the service and its clients."""

from __future__ import annotations

from typing import Final

MAX_PAGE: Final = 200  # entries per page of a listing
MAX_CARRIED: Final = 20  # tasks per request that are checked together, with their rows in memory
MAX_LABELS: Final = 1_000  # distinct classes of a task
MAX_INPUTS: Final = 256  # texts per prediction request
MAX_TEXT_CHARACTERS: Final = 100_000  # per text; below the csv module's limit of 131,072 per field
