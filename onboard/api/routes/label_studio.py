"""A machine learning backend of Label Studio: predictions that learn from every annotation.

Label Studio is given the URL `…/v1/label-studio/TASK`, any user name, and a token as password.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Body, Depends, Request

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.labelling import Labelling
from onboard.api.routes.tasks import TaskName
from onboard.contract.label_studio import (
    Connected,
    Health,
    LabelingState,
    PredictionTasks,
    Received,
    Setup,
    TaskPredictions,
)
from onboard.data.label_studio import Config, UnusedAnnotation, annotations_in, config_in, read_config, texts_in
from onboard.domain.access import Identity, Scope
from onboard.domain.annotation import Annotation
from onboard.jobs.labelling.publishing import require_connectable
from onboard.jobs.labelling.receiving import labelled, receive

START_TRAINING = "START_TRAINING"
router = APIRouter(prefix="/v1/label-studio/{task}", tags=["labeling"])
Submitter = Annotated[Identity, Depends(requires(Scope.SUBMIT))]
_READ = [Depends(requires(Scope.READ))]


async def _labelling(request: Request) -> Labelling:
    tasks: Labelling = request.app.state.labelling
    return tasks


OpenLabelling = Annotated[Labelling, Depends(_labelling)]


@router.get("/health", response_model=Health, dependencies=_READ)
async def label_studio_health(task: TaskName) -> dict[str, Any]:  # noqa: ARG001 - part of the path
    """Whether the backend answers. Label Studio asks when it connects."""
    return {"status": "UP", "model_class": "Onboard"}


@router.get("", response_model=LabelingState, dependencies=_READ)
def labeling_state(task: TaskName, services: OpenServices, labelling: OpenLabelling) -> dict[str, Any]:
    """How far the task is labeled, and whether a version has learned it."""
    labeled = labelled(services, task)
    return {
        "task": task, "annotations": len(labeled.annotations), "texts": labeled.texts, "revision": labeled.revision,
        "job": None if labeled.job is None else labeled.job.id, "refit_seconds": labelling.refit_seconds(task),
    }  # fmt: skip


@router.post("/setup", response_model=Connected)
def label_studio_setup(
    task: TaskName, body: Setup, identity: Submitter, services: OpenServices, labelling: OpenLabelling
) -> dict[str, Any]:
    """Connect a project. Its labeling configuration must define one choice about a text."""
    config = read_config(body.schema_)
    require_connectable(services, task, pairs=config.pairs, several=config.several)
    labeled = labelled(services, task)
    if labeled.revision and labeled.job is None:  # the process that was to publish them has ended
        labelling.publish_when_quiet(task, identity.name, again=False)
    return {"model_version": _version(task, labeled.revision)}


@router.post("/predict", response_model=TaskPredictions, dependencies=_READ)
def label_studio_predict(
    task: TaskName, body: PredictionTasks, services: OpenServices, labelling: OpenLabelling
) -> dict[str, Any]:
    """Predictions of tasks, made with all annotations so far. Tasks without a text get no label."""
    config = read_config(body.label_config)
    texts = texts_in(body.tasks, config)
    places = [place for place, text in enumerate(texts) if text is not None]
    if not places:
        version = _version(task, labelled(services, task).revision)
        return {"results": [_without_label(version) for _ in texts], "model_version": version}
    learner = labelling.learner(task, pairs=config.pairs, several=config.several)
    answered = learner.answer(config.labels, [text for text in texts if text is not None])
    version = _version(task, answered.revision)
    results = [_without_label(version) for _ in texts]
    answers = zip(places, answered.chosen, answered.certainties.tolist(), answered.scores.tolist(), strict=True)
    for place, label_places, certainty, score in answers:
        labels = [config.labels[label] for label in label_places]
        results[place] |= {"result": config.results_of(labels, certainty), "score": round(score, 4)}
    return {"results": results, "model_version": version}


@router.post("/webhook", response_model=Received)
def label_studio_webhook(
    task: TaskName,
    body: Annotated[dict[str, Any], Body()],
    identity: Submitter,
    services: OpenServices,
    labelling: OpenLabelling,
    after: BackgroundTasks,
) -> dict[str, Any]:
    """Store annotations that were created, changed or deleted, and learn them. START_TRAINING publishes them at once.

    Repeated annotations change nothing, and late ones do not replace newer ones.
    """
    config = config_in(body)
    if body.get("action") == START_TRAINING:
        job = labelling.publish(task, identity.name, fast=False)
        return {"kept": 0, "job": None if job is None else job.id}
    annotations = list(annotations_in(body, config))
    kept = receive(services, task, [annotation for annotation in annotations if isinstance(annotation, Annotation)])
    if kept:
        labelling.publish_when_quiet(task, identity.name)
        if config is not None:
            after.add_task(_refit, labelling, task, config)
    return {
        "kept": kept,
        "left_out": [_reason(annotation) for annotation in annotations if isinstance(annotation, UnusedAnnotation)],
    }


def _without_label(version: str) -> dict[str, Any]:
    """Label Studio expects an answer to each task."""
    return {"result": [], "score": 1.0, "model_version": version}


def _refit(labelling: Labelling, task: str, config: Config) -> None:
    """Label Studio waits a second for the answer to a webhook, so learning comes after it."""
    labelling.learner(task, pairs=config.pairs, several=config.several).refit(config.labels)


def _reason(left_out: UnusedAnnotation) -> dict[str, str]:
    return {"number": left_out.number, "reason": left_out.reason}


def _version(task: str, revision: int) -> str:
    """Return the version for Label Studio, which requests predictions again when it changes."""
    return f"{task}-{revision}"
