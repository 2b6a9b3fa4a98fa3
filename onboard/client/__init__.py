"""The client of a remote service: `Onboard(url, token)`. It needs httpx and numpy, neither torch nor a database."""

from __future__ import annotations

from onboard.client.answers import Embedding, JobEventSeen, JobStatus, Me, MovedAlias, Pins, Prediction
from onboard.client.cache import EmbeddingCache
from onboard.client.service import Onboard

__all__ = [
    "Embedding",
    "EmbeddingCache",
    "JobEventSeen",
    "JobStatus",
    "Me",
    "MovedAlias",
    "Onboard",
    "Pins",
    "Prediction",
]
