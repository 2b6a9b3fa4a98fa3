"""Limits of a dataset's size, so that a wrong or hostile file costs neither memory nor hours."""

from __future__ import annotations

from typing import Final

MAX_ROWS: Final = 1_000_000  # rows of one file
MAX_LINE_BYTES: Final = 1 << 20  # one line of a text file; longer ones are never loaded into memory
MAX_FILE_BYTES: Final = 1 << 30  # one file after decompression: stops gzip bombs of any ratio
MAX_VALUES: Final = 100_000_000  # values of all columns of one Parquet or Arrow file, including those in lists
MAX_EXPANSION: Final = 100  # maximum compression ratio of a file; text compresses 3 to 20 fold
EXPANDED_FREE_BYTES: Final = 64 << 20  # decompressed size of a Parquet or Arrow file that is always allowed
MAX_LINES: Final = 20_000_000  # lines of a text file, including blank ones
MAX_COLUMNS: Final = 10_000  # of one file
MAX_QUESTIONS: Final = 1_000  # questions in one export of a labeling tool
MAX_TEXT_MEMORY_BYTES: Final = 2 << 30  # of all texts of a file in memory, with up to four bytes per character
MAX_LABEL_CHARACTERS: Final = 200  # one label
MAX_NUMBER: Final = 1e12  # largest regression value, so that differences keep their precision

MAX_PROBLEMS_LISTED: Final = 100  # problems that are kept with their row; all are counted
MAX_EXAMPLES: Final = 5  # rows shown with a warning

MAX_CONFLICT_SHARE: Final = 0.10  # of the rows; with more, the labels cannot be trusted
FEWEST_FOLDED_ROWS: Final = 8  # with fewer there is no cross-validation
HOLDOUT_FREE_ROWS: Final = 64  # up to this number, all rows are trained on
MAX_TOKENS: Final = 128  # of a row; the rest is truncated
PROBE_ROWS: Final = 256  # maximum number of rows that choose the initialization
PROBE_TOKENS: Final = 64  # tokens read of each of them: choosing on long texts would take too long
