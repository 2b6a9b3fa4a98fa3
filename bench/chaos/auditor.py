"""Looks at every answer that a reader got: is it whole, is it the one that was requested, may it be the answer now?"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from sqlalchemy import select

from bench.chaos.checker import Violation, digest_of
from onboard.domain.names import LATEST
from onboard.errors import DamagedError
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.storage.embedding import embedding_digest, read_facts

KIND: Final = "answer"
PASSING: Final = ("unavailable", "storage")  # codes of a 503
_PROBLEM: Final = "application/problem+json"
_MOST_TOLD: Final = 50


@dataclass(frozen=True)
class Answer:
    """The response to a request.

    Args:
        task: whose latest embedding was requested; None for those of all tasks.
        file: whether embedding.safetensors was requested.
        sent: the ETag that was sent along; empty without one.
        known: whether somebody had got this embedding before the request was sent.
        headers: by their names in lower case.
    """

    task: str | None
    file: bool
    sent: str
    known: bool
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """A version as an answer told it; `digest` is that of its numbers."""

    task: str
    version: int
    artifact: str
    digest: str


class Wrong(Exception):  # noqa: N818 - it is an answer that is wrong, not a fault of ours
    """The problem of an answer, as a sentence's end."""


class Auditor:
    """Counts the answers and keeps their problems. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: Counter[str] = Counter()
        self._verified = 0
        self._longest = 0.0
        self._seen: dict[tuple[str, int], Seen] = {}
        self._bodies: dict[str, str] = {}  # ETag of all embeddings → digest of the body
        self._last: dict[str, int | None] = {}
        self._wrong: list[Violation] = []

    def known(self, task: str | None) -> bool:
        """Whether somebody has got an embedding of this task; there is always something for all tasks."""
        with self._lock:
            return task is None or any(name == task for name, _ in self._seen)

    def take(self, answer: Answer, seconds: float) -> list[Seen]:
        """Look at an answer that took so long; returns the versions that it tells."""
        with self._lock:
            self._statuses[str(answer.status)] += 1
            self._longest = max(self._longest, seconds)
        try:
            versions = _told(answer)
            self._require_same(answer, versions)
        except (Wrong, KeyError, ValueError, TypeError, DamagedError) as error:
            self.tell(f"{answer.task or 'all'}, {answer.status}: {error!r}")
            return []
        return versions

    def unanswered(self, task: str | None, error: Exception) -> None:
        """No answer came, or not a whole one."""
        with self._lock:
            self._statuses["none"] += 1
        self.tell(f"{task or 'all'}: no whole answer came: {error!r}")

    def end(self, task: str, versions: Sequence[Seen]) -> None:
        """The answer for the task after the run; nothing where it has no version."""
        self._last[task] = versions[0].version if versions else None

    def tell(self, what: str) -> None:
        """Record a problem."""
        with self._lock:
            if len(self._wrong) < _MOST_TOLD:
                self._wrong.append(Violation(KIND, what))

    def verdict(self, services: Services) -> tuple[list[Violation], dict[str, Any]]:
        """The problems, the registry's rows considered; and how much was looked at."""
        with services.database.read() as session:
            rows = {(row.task, row.version): row for row in session.scalars(select(EmbeddingVersionRow))}
            latest = {task: AliasRepository(session).find(task, LATEST) for task in self._last}
        for key, seen in self._seen.items():
            row = rows.get(key)
            if row is None or (row.artifact, row.embedding_digest) != (seen.artifact, seen.digest):
                self.tell(f"{seen.task}@v{seen.version} was answered, and is not what the registry holds")
        for task, version in self._last.items():
            if version != latest[task]:
                self.tell(f"{task}@latest is v{latest[task]}, and when all was quiet v{version} was answered")
        return self._wrong, {
            "answers": dict(sorted(self._statuses.items())),
            "embeddings_verified": self._verified,
            "versions_seen": len(self._seen),
            "longest_seconds": round(self._longest, 2),
        }

    def _require_same(self, answer: Answer, versions: list[Seen]) -> None:
        """One version has one content, one ETag one body, for all readers and for ever."""
        with self._lock:
            self._verified += len(versions)
            for seen in versions:
                if self._seen.setdefault((seen.task, seen.version), seen) != seen:
                    raise Wrong(f"{seen.task}@v{seen.version} is another one than before")
            if answer.task is None and versions:
                body = hashlib.sha256(answer.body).hexdigest()
                if self._bodies.setdefault(answer.headers["etag"], body) != body:
                    raise Wrong("one ETag, two bodies")


def _told(answer: Answer) -> list[Seen]:
    """The versions in an answer. Raises Wrong, or what reading it raises."""
    if answer.status == 304:
        if not answer.sent or answer.headers["etag"] != answer.sent or answer.body:
            raise Wrong("it is unchanged, but the client has no such thing")
        return []
    if answer.status != 200:
        _require_clean(answer)
        return []
    if answer.task is None:
        return list(_listed(json.loads(answer.body)["embeddings"]))
    seen = _file(answer) if answer.file else _document(json.loads(answer.body))
    if seen.task != answer.task:
        raise Wrong(f"{seen.task} came")
    if answer.headers["etag"].replace('-provisional"', '"') != f'"{seen.artifact}"':
        raise Wrong(f"the ETag says {answer.headers['etag']}, the digest is {seen.artifact}")
    return [seen]


def _require_clean(answer: Answer) -> None:
    """Refusals are problems; one that will pass says so, and what was there once is never gone."""
    if answer.headers["content-type"] != _PROBLEM:
        raise Wrong(f"no problem but {answer.body[:200]!r}")
    code = json.loads(answer.body)["code"]
    passing = answer.status == 503 and code in PASSING and "retry-after" in answer.headers
    not_yet = answer.status == 404 and code == "not_found" and not answer.known
    if not (passing or not_yet):
        raise Wrong(f"{code}: {answer.body[:200]!r}")


def _file(answer: Answer) -> Seen:
    facts = read_facts(answer.body)
    digest = "sha256:" + hashlib.sha256(answer.body).hexdigest()
    return Seen(facts["task"], facts["version"], digest, digest_of(answer.body))


def _document(document: Mapping[str, Any]) -> Seen:
    if document["z"] is None:  # a readout alone, whose numbers are in its file only
        return Seen(document["task"], document["version"], document["artifact"], document["embedding_digest"])
    digest = embedding_digest(np.array(document["z"], np.float32))
    if digest != document["embedding_digest"]:
        raise Wrong(f"the numbers of {document['task']}@v{document['version']} have another digest")
    return Seen(document["task"], document["version"], document["artifact"], digest)


def _listed(documents: list[dict[str, Any]]) -> Iterator[Seen]:
    for document in documents:
        yield _document(document)
