"""Pictures of the pages, for the README and the documentation: of a service that learns the example datasets just now.

    python -m bench.pictures

A server and a worker are started with the base that ships. One of the examples is learned; the overview is taken while
a worker looks for the start of the second one, and a third one waits. Needs Debian's Chromium, and a minute or two.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PIL import Image

from bench.harness.browser import chromium, opened
from bench.harness.command import CHECKOUT
from bench.harness.programs import PROGRAM, answer, environment_of
from bench.harness.server import serving
from onboard.domain.access import ALL_SCOPES
from onboard.domain.job import Job, JobState, Stage
from onboard.jobs.control import find_job
from onboard.operations.access import create_token
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER: Final = CHECKOUT / "docs" / "images"
_EXAMPLES: Final = CHECKOUT / "examples"
_COLOURS: Final = 96
_PATIENCE_MS: Final = 120_000.0
_PATIENCE_SECONDS: Final = 3600.0
_SCREEN: Final = {"width": 1360, "height": 850}
_PHONE: Final = {"width": 390, "height": 844}
_ZONE: Final = {"timezone_id": "Europe/Berlin", "locale": "en-GB"}


def main(arguments: list[str] | None = None) -> int:
    """Take the pictures."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        settings = Settings(home=Path(made) / "home", device="cpu")
        with closing(open_services(settings)) as services, serving(settings, Path(made) / "server.log") as server:
            token = create_token(services.database, "ops", list(ALL_SCOPES))[1]
            with working(settings, Path(made) / "worker.log"), chromium() as browser:
                take_all(services, browser, server.url, token, folder)
    return 0


def take_all(services: Services, browser: Browser, url: str, token: str, folder: Path) -> None:
    """Submit, and take each picture when there is something to see."""
    submit(services.settings, "reviews", "--init", "sst2", "--tune-hypernetwork", "never")
    for name in ("tickets", "paws"):
        submit(services.settings, name)
    wide = opened(browser, url, token, _PATIENCE_MS, viewport=_SCREEN, color_scheme="light", **_ZONE)
    dark = opened(browser, url, token, _PATIENCE_MS, viewport=_SCREEN, color_scheme="dark", **_ZONE)
    phone = opened(browser, url, token, _PATIENCE_MS, viewport=_PHONE, color_scheme="light", **_ZONE)
    until(services, "tickets", lambda job: job.stage in (Stage.PROBE, Stage.TRAIN) or job.state.finished)
    take(wide, "/", folder / "overview.png")
    take(dark, "/", folder / "overview-dark.png")
    take(phone, "/jobs/tickets", folder / "job-phone.png")
    take(wide, "/jobs/reviews", folder / "job.png")
    take(dark, "/tasks/reviews", folder / "task-dark.png")
    take(wide, "/map", folder / "map.png")


@contextmanager
def working(settings: Settings, log: Path) -> Iterator[None]:
    """A worker, until the end of the block."""
    command = [PROGRAM, "worker", "--name", "worker-1"]
    with log.open("wb") as written:
        worker = subprocess.Popen(command, env=environment_of(settings), stdout=written, stderr=written)
        try:
            yield
        finally:
            worker.kill()
            worker.wait()


def submit(settings: Settings, name: str, *options: str) -> dict[str, Any]:
    """One of the examples, as a submitter does it."""
    words = ["submit", "--dataset", str(_EXAMPLES / f"{name}.jsonl"), "--test", str(_EXAMPLES / f"{name}-test.jsonl")]
    return answer([*words, "--task", name, *options], environment_of(settings))


def until(services: Services, task: str, reached: Any) -> Job:
    """The newest job of the task, once it has come so far. Raises RuntimeError when it failed, or took too long."""
    begun = time.monotonic()
    while time.monotonic() - begun < _PATIENCE_SECONDS:
        job = find_job(services.database, task)
        if job.state in (JobState.FAILED, JobState.DEAD):
            raise RuntimeError(f"{task}: {job.error}")
        if reached(job):
            return job
        time.sleep(0.5)
    raise RuntimeError(f"{task} took too long")


def take(page: Page, place: str, path: Path) -> None:
    """The part of a page that the reader sees before he scrolls, with as many colours as it needs."""
    page.goto(place)
    page.wait_for_timeout(1500)  # until times stand in the reader's zone and live parts have loaded
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(_COLOURS)
    picture.save(path, optimize=True)
    print(f"{path}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
