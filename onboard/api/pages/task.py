"""The page of a task: versions, aliases, promotion, rollback, download, and trying texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices, decode_number
from onboard.api.pages.frame import page, to
from onboard.api.pages.jobs import with_results
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.contract.card import render_card
from onboard.contract.changes import change_sentence
from onboard.contract.jobs import NAME
from onboard.contract.versions import AliasMoveDocument
from onboard.domain.access import Scope
from onboard.domain.canary import alias_tag, parse_share, share_text
from onboard.domain.job_search import JobSearch
from onboard.domain.limits import MAX_TEXT_CHARACTERS
from onboard.domain.names import LATEST, MOST_LETTERS
from onboard.jobs.many import jobs_page
from onboard.jobs.waking import start_webhook_worker
from onboard.registry.aliases import Expected
from onboard.report.charts import RowChart, Scale, Track
from onboard.report.reading import label_name
from onboard.report.versions import measured_text, versions_chart
from onboard.versions.describe import describe_task, resolve, versions_page
from onboard.versions.promote import alias_history, promote, rollback

PAGE: Final = 50  # versions
_RUNS: Final = 20
_MOVES: Final = 20  # of an alias that are shown
_MOST_DIGITS: Final = 10  # of a version number
_MOST_REASON: Final = 200  # characters
_READ: Final = [Depends(requires(Scope.READ))]
_PROMOTE: Final = [Depends(requires(Scope.PROMOTE))]
Alias = Annotated[str, Form(pattern=NAME, max_length=MOST_LETTERS)]
Seen = Annotated[int, Form(ge=0, le=999_999_999)]
Number = Annotated[int, Form(ge=1, le=999_999_999)]
Because = Annotated[str, Form(max_length=_MOST_REASON)]
Text = Annotated[str, Form(max_length=MAX_TEXT_CHARACTERS)]


@dataclass(frozen=True, slots=True)
class Move:
    """A requested move of an alias.

    Args:
        seen: the version of each alias when the page was rendered, or the tag of an alias with a canary.
        because: the reason, in one line.
        share: of the alias's texts, for a canary; None moves the alias.
    """

    seen: dict[str, Expected]
    if_better: bool
    because: str
    as_before: bool = False
    share: float | None = None


def _move(
    seen: Annotated[list[str] | None, Form(max_length=1000)] = None,
    if_better: Annotated[bool, Form()] = False,
    as_before: Annotated[bool, Form()] = False,
    because: Because = "",
    share: Annotated[str, Form(max_length=MOST_LETTERS)] = "",
) -> Move:
    pairs = [entry.partition("=") for entry in seen or ()]
    numbers = {alias: int(shown) for alias, _, shown in pairs if shown.isdecimal() and len(shown) < _MOST_DIGITS}
    tags = {alias: shown for alias, _, shown in pairs if shown.startswith("v")}
    return Move(
        {**numbers, **tags},
        if_better,
        _one_line(because),
        as_before,
        parse_share(share) if share.strip() else None,
    )


def _texts(text: Text = "", text_a: Text = "", text_b: Text = "") -> dict[str, str]:
    given = {"text": text, "text_a": text_a, "text_b": text_b}
    return {name: value for name, value in given.items() if value.strip()}


router = APIRouter(prefix="/tasks/{task}", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_task(
    task: TaskName,
    request: Request,
    services: OpenServices,
    before: Annotated[str | None, Query(max_length=MOST_LETTERS)] = None,
    ref: Annotated[str, Query(max_length=MOST_LETTERS)] = "",
) -> Response:
    """Show a task with a page of its versions and recent jobs, newest first, and recent moves of its aliases.

    Args:
        ref: the version that is selected in the forms.
    """
    listed = versions_page(services.database, task, PAGE, decode_number(before))
    listed["versions"].reverse()  # newest first
    runs = with_results(services.database, jobs_page(services.database, JobSearch(task=task), None, _RUNS))
    document = {
        **describe_task(services.database, task),
        "versions": listed["versions"],
        "next": listed["next"],
        "canaries": listed["canaries"],
        "runs": runs,
        "run_metrics": list(dict.fromkeys(name for run in runs if run["result"] for name in run["result"]["metrics"])),
        "moves": {alias: _moves(services, task, alias) for alias in listed["aliases"]},
    }
    latest = [] if document["latest"] is None else resolve(services.database, task)
    return page(
        request,
        "task.html",
        document,
        chart=versions_chart(document["versions"]),
        measured=measured_text,
        percentage=share_text,
        tag=_tag,
        changed=change_sentence,
        card=render_card(latest[0]) if latest else "",
        before=before,
        chosen_ref=ref,
    )


@router.post("/promote", dependencies=_PROMOTE)
def promote_version(
    task: TaskName,
    services: OpenServices,
    shelf: OpenShelf,
    version: Number,
    alias: Alias,
    move: Annotated[Move, Depends(_move)],
) -> Response:
    """Move an alias to a version, or change its canary, if it has not changed since the page was rendered."""
    expected = move.seen.get(alias, 0)
    promote(
        services, f"{task}@v{version}", alias, if_better=move.if_better, as_before=move.as_before, share=move.share,
        expected=expected, manifests=shelf.manifests, because=move.because,
    )  # fmt: skip
    start_webhook_worker(services)
    return to(f"/tasks/{task}")


@router.post("/rollback", dependencies=_PROMOTE)
def roll_back(task: TaskName, services: OpenServices, alias: Alias, seen: Seen, because: Because = "") -> Response:
    """Move an alias back, if it has not changed since the page was rendered."""
    rollback(services, task, alias, expected=seen, because=_one_line(because))
    start_webhook_worker(services)
    return to(f"/tasks/{task}")


@router.post("/try", dependencies=_READ)
def try_texts(
    task: TaskName,
    request: Request,
    left: ClientLeft,
    texts: Annotated[dict[str, str], Depends(_texts)],
    ref: Annotated[str, Form(pattern=NAME, max_length=MOST_LETTERS)] = LATEST,
) -> Response:
    """Show the answer to a text or a pair, with every label's probability."""
    (answer,) = request.app.state.predictions.predict([{"task": task, "ref": ref, **texts}], left)
    document = answer.to_json(probabilities=True)
    return page(request, "tried.html", document, chart=_shares(document), texts=texts)


def _moves(services: Any, task: str, alias: str) -> list[dict[str, Any]]:
    _, _, moves = alias_history(services.database, task, alias, _MOVES)
    return [AliasMoveDocument.of(move).to_json() for move in moves]


def _tag(version: int, canary: dict[str, Any]) -> str:
    """Return the tag of an alias with this version and this canary's document, if any."""
    return alias_tag(version, canary.get("version"), canary.get("share"))


def _shares(answer: dict[str, Any]) -> RowChart:
    """Return a bar per label with its probability, most likely first; those of the answer are highlighted."""
    shares = sorted(answer["probabilities"], key=lambda share: -share["probability"])
    scale, answered = Scale(0.0, 1.0), answer.get("labels")
    return RowChart(
        title="Probability of each label"
        if answered is None
        else "Score of each label; labels with 50% or more are answered",
        origin=0.0,
        tracks=[
            Track(
                label=label_name(share["label"]),
                shown=f"{100 * share['probability']:.1f}%",
                at=scale.at(share["probability"]),
                emphasised=index == 0 if answered is None else share["label"] in answered,
            )
            for index, share in enumerate(shares)
        ],
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
