"""How one of several processes ends: with its words and its exit code, and without Python's own ending."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import atexit
from onboard.making.multitask.processes import leave

atexit.register(lambda: print("the interpreter ended"))
print("saved", end=" ")
leave(143)
"""


@pytest.mark.parametrize(("launched", "printed"), [(True, "saved "), (False, "saved the interpreter ended\n")])
def test_a_launched_process_says_all_and_leaves_at_once(launched: bool, printed: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TORCHELASTIC_RUN_ID"}
    if launched:
        environment["TORCHELASTIC_RUN_ID"] = "test"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, printed, "")
