"""Python imports this before anything else in a worker whose clock is to be wrong (it stands on its PYTHONPATH)."""

import os
import time

_SECONDS = float(os.environ.get("WRONG_CLOCK_SECONDS", "0"))
_right, _right_ns = time.time, time.time_ns
time.time = lambda: _right() + _SECONDS
time.time_ns = lambda: _right_ns() + int(_SECONDS * 1e9)
