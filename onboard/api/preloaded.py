"""What a check imports, once for all children that are forked of the server that holds it."""

from __future__ import annotations

import pyarrow.parquet  # noqa: F401 - imported to be there
import tokenizers  # noqa: F401 - imported to be there

import onboard.jobs.waking  # noqa: F401 - imported to be there
