"""Pfeiffer-Adapter (Pfeiffer et al., arXiv 2005.00247), as Compacter's repository has it: after self-attention only."""

from __future__ import annotations

from typing import ClassVar

from onboard.model.attach import SELF_ATTENTION
from onboard.model.methods.adapters import Adapters


class PfeifferAdapter(Adapters):
    """One adapter a block, after self-attention."""

    METHOD: ClassVar[str] = "pfeiffer-adapter"
    TITLE: ClassVar[str] = "Pfeiffer-Adapter"
    POSITIONS_USED: ClassVar[tuple[int, ...]] = (SELF_ATTENTION,)
