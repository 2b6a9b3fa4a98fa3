"""How much of a dataset is read, so that a wrong or hostile file costs neither memory nor hours."""

from __future__ import annotations

from typing import Final

MAX_ROWS: Final = 1_000_000  # rows of one file
MAX_LINE_BYTES: Final = 1 << 20  # one line of a text file; longer ones are never held in memory
MAX_FILE_BYTES: Final = 1 << 30  # one file after decompression: caps gzip bombs whatever their ratio
MAX_VALUES: Final = 100_000_000  # values of all columns of one Parquet or Arrow file, those in lists included
MAX_EXPANSION: Final = 100  # times its size that compression may take out of a file; text compresses 3 to 20 fold
EXPANDED_FREE_BYTES: Final = 64 << 20  # that may come out of a Parquet or Arrow file whatever its size
MAX_LINES: Final = 20_000_000  # lines of a text file, blank ones included
MAX_COLUMNS: Final = 10_000  # of one file
MAX_QUESTIONS: Final = 1_000  # that annotators answer in one export of a labelling tool
MAX_TEXT_MEMORY_BYTES: Final = 2 << 30  # of all texts of a file in memory, where a letter may take four bytes
MAX_LABEL_CHARACTERS: Final = 200  # one label
MAX_NUMBER: Final = 1e12  # largest regression value, so that differences keep their precision

MAX_PROBLEMS_LISTED: Final = 100  # problems that are kept with their row; all are counted
MAX_EXAMPLES: Final = 5  # rows shown with a warning

MAX_CONFLICT_SHARE: Final = 0.10  # of the rows; more than this and the labels cannot be trusted
FEWEST_FOLDED_ROWS: Final = 8  # below them there is no cross-validation
HOLDOUT_FREE_ROWS: Final = 64  # up to so many rows all of them train
MAX_TOKENS: Final = 128  # of a row; the rest is cut off
PROBE_ROWS: Final = 256  # at most, that choose the initialisation
PROBE_TOKENS: Final = 64  # of each of them that are read: over long texts the choice would take too long
