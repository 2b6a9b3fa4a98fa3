"""The client of a remote service: `Onboard(url, token)`. It needs httpx and numpy, neither torch nor a database."""

from __future__ import annotations

from onboard.client.answers import Embedding, JobEventSeen, JobStatus, Me, MovedAlias, Pins
from onboard.client.cache import EmbeddingCache
from onboard.client.learned import LearnedTask, PublishedVersion, Report
from onboard.client.service import Onboard
from onboard.domain.prediction import Prediction

__all__ = [
    "Embedding",
    "EmbeddingCache",
    "JobEventSeen",
    "JobStatus",
    "LearnedTask",
    "Me",
    "MovedAlias",
    "Onboard",
    "Pins",
    "Prediction",
    "PublishedVersion",
    "Report",
]
