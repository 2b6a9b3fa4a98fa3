"""Jobs of a few steps on the tiny base, deployments of both sizes for real workers, services to be backed up."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.carried import LABELS
from support.environment import forget_settings
from support.few_steps import learn_in_few_steps
from support.lively_service import Empty, fill, server_settings
from support.opposed import learn_rivals
from support.program import Place
from support.published import add_version, embedding_of
from support.real_jobs import Desk
from support.real_services import PostgresServer
from support.real_workers import Deployment
from support.served_past import Remote, served_with_a_past
from support.tuned_jobs import tune_gently

from onboard.bases import Base
from onboard.contract.report import ProvisionalFacts
from onboard.domain.job import JobSpec
from onboard.domain.task import EmbeddingVersion
from onboard.hypernetworks.register import register_base
from onboard.pipeline import provisional
from onboard.pipeline import run as pipeline
from onboard.pipeline import train as training
from onboard.registry.schema import upgrade
from onboard.registry.services import Services, open_services
from onboard.settings import Settings
from onboard.train.fewshot import Trained
from onboard.train.learning import Learned

_PROVISIONAL = JobSpec.provisional  # tests of few steps change it


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, one for all tests of a file."""
    from support import chromium

    chromium.require()
    with chromium.chromium() as opened:
        yield opened


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Deployment]:
    """SQLite and a folder of bells."""
    with Deployment(Settings(home=tmp_path / "home"), tmp_path) as deployment:
        yield deployment


@pytest.fixture
def grown(tmp_path: Path, postgres_url: str, redis_url: str) -> Iterator[Deployment]:
    """PostgreSQL and Redis."""
    settings = Settings(home=tmp_path / "home", database_url=postgres_url, broker_url=redis_url)
    with Deployment(settings, tmp_path) as deployment:
        yield deployment


@pytest.fixture(params=["embedded", pytest.param("grown", marks=pytest.mark.services)])
def deployment(request: pytest.FixtureRequest) -> Deployment:
    """Either of them."""
    deployment: Deployment = request.getfixturevalue(request.param)
    return deployment


@pytest.fixture(scope="module", params=["embedded", pytest.param("grown", marks=pytest.mark.services)])
def steady(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Either of them with one worker, for all tests of a file that leave it running; an idle one computes, too."""
    folder = tmp_path_factory.mktemp("steady")
    settings = Settings(home=folder / "home")
    if request.param == "grown":
        url = request.getfixturevalue("postgres").create(f"steady_{uuid.uuid4().hex}")  # made again for other files
        upgrade(url)
        broker = request.getfixturevalue("redis_server").url.removesuffix("/0") + "/1"
        settings = Settings(home=folder / "home", database_url=url, broker_url=broker)
    with Deployment(settings, folder) as deployment:
        deployment.start_worker()
        yield deployment


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Iterator[Remote]:
    """A served home with a past, one for all tests of a file: they change it."""
    with served_with_a_past(Place(tmp_path_factory.mktemp("served"), tiny_base.folder), tiny_base) as opened:
        yield opened


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is learned does not matter here, how often and in which order does; nor does a provisional version."""
    learn_in_few_steps(monkeypatch)


@pytest.fixture
def desk(tiny_services: Services, tmp_path: Path, few_steps: None) -> Desk:
    return Desk(tiny_services, tmp_path)


@pytest.fixture
def in_two_steps(few_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs publish provisional versions too, as services do."""
    monkeypatch.setattr(JobSpec, "provisional", _PROVISIONAL)


@pytest.fixture
def rows_say(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the rows that were left out say this of the two versions."""

    def say(*, better: bool) -> None:
        def decided(*arguments: Any) -> ProvisionalFacts:
            return provisional.compared(*arguments).model_copy(update={"confirmed": not better})

        monkeypatch.setattr(pipeline, "compared", decided)

    return say


@pytest.fixture
def without(tmp_path: Path, tiny_base: Base, few_steps: None) -> Iterator[Desk]:
    """A second home, in which the task never was."""
    folder = tmp_path / "without"
    folder.mkdir()
    services = open_services(Settings(home=folder / "home", base=str(tiny_base.folder), device="cpu"))
    register_base(services, tiny_base)
    yield Desk(services, folder)
    services.close()


@pytest.fixture
def trained_as(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the training come out with this embedding, and nothing answer beside it."""
    return partial(train_as, monkeypatch)


def train_as(monkeypatch: pytest.MonkeyPatch, z: np.ndarray) -> None:
    monkeypatch.setattr(JobSpec, "readout", "never")
    learned = Learned(Trained(z, (0.5,), (1.0,), 0.0))
    monkeypatch.setattr(training, "learn", lambda *arguments, **named: learned)


@pytest.fixture(scope="session")
def _home_of_rivals(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Path:
    """A home in which the two versions were learned, once for the whole run."""
    folder = tmp_path_factory.mktemp("rivals")
    with pytest.MonkeyPatch.context() as monkeypatch:
        forget_settings(monkeypatch, folder)
        learn_in_few_steps(monkeypatch)
        settings = Settings(home=folder / "home", base=str(tiny_base.folder), device="cpu")
        with closing(open_services(settings)) as services:
            register_base(services, tiny_base)
            learn_rivals(Desk(services, folder), tiny_base, partial(train_as, monkeypatch))
    return folder / "home"


@pytest.fixture
def rivals(desk: Desk, _home_of_rivals: Path) -> Desk:
    """mood@v1 answers all 40 test rows right, mood@v2 at most 22 of them."""
    home = desk.services.settings.resolved_home
    desk.services.database.dispose()
    for file in home.glob("onboard.db*"):
        file.unlink()
    shutil.copytree(_home_of_rivals, home, dirs_exist_ok=True)
    return desk


@pytest.fixture
def version(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    """mood@v1, without a job."""
    return add_version(tiny_services, tiny_base, "mood", (1, 2), ("good", "bad"), z=embedding_of(3))


@pytest.fixture
def mood(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    """mood@v1, whose dataset is not here."""
    return add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(3))


@pytest.fixture
def lively(tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch) -> Services:
    """A service with versions of two tasks, aliases moved, jobs in several states, a paused queue and a worker."""
    monkeypatch.setattr("onboard.operations.backup.make.ROWS", 3)  # so that tables have several parts
    fill(tiny_services, tiny_base)
    return tiny_services


@pytest.fixture
def empty_home(tmp_path: Path, tiny_base: Base) -> Empty:
    """A home to restore into."""
    return Empty(Settings(home=tmp_path / "new", base=str(tiny_base.folder), device="cpu"))


@pytest.fixture
def empty_server(tmp_path: Path, tiny_base: Base, postgres: PostgresServer) -> Empty:
    """A database of a PostgreSQL server without any table, and a new folder of artifacts."""
    return Empty(server_settings(tmp_path, tiny_base, postgres.create(f"restored_{uuid.uuid4().hex}"), "server"))


@pytest.fixture
def gently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tunings that no task can notice."""
    tune_gently(monkeypatch)
