"""The compose file: by its schema, and what makes a service survive the night."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml
from support.deployed import ROOT, compose, compose_process, dockerfile, make_secrets, seconds

from onboard.api.serve import GRACE_SECONDS
from onboard.domain.access import require_given_token
from workers.plan import DRAIN_SECONDS

WORKERS = ("worker-cpu", "worker-gpu")
LASTING = ("postgres", "redis", "api", *WORKERS)
OURS = ("migrate", "onboard", "api", *WORKERS)


def services() -> dict[str, Any]:
    by_name: dict[str, Any] = compose()["services"]
    return by_name


def test_the_file_is_a_compose_file() -> None:
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8"))).validate(document)


def test_all_services_are_looked_at_here() -> None:
    assert set(services()) == {*LASTING, *OURS}


@pytest.mark.parametrize("service", LASTING)
def test_what_lasts_is_started_again_and_has_a_health_check(service: str) -> None:
    described = services()[service]
    assert described["restart"] == "unless-stopped"
    if service in WORKERS:
        assert "healthcheck" not in described  # the image's
        assert compose_process(service).health
    else:
        assert described["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


@pytest.mark.parametrize("service", ["migrate", "onboard"])
def test_what_ends_by_itself_has_no_health_check_and_is_not_started_again(service: str) -> None:
    assert services()[service]["healthcheck"] == {"disable": True}
    assert services()[service].get("restart", "no") == "no"


@pytest.mark.parametrize("service", WORKERS)
def test_workers_wait_for_the_schema_and_have_time_to_leave(service: str) -> None:
    worker = services()[service]
    assert worker["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert worker["depends_on"]["redis"] == {"condition": "service_healthy"}
    assert services()["migrate"]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert seconds(worker["stop_grace_period"]) >= DRAIN_SECONDS + 15
    assert worker["profiles"] == [service.removeprefix("worker-")]


def test_the_api_answers_this_machine_alone_and_knows_its_token_and_its_name() -> None:
    api = services()["api"]
    assert api["ports"] == ["127.0.0.1:8000:8000"]
    assert api["command"] == ["serve", "--host=0.0.0.0", "--port=8000"]
    environment = api["environment"]
    assert environment["ONBOARD_BOOTSTRAP_TOKEN_FILE"] == f"/run/secrets/{api['secrets'][-1]}"
    assert "api" in environment["ONBOARD_ALLOWED_HOSTS"].split()
    assert environment.keys() > services()["worker-cpu"]["environment"].keys()
    assert api["depends_on"] == services()["worker-cpu"]["depends_on"]
    assert seconds(api["stop_grace_period"]) >= GRACE_SECONDS + 5
    assert api["healthcheck"]["test"][:3] == ["CMD", "python", "-c"]
    compile(api["healthcheck"]["test"][3], "health", "exec")
    assert "http://127.0.0.1:8000/readyz" in api["healthcheck"]["test"][3]


@pytest.mark.parametrize("service", OURS)
def test_our_containers_may_do_little(service: str) -> None:
    described = services()[service]
    assert described["read_only"] is True
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]
    assert described["tmpfs"] == ["/tmp"]
    assert "user" not in described  # the image's


def test_the_gpu_worker_reserves_a_gpu_and_works_on_it() -> None:
    worker = services()["worker-gpu"]
    (device,) = worker["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "device_ids": ["0"], "capabilities": ["gpu"]}
    assert "--device=cuda:0" in worker["command"]
    assert "deploy" not in services()["worker-cpu"]


def test_the_gpu_worker_differs_in_its_device_alone() -> None:
    words = {service: compose_process(service).words for service in WORKERS}
    assert [word for word in words["worker-gpu"] if word not in words["worker-cpu"]] == ["--device=cuda:0"]
    assert len(words["worker-gpu"]) == len(words["worker-cpu"])


def test_redis_keeps_an_append_only_file_on_a_volume() -> None:
    redis = services()["redis"]
    assert redis["command"][redis["command"].index("--appendonly") + 1] == "yes"
    assert redis["volumes"] == ["redis:/data"]


def test_one_service_builds_the_image_that_all_of_ours_run() -> None:
    assert [name for name, service in services().items() if "build" in service] == ["migrate"]
    assert {services()[name]["image"] for name in OURS} == {"onboard"}
    arguments = services()["migrate"]["build"]["args"]
    assert {"TORCH_INDEX", "TORCH_SHA256", "PYTHON_IMAGE"} == arguments.keys()
    for argument, value in arguments.items():
        assert ("ARG", f'{argument}="{value or ""}"') in dockerfile()


def test_secrets_are_files_outside_and_databases_are_not_to_be_reached_from_outside() -> None:
    document = compose()
    assert {name: set(secret) for name, secret in document["secrets"].items()} == {
        "postgres_password": {"file"},
        "redis_conf": {"file"},
        "onboard_database_url": {"file"},
        "onboard_broker_url": {"file"},
        "onboard_bootstrap_token": {"file"},
    }
    text = (ROOT / "docker-compose.yml").read_text()
    assert all(f"file: ${{ONBOARD_SECRETS:-./secrets}}/{name}" in text for name in document["secrets"])
    assert "secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    for service in OURS:
        of_the_api = ["onboard_bootstrap_token"] if service == "api" else []
        assert services()[service]["secrets"] == ["onboard_database_url", "onboard_broker_url", *of_the_api]
        assert not {"ONBOARD_DATABASE_URL", "ONBOARD_BROKER_URL"} & set(services()[service]["environment"])
    for service in ("postgres", "redis"):
        assert services()[service]["networks"] == ["data"]
        assert "ports" not in services()[service]
    assert document["networks"]["data"] == {"internal": True}


def test_the_documented_commands_make_the_secrets_and_they_fit_one_another_and_the_services(tmp_path: Path) -> None:
    folder = make_secrets(tmp_path)
    assert {path.name for path in folder.iterdir()} == set(compose()["secrets"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    said = {path.name: path.read_text().strip() for path in folder.iterdir()}
    postgres = services()["postgres"]["environment"]
    database = urlsplit(said["onboard_database_url"])
    assert (database.username, database.path) == (postgres["POSTGRES_USER"], "/" + postgres["POSTGRES_DB"])
    assert database.password == said["postgres_password"]
    broker = urlsplit(said["onboard_broker_url"])
    assert said["redis_conf"] == f"requirepass {broker.password}"
    assert len({database.password, broker.password}) == 2
    assert {database.hostname, broker.hostname} <= set(services())
    assert require_given_token(said["onboard_bootstrap_token"], "the documented command")
