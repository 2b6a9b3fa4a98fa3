"""The list of tasks: search by name, label, family and quality; shipped tasks are listed separately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page, place_of
from onboard.api.pages.task_map import Maps
from onboard.domain.access import Scope
from onboard.domain.task_search import TaskSearch
from onboard.errors import InputError
from onboard.report.versions import measured_text
from onboard.versions.describe import list_tasks

PAGE: Final = 50  # tasks
_MOST_LETTERS: Final = 1000
_READ: Final = [Depends(requires(Scope.READ))]
Text = Annotated[str, Query(max_length=_MOST_LETTERS)]
Choice = Annotated[Literal["", "no", "yes"], Query()]
_CHOSEN: Final = {"": None, "no": False, "yes": True}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters from the address, so that a shared link shows the same tasks."""

    name: str
    label: str
    family: str
    weak: str
    shipped: str

    @property
    def search(self) -> TaskSearch:
        """Return the search."""
        return TaskSearch(
            label=self.label or None, weak=_CHOSEN[self.weak], name=self.name or None, shipped=_CHOSEN[self.shipped]
        )

    def address(self, **changes: Any) -> str:
        """Return the address of the same list, with changes."""
        given = {
            "name": self.name,
            "label": self.label,
            "family": self.family,
            "weak": self.weak,
            "shipped": self.shipped,
            **changes,
        }
        return place_of("/tasks", given)


def _filters(
    name: Text = "", label: Text = "", family: Text = "", weak: Choice = "", shipped: Choice = "no"
) -> Filters:
    return Filters(name.strip().lower(), label.strip(), family.strip(), weak, shipped)


def _of_family(maps: Maps, family: str) -> frozenset[str]:
    """Return the tasks of a family on the map. Raises InputError: it does not exist."""
    document = maps.document()
    names = frozenset(task["task"] for task in document["tasks"] if task["family"] == family)
    if not names:
        known = ", ".join(known["family"] for known in document["families"])
        raise InputError("unknown-family", field="family", family=family, remedy=f"It may be {known}." if known else "")
    return names


@router.get("/tasks", dependencies=_READ)
@router.get("/tasks.json", dependencies=_READ)
def show_tasks(
    request: Request, services: OpenServices, filters: Annotated[Filters, Depends(_filters)], after: Text = ""
) -> Response:
    """Show a page of the matching tasks, by name."""
    search = filters.search
    if filters.family:
        search = replace(search, names=_of_family(request.app.state.maps, filters.family))
    tasks = list_tasks(services.database, search, PAGE + 1, after or None)
    document = {"tasks": tasks[:PAGE], "next": tasks[PAGE - 1]["task"] if len(tasks) > PAGE else None}
    return page(request, "tasks.html", document, filters=filters, after=after, measured=measured_text)
