"""Which test rows were answered right, as a row of a bench tells it."""

from __future__ import annotations

import numpy as np


def packed(right: np.ndarray) -> str:
    """Bools (n,) as hexadecimal digits, eight rows a byte."""
    return np.packbits(right).tobytes().hex()


def unpacked(digits: str, count: int) -> np.ndarray:
    """What `packed` told, as numbers (count,): 1 or 0."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=count).astype(np.float64)
