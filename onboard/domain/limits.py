"""What a service gives and takes in one request; it and its clients count by the same numbers."""

from __future__ import annotations

from typing import Final

MAX_PAGE: Final = 200  # entries of a listing
MAX_INPUTS: Final = 256  # texts to predict
