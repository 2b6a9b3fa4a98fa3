"""The client of a remote service: `Onboard(url, token)`. It needs httpx, numpy and pydantic, but neither torch nor a
database. Results are frozen documents: `.document` is the received JSON, `.to_json()` returns the fields.
"""

from __future__ import annotations

from onboard.client.answers import Embedding, Pins
from onboard.client.cache import EmbeddingCache
from onboard.client.service import AsyncOnboard, Onboard
from onboard.client.tasks import PublishedVersion
from onboard.contract.access import Me
from onboard.contract.carrying import CarriedTask, CarriedTasks
from onboard.contract.changes import ChangedLabels, TaskChange, TaskLabel
from onboard.contract.checks import CheckDocument as CheckedDataset
from onboard.contract.checks import CheckedLabel, DatasetWarning
from onboard.contract.evaluations import ComparisonDocument as ComparedVersions
from onboard.contract.evaluations import EvaluationDocument as EvaluatedVersion
from onboard.contract.evaluations import Flipped as FlippedAnswers
from onboard.contract.evaluations import PairedComparison
from onboard.contract.evaluations import Side as ComparedVersion
from onboard.contract.guard import GuardedTask
from onboard.contract.jobs import JobEventDocument as JobEventSeen
from onboard.contract.jobs import JobStatus, Report
from onboard.contract.versions import AliasMoveDocument as MovedAlias
from onboard.contract.versions import TaskDetail as LearnedTask
from onboard.domain.prediction import Prediction, Unanswered

__all__ = [
    "AsyncOnboard",
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
    "EvaluatedVersion",
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
    "TaskChange",
    "TaskLabel",
    "Unanswered",
]
