"""Deterministic safetensors files: the library writes metadata in random order."""

from __future__ import annotations

import json
import struct


def with_sorted_header(content: bytes) -> bytes:
    """Return the same safetensors file with sorted header keys, so that equal content has equal digests."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # tensors start at a multiple of eight bytes
    return struct.pack("<Q", len(header)) + header + content[8 + length :]
