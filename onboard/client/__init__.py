"""The client of a remote service: `Onboard(url, token)`. It needs httpx and numpy, neither torch nor a database."""

from __future__ import annotations

from onboard.client.answers import Embedding, JobEventSeen, JobStatus, Me, MovedAlias, Pins
from onboard.client.cache import EmbeddingCache
from onboard.client.carried import CarriedTask, CarriedTasks, GuardedTask
from onboard.client.changed import ChangedLabels, TaskLabel
from onboard.client.checked import CheckedDataset, CheckedLabel, DatasetWarning
from onboard.client.compared import ComparedVersion, ComparedVersions, FlippedAnswers, PairedComparison
from onboard.client.learned import LearnedTask, PublishedVersion, Report
from onboard.client.service import Onboard
from onboard.domain.prediction import Prediction, Unanswered

__all__ = [
    "CarriedTask",
    "CarriedTasks",
    "ChangedLabels",
    "CheckedDataset",
    "CheckedLabel",
    "ComparedVersion",
    "ComparedVersions",
    "DatasetWarning",
    "Embedding",
    "EmbeddingCache",
    "FlippedAnswers",
    "GuardedTask",
    "JobEventSeen",
    "JobStatus",
    "LearnedTask",
    "Me",
    "MovedAlias",
    "Onboard",
    "PairedComparison",
    "Pins",
    "Prediction",
    "PublishedVersion",
    "Report",
    "TaskLabel",
    "Unanswered",
]
