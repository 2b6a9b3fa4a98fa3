"""Moving aliases: what somebody else moved meanwhile is left alone; a move whose answer was lost is not told as lost.

A move says by If-Match what the alias has to mean. It is never simply sent again when its answer is lost: it may have
arrived, and somebody may have taken it back since. The alias's history says what happened, and whose move it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onboard.client.connection import PATIENCE_SECONDS, Connection, document_of
from onboard.contract.versions import AliasMoveDocument
from onboard.errors import NotFoundError, PreconditionFailedError, UnavailableError


class Aliases:
    """The aliases of one task."""

    def __init__(self, connection: Connection, task: str) -> None:
        self._connection = connection
        self._path = f"/v1/tasks/{task}/aliases/"

    def promote(self, alias: str, version: int, *, if_better: bool, as_before: bool = False) -> AliasMoveDocument:
        """Let the alias mean a version; made when it is new."""
        body = {"version": version, "if_better": if_better, **({"as_before": True} if as_before else {})}
        return self._moved("PUT", self._path + alias, body, alias, self._history(alias))

    def rollback(self, alias: str) -> AliasMoveDocument:
        """Let the alias mean what it meant before. Raises NotFoundError when there is none."""
        history = self._shown(alias)
        return self._moved("POST", f"{self._path}{alias}/rollback", None, alias, history)

    def _shown(self, alias: str) -> list[AliasMoveDocument]:
        document = document_of(self._connection.request("GET", self._path + alias, repeatable=True))
        return [move.parsed(AliasMoveDocument) for move in document.parts("history")]

    def _history(self, alias: str) -> list[AliasMoveDocument]:
        """The last moves, newest first; none where there is no such alias (the task may be unknown, too)."""
        try:
            return self._shown(alias)
        except NotFoundError:
            return []

    def _moved(
        self, method: str, path: str, body: Mapping[str, Any] | None, alias: str, before: Sequence[AliasMoveDocument]
    ) -> AliasMoveDocument:
        headers = {"If-Match": f'"v{before[0].version}"'} if before else {"If-None-Match": "*"}
        lost: UnavailableError | None = None
        attempts = self._connection.attempts
        for attempt in range(1, attempts + 1):
            try:
                response = self._connection.request(
                    method, path, repeatable=False, headers=headers, timeout_seconds=PATIENCE_SECONDS,
                    attempts=1, build=lambda: {} if body is None else {"json": body},
                )  # fmt: skip
                return document_of(response).parsed(AliasMoveDocument)
            except PreconditionFailedError:
                if lost is None:
                    raise
            except UnavailableError as error:
                lost = error
            arrived = self._arrived(alias, body, before)
            if arrived is not None:
                return arrived
            if attempt < attempts:
                self._connection.pause(attempt, lost)
        assert lost is not None
        raise lost

    def _arrived(
        self, alias: str, body: Mapping[str, Any] | None, before: Sequence[AliasMoveDocument]
    ) -> AliasMoveDocument | None:
        """The move that was asked for here, if it is all that happened since; None if nothing did.

        Raises:
            PreconditionFailedError: somebody else moved the alias, before or after it.
        """
        history = self._history(alias)
        since = history[: history.index(before[0])] if before and before[0] in history else history
        if not since:
            return None
        (last, *earlier) = since
        is_ours = last.reason == "rollback" if body is None else last.version == body["version"]
        me = document_of(self._connection.request("GET", "/v1/me", repeatable=True)).read("actor", str)
        if is_ours and not earlier and last.actor == me:
            return last
        raise PreconditionFailedError(
            "alias-moved-meanwhile", task=last.task, alias=alias, version=last.version, actor=last.actor or "somebody"
        )
