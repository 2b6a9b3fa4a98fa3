"""The HTTP application: its routes, errors and OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute

from onboard import __version__
from onboard.api import guarding, heads, openapi, root_path
from onboard.api.access import require_guarded
from onboard.api.following import Readers
from onboard.api.intake import Intake
from onboard.api.labelling import Labelling
from onboard.api.pages import ROUTERS as PAGES
from onboard.api.pages import errors
from onboard.api.pages.live import ServicePulse
from onboard.api.pages.overview import Overview
from onboard.api.pages.task_map import Maps
from onboard.api.prediction_queue import PredictionQueue
from onboard.api.routes import ROUTERS
from onboard.api.schema_watch import SchemaWatch
from onboard.api.shelf import Shelf
from onboard.api.tracing import telemetry
from onboard.api.upload_folder import upload_folder
from onboard.api.upload_places import UploadPlaces
from onboard.api.uploads import MAX_AT_ONCE
from onboard.bases import find_base
from onboard.errors import OnboardError
from onboard.hypernetworks.register import register_base
from onboard.operations.open_id import OpenIdProvider
from onboard.operations.prometheus import make_registry
from onboard.registry.services import open_services
from onboard.settings import Settings

__all__ = ["create_app"]

_DESCRIPTION = "Submit labeled tasks, follow their jobs, fetch their embeddings, and predict."


def create_app(settings: Settings | None = None, *, preload: bool = False) -> FastAPI:
    """Return the HTTP application for these settings. It opens its database when the server starts.

    Args:
        settings: None reads the environment.
        preload: load the model when the server starts, not at the first prediction.
    """
    settings = settings or Settings()
    app = FastAPI(
        telemetry=telemetry(settings),
        title="Onboard",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=_lifespan,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
        openapi_url=None,  # our own route describes it, with a token like all routes
        routes=[*_routes()],
    )
    app.state.settings, app.state.preload = settings, preload
    errors.install(app)
    openapi.install(app)
    terms = app.state.settings.open_id
    app.state.open_id = OpenIdProvider(terms) if terms else None
    guarding.install(app, app.state.settings, errors.answer)
    root_path.install(app, settings.root_path)
    heads.install(app)
    require_guarded(app)
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """Return every route. FastAPI analyzes their arguments once per process, however many applications are created."""
    every = APIRouter(generate_unique_id_function=_operation_id)
    for router in (*ROUTERS, *PAGES):
        every.include_router(router)
    return tuple(every.routes)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open `app.state`: services, metrics, predictions, intake (uploads); close them in reverse order."""
    services = await run_in_threadpool(open_services, app.state.settings)
    try:
        app.state.services = services
        await run_in_threadpool(register_base, services, find_base(services.settings.base))
        app.state.shelf = Shelf(services)
        app.state.maps = Maps(services)
        app.state.metrics = make_registry(services.database)
        app.state.predictions = PredictionQueue(services)
        app.state.labelling = Labelling(services, app.state.predictions)
        if app.state.preload:
            await run_in_threadpool(app.state.predictions.load)
            await run_in_threadpool(_draw_map, app.state.maps)
        app.state.schema = SchemaWatch(services.database)
        app.state.readers, app.state.pulse, app.state.overview = Readers(), ServicePulse(), Overview()
        with upload_folder(services.settings.resolved_home) as folder, Intake(services.settings, folder) as intake:
            app.state.uploads = folder
            app.state.receiving = UploadPlaces(MAX_AT_ONCE)
            app.state.intake = intake
            try:
                async with app.state.schema.watching():
                    yield
            finally:
                app.state.labelling.end()
    finally:
        if hasattr(app.state, "predictions"):
            await run_in_threadpool(app.state.predictions.close)
        await run_in_threadpool(services.close)
        if app.state.shared_limits is not None:
            await run_in_threadpool(app.state.shared_limits.close)


def _draw_map(maps: Maps) -> None:
    with suppress(OnboardError):  # the page shows the error
        maps.document()


def _operation_id(route: APIRoute) -> str:
    """Return the name that generated clients use for their method."""
    return route.name
