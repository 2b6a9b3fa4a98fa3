"""The short form of bench/chaos: real jobs on real workers, readers over HTTP, kills and faults, then the checker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.chaos.place import PlaceName
from bench.chaos.run import Options, run
from onboard.bases import Base

JOBS, KILLS, FAULTS = 4, 2, 1
OPTIONS = Options(
    jobs=JOBS, kills=KILLS, faults=FAULTS, workers=2, readers=3, pause=0.5, seconds=240.0
)  # where it is given up; half a minute is usual
SEEDS = {"sqlite": 9, "postgres": 9}  # both kill while a job publishes, and break the database


def test_on_the_embedded_default_every_job_is_published_once_whatever_is_killed(
    tmp_path: Path, tiny_base: Base
) -> None:
    require_nothing_lost("sqlite", tmp_path, tiny_base)


@pytest.mark.services
@pytest.mark.usefixtures("postgres", "redis_server")  # it starts its own; without the programs it is skipped
def test_on_postgresql_and_redis_every_job_is_published_once_whatever_is_killed(
    tmp_path: Path, tiny_base: Base
) -> None:
    require_nothing_lost("postgres", tmp_path, tiny_base)


def require_nothing_lost(place: PlaceName, folder: Path, base: Base) -> None:
    document = run(place, replace(OPTIONS, seed=SEEDS[place]), folder / "run", base.folder)
    assert document["violations"] == []
    assert (document["jobs"], document["lost"], document["doubled"]) == (JOBS, 0, 0)
    assert document["versions"] + document["cancelled"] >= JOBS
    assert document["kills"] >= KILLS  # some of the faults are kills, too
    assert sum(document["faults"].values()) == FAULTS
    assert document["reading"]["answers"]["200"] > 0
    assert document["reading"]["embeddings_verified"] >= document["reading"]["versions_seen"] > 0
