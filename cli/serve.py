"""`onboard serve`: the HTTP service."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.output import AsJson, emit, say
from cli.services import local_only


@local_only("serve")
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 allows other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 chooses a free one.")] = 8000,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Never start a worker.")] = False,
    preload: Annotated[
        bool, typer.Option("--preload", help="Load the model at startup instead of at the first prediction.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve HTTP until Ctrl-C. On loopback it prints a sign-in link for a browser; elsewhere a token is required."""
    from onboard.domain.extras import require_extra

    require_extra("serve", "fastapi", "python_multipart", "uvicorn")
    from onboard import local
    from onboard.api.serve import admit, listen, url_of
    from onboard.api.serve import serve as answer
    from onboard.jobs.doorbell import DEFAULT_QUEUE
    from workers.logs import set_up_logging

    with local.Onboard(notify=say) as service:
        settings = service.services.settings
        set_up_logging(settings.log_format, "serve")
        listening = listen(host, port)
        code = admit(service.services.database, settings, host)
        if no_worker:
            settings = settings.model_copy(update={"start_worker": False})
        else:
            service.start_worker(DEFAULT_QUEUE)
    url = url_of(host, listening)
    link = None if code is None else f"{url}/login?code={code}"
    emit({"url": url, "sign_in": link}, as_json, lambda: link or url)
    if link is None and not settings.trusted_proxies:
        say("warning: this is plain HTTP, and tokens can be read on the way: let a reverse proxy speak TLS before it.")
    say("This link signs one browser in, once, within the hour. Ctrl-C ends." if link else "Ctrl-C ends.")
    answer(settings, listening, preload=preload)
