"""Measure versions on an uploaded file of labeled rows, for routes and pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from onboard.api.deps import ClientLeft
from onboard.api.intake import Intake
from onboard.api.receiving import ReceivedForm, ReceivedRows
from onboard.api.shelf import Shelf
from onboard.data.labelled import CheckedRows
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion
from onboard.registry.services import Services
from onboard.versions.describe import resolve
from onboard.versions.measure import takes_of


@dataclass(frozen=True)
class LabelledFile:
    """An uploaded file, which is read once the task of its labels is known."""

    received: ReceivedForm
    intake: Intake
    shelf: Shelf
    services: Services
    left: Callable[[], bool]

    def compared(self, earlier: Reference, later: Reference) -> bytes:
        """Compare two versions on its rows, as JSON. Raises errors as `comparison_on`, and for invalid rows."""
        a, b = resolve(self.services.database, earlier, later)
        return self.shelf.comparison_on(a, b, self._rows_for(b))

    def evaluated(self, reference: Reference) -> bytes:
        """Measure a version on its rows, as JSON. Raises errors as `evaluation`, and for invalid rows."""
        (version,) = resolve(self.services.database, reference)
        return self.shelf.evaluation(version, self._rows_for(version))

    def _rows_for(self, version: EmbeddingVersion) -> CheckedRows:
        size = self.received.upload.content_bytes
        return self.intake.labelled(self.received.evaluation(), takes_of(version), size, self.left)


async def _labelled_file(received: ReceivedRows, request: Request, left: ClientLeft) -> LabelledFile:
    state = request.app.state
    return LabelledFile(received, state.intake, state.shelf, state.services, left)


OpenFile = Annotated[LabelledFile, Depends(_labelled_file)]
