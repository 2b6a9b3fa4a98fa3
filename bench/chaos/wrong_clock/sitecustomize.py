"""Python imports this before anything else in a worker whose clock may be wrong (it stands on its PYTHONPATH).

The file that WRONG_CLOCK_FILE names tells by how many seconds; the clock jumps when somebody writes another number.
"""

import os
import time

_FILE = os.environ.get("WRONG_CLOCK_FILE", "")
_LOOK_SECONDS = 0.2
_right, _right_ns, _monotonic = time.time, time.time_ns, time.monotonic
_known = [0.0, -1.0]  # seconds, and when they were read


def _wrong_by() -> float:
    now = _monotonic()
    if _FILE and now - _known[1] > _LOOK_SECONDS:
        _known[1] = now
        try:
            with open(_FILE) as file:  # noqa: PTH123 - pathlib would be imported into everything
                _known[0] = float(file.read())
        except (OSError, ValueError):
            pass  # nobody has written it yet
    return _known[0]


time.time = lambda: _right() + _wrong_by()
time.time_ns = lambda: _right_ns() + int(_wrong_by() * 1e9)
