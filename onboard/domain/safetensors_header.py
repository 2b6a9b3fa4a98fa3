"""Safetensors bytes that depend on the content alone: the library writes metadata in a random order."""

from __future__ import annotations

import json
import struct


def with_sorted_header(content: bytes) -> bytes:
    """The same safetensors file with its header's keys sorted, so that equal content gives equal digests."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # tensors start at a multiple of eight bytes
    return struct.pack("<Q", len(header)) + header + content[8 + length :]
