"""The table of all messages of errors and warnings: one entry per type, one module per room.

A type is the stable name of one error, such as `unknown-task`. `--json` and HTTP problems send it as `type`, and tests
compare it. `onboard.errors` fills in the templates; `reference/errors.py` makes the reference page of them. To add an
error, add its entry here and raise it by its type: `raise NotFoundError("unknown-task", task=name)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.api import API
from onboard.messages.bases import BASES
from onboard.messages.cli import CLI
from onboard.messages.client import CLIENT
from onboard.messages.data import DATA
from onboard.messages.domain import DOMAIN
from onboard.messages.jobs import JOBS
from onboard.messages.making import MAKING
from onboard.messages.message import Message
from onboard.messages.model import MODEL
from onboard.messages.operations import OPERATIONS
from onboard.messages.registry import REGISTRY
from onboard.messages.serving import SERVING
from onboard.messages.settings import SETTINGS
from onboard.messages.storage import STORAGE
from onboard.messages.versions import VERSIONS
from onboard.messages.workers import WORKERS

__all__ = ["MESSAGES", "Message"]

ROOMS: Final = (
    API,
    BASES,
    CLI,
    CLIENT,
    DATA,
    DOMAIN,
    JOBS,
    MAKING,
    MODEL,
    OPERATIONS,
    REGISTRY,
    SERVING,
    SETTINGS,
    STORAGE,
    VERSIONS,
    WORKERS,
)
MESSAGES: Final[Mapping[str, Message]] = {type_: message for room in ROOMS for type_, message in room.items()}
"""Every message by its type."""
