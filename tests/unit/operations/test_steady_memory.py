"""What C libraries put by for later, in a process that answers for months."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNTING = """
import ctypes, threading
from onboard.operations.memory import keep_memory_steady

if {steady}:
    keep_memory_steady()
library = ctypes.CDLL(None)
library.malloc.restype = library.fdopen.restype = ctypes.c_void_p
library.getenv.restype = ctypes.c_char_p
ready = threading.Barrier(5)

def hold():
    ready.wait()
    for _ in range(100):
        library.malloc(1000)
    ready.wait()

threads = [threading.Thread(target=hold) for _ in range(4)]
for thread in threads:
    thread.start()
ready.wait()
ready.wait()
print("shapes", library.getenv(b"ONEDNN_PRIMITIVE_CACHE_CAPACITY"), flush=True)
if hasattr(library, "malloc_info"):
    out = library.fdopen(1, b"w")
    library.malloc_info(0, ctypes.c_void_p(out))
    library.fflush(ctypes.c_void_p(out))
"""


def process_says(*, steady: bool, **environment: str) -> str:
    """What a process with some threads says of its heaps and of the shapes that oneDNN may keep."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "ONEDNN_"))}
    command = [sys.executable, "-c", COUNTING.format(steady=steady)]
    return subprocess.run(command, env={**bare, **environment}, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""), reason="no glibc"
)
def test_all_threads_share_one_heap() -> None:
    assert process_says(steady=False).count("<heap ") > 1
    assert process_says(steady=True).count("<heap ") == 1


def test_few_shapes_are_kept_unless_the_environment_names_more() -> None:
    assert "shapes None" in process_says(steady=False)
    assert "shapes b'32'" in process_says(steady=True)
    assert "shapes b'500'" in process_says(steady=True, ONEDNN_PRIMITIVE_CACHE_CAPACITY="500")
