"""Pfeiffer-Adapter (Pfeiffer et al., arXiv 2005.00247), as in Compacter's repository: after self-attention only."""

from __future__ import annotations

from typing import ClassVar

from onboard.model.attach import SELF_ATTENTION
from onboard.model.methods.adapters import Adapters


class PfeifferAdapter(Adapters):
    """One adapter per block, after self-attention."""

    METHOD: ClassVar[str] = "pfeiffer-adapter"
    TITLE: ClassVar[str] = "Pfeiffer-Adapter"
    POSITIONS_USED: ClassVar[tuple[int, ...]] = (SELF_ATTENTION,)
