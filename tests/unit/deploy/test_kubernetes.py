"""The Kubernetes manifests: by their schemas, and what they say about one another."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from support.deployed import (
    KUBERNETES,
    documented,
    health_command,
    kubernetes,
    kubernetes_of,
    kubernetes_process,
    probed,
)

from onboard.api.serve import GRACE_SECONDS
from workers.plan import DRAIN_SECONDS

WITH_SCHEMA = [
    path
    for path, document in kubernetes().items()
    if "." not in (group := document["apiVersion"].partition("/")[0]) or group == "networking.k8s.io"
]
JOBS = {  # what KEDA makes of its templates
    path: {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"],
        "spec": document["spec"]["jobTargetRef"],
    }
    for path, document in kubernetes_of("ScaledJob").items()
}  # fmt: skip
PODS = {**kubernetes_of("Job"), **kubernetes_of("Deployment"), **JOBS}
DEPLOYMENTS = kubernetes_of("Deployment")
API = "api/deployment.yaml"
WORKERS = [path for path in DEPLOYMENTS if path != API] + [*JOBS]
IN_PLACE_OF_OTHERS = {"gpu-large-jobs"}  # folders that an overlay has instead of another one
SECRET = kubernetes()["secret-example.yaml"]


def exactly(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """The schema of an object with these members and no others."""
    return {
        "type": "object", "properties": required | optional, "required": [*required], "additionalProperties": False,
    }  # fmt: skip


COUNT, TEXT = {"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}
NAMED = exactly({"name": TEXT})
SCALE_DOWN = exactly(
    {
        "stabilizationWindowSeconds": COUNT | {"maximum": 3600},
        "policies": {
            "type": "array", "minItems": 1, "items": exactly(
                {"type": {"enum": ["Pods", "Percent"]}, "value": COUNT, "periodSeconds": COUNT | {"maximum": 1800}}
            ),
        },
    }
)  # fmt: skip
# What KEDA's definitions (keda.sh/v1alpha1) say about the members that are used here; no package has them.
KEDA = {
    "ScaledObject": exactly(
        {
            "scaleTargetRef": NAMED,
            "triggers": {"type": "array", "minItems": 1, "items": exactly(
                {"type": TEXT, "metadata": {"type": "object", "additionalProperties": TEXT}}, authenticationRef=NAMED
            )},
        },
        minReplicaCount=COUNT, maxReplicaCount=COUNT, pollingInterval=COUNT, cooldownPeriod=COUNT,
        advanced=exactly({"horizontalPodAutoscalerConfig": exactly({"behavior": exactly({"scaleDown": SCALE_DOWN})})}),
    ),
    "ScaledJob": exactly(
        {
            "jobTargetRef": {"type": "object", "required": ["template"]},  # by its own schema, as a Job
            "triggers": {"type": "array", "minItems": 1, "items": exactly(
                {"type": TEXT, "metadata": {"type": "object", "additionalProperties": TEXT}}, authenticationRef=NAMED
            )},
        },
        minReplicaCount=COUNT, maxReplicaCount=COUNT, pollingInterval=COUNT, successfulJobsHistoryLimit=COUNT,
        failedJobsHistoryLimit=COUNT, rollout=exactly({"strategy": {"enum": ["default", "gradual"]}}),
        scalingStrategy=exactly({"strategy": {"enum": ["default", "custom", "accurate", "eager"]}}),
    ),
    "TriggerAuthentication": exactly({"secretTargetRef": {"type": "array", "minItems": 1, "items": exactly(
        {"parameter": TEXT, "name": TEXT, "key": TEXT}
    )}}),
}  # fmt: skip
SCALING = [path for kind in KEDA for path in kubernetes_of(kind)]


def pod(path: str) -> dict[str, Any]:
    spec: dict[str, Any] = PODS[path]["spec"]["template"]["spec"]
    return spec


def container(path: str) -> dict[str, Any]:
    (only,) = pod(path)["containers"]
    answer: dict[str, Any] = only
    return answer


def names(kind: str) -> set[str]:
    return {document["metadata"]["name"] for document in kubernetes_of(kind).values()}


@pytest.mark.parametrize("path", [*WITH_SCHEMA, *PODS])
def test_a_manifest_is_what_the_cluster_takes(path: str) -> None:
    document = PODS.get(path) or kubernetes()[path]
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("path", SCALING)
def test_what_is_for_keda_is_what_keda_takes(path: str) -> None:
    document = kubernetes()[path]
    assert document["apiVersion"] == "keda.sh/v1alpha1"
    jsonschema.Draft202012Validator(KEDA[document["kind"]]).validate(document["spec"])


def test_every_manifest_has_a_schema_here() -> None:
    assert {*WITH_SCHEMA, *PODS, *SCALING, *kubernetes_of("Kustomization")} == set(kubernetes())


def test_every_manifest_is_applied_by_the_kustomization_beside_it_but_the_example() -> None:
    for folder in {path.rpartition("/")[0] for path in kubernetes()} - {""}:
        kustomization = kubernetes()[f"{folder}/kustomization.yaml"]
        beside = {path.name for path in (KUBERNETES / folder).glob("*.yaml")} - {"kustomization.yaml"}
        assert set(kustomization["resources"]) == beside
    assert "secret-example.yaml" not in str(
        [document["resources"] for document in kubernetes_of("Kustomization").values()]
    )


def test_no_manifest_says_in_which_namespace_it_lives() -> None:
    assert [path for path, manifest in kubernetes().items() if "namespace" in manifest.get("metadata", {})] == []
    assert [
        path for path, kustomization in kubernetes_of("Kustomization").items() if "namespace" in kustomization
    ] == []


@pytest.mark.parametrize("path", PODS)
def test_a_pod_is_restricted(path: str) -> None:
    assert pod(path)["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container(path)["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod(path)["automountServiceAccountToken"] is False
    assert {mount["mountPath"] for mount in container(path)["volumeMounts"]} == {
        "/run/secrets", "/var/lib/onboard", "/tmp",
    }  # fmt: skip
    assert "memory" in container(path)["resources"]["limits"]


@pytest.mark.parametrize("path", PODS)
def test_a_pod_finds_its_settings_and_its_secrets(path: str) -> None:
    assert [source["configMapRef"]["name"] for source in container(path)["envFrom"]] == [*names("ConfigMap")]
    (secrets,) = [volume["secret"] for volume in pod(path)["volumes"] if "secret" in volume]
    assert secrets["secretName"] == SECRET["metadata"]["name"]
    assert secrets["defaultMode"] == 0o440
    assert {"onboard_database_url", "onboard_broker_url"} <= set(SECRET["stringData"])


@pytest.mark.parametrize("path", WORKERS)
def test_a_worker_has_time_to_leave_and_is_looked_at_as_the_image_says(path: str) -> None:
    assert pod(path)["terminationGracePeriodSeconds"] >= DRAIN_SECONDS + 15
    for probe in ("startupProbe", "livenessProbe"):
        assert container(path)[probe]["exec"]["command"] == health_command()
    assert f"--metrics-port={container(path)['ports'][0]['containerPort']}" in container(path)["args"]
    annotations = PODS[path]["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"prometheus.io/scrape": "true", "prometheus.io/port": "9100"}


def test_the_api_is_asked_for_its_health_has_time_to_leave_and_knows_its_token() -> None:
    paths = {probe: probed(API, probe) for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    (port,) = container(API)["ports"]
    assert {container(API)[probe]["httpGet"]["port"] for probe in paths} == {port["name"]}
    assert container(API)["args"] == ["serve", "--host=0.0.0.0", f"--port={port['containerPort']}"]
    waits = int(container(API)["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod(API)["terminationGracePeriodSeconds"] >= waits + GRACE_SECONDS + 5
    file = kubernetes_process(API).environment["ONBOARD_BOOTSTRAP_TOKEN_FILE"]
    assert file.removeprefix("/run/secrets/") in SECRET["stringData"]
    assert PODS[API]["spec"]["replicas"] >= 2


def test_the_service_finds_the_api_by_its_labels_and_may_ask_it_by_its_name() -> None:
    (service,) = kubernetes_of("Service").values()
    assert service["spec"]["selector"] == PODS[API]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] not in [
        PODS[path]["spec"]["template"]["metadata"]["labels"] for path in PODS if path != API
    ]
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container(API)["ports"][0]["name"]
    (settings,) = kubernetes_of("ConfigMap").values()
    assert service["metadata"]["name"] in settings["data"]["ONBOARD_ALLOWED_HOSTS"].split()


@pytest.mark.parametrize("path", kubernetes_of("PodDisruptionBudget"))
def test_a_disruption_budget_is_that_of_one_deployment_and_lets_nodes_be_drained(path: str) -> None:
    spec = kubernetes()[path]["spec"]
    (deployment,) = [
        document["spec"] for document in DEPLOYMENTS.values() if document["spec"]["selector"] == spec["selector"]
    ]
    assert spec.get("maxUnavailable", 1) >= 1
    assert spec.get("minAvailable", 0) < deployment.get("replicas", 1) or "maxUnavailable" in spec


def test_only_ports_that_pods_have_can_be_connected_to() -> None:
    (policy,) = kubernetes_of("NetworkPolicy").values()
    (rule,) = policy["spec"]["ingress"]
    ports = {port["name"] for path in DEPLOYMENTS for port in container(path)["ports"]}
    assert {port["port"] for port in rule["ports"]} == ports
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    assert all(chosen.items() <= PODS[path]["spec"]["template"]["metadata"]["labels"].items() for path in DEPLOYMENTS)


def test_a_class_of_gpus_has_one_name_everywhere() -> None:
    path = "gpu-large/worker.yaml"
    assert PODS[path]["metadata"]["name"] == "onboard-worker-gpu-large"
    assert "--queue=gpu-large" in container(path)["args"]
    assert "--device=cuda:0" in container(path)["args"]
    assert container(path)["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert pod(path)["nodeSelector"] == {"onboard/gpu-class": "gpu-large"}
    assert PODS[path]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0


@pytest.mark.parametrize("path", kubernetes_of("ScaledObject"))
def test_a_scaler_counts_the_queue_of_a_deployment_that_exists_and_whose_size_is_not_fixed(path: str) -> None:
    spec = kubernetes()[path]["spec"]
    (deployment,) = [
        manifest for manifest in DEPLOYMENTS if PODS[manifest]["metadata"]["name"] == spec["scaleTargetRef"]["name"]
    ]
    assert "replicas" not in PODS[deployment]["spec"]
    assert 0 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "postgresql"
    assert set(trigger["metadata"]) == {"query", "targetQueryValue", "activationTargetQueryValue"}
    (queue,) = [
        argument.partition("=")[2] for argument in container(deployment)["args"] if argument.startswith("--queue=")
    ]
    assert f"queue = '{queue}'" in trigger["metadata"]["query"]
    assert trigger["authenticationRef"]["name"] in names("TriggerAuthentication")


@pytest.mark.parametrize("path", JOBS)
def test_workers_of_a_job_each_are_those_of_the_deployment_but_leave_when_idle(path: str) -> None:
    deployment = path.replace("-jobs/", "/")
    mine, theirs = pod(path), pod(deployment)
    (container,) = mine["containers"]
    assert [argument for argument in container["args"] if argument not in theirs["containers"][0]["args"]] == [
        "--idle-exit=60"
    ]
    container = {**container, "args": theirs["containers"][0]["args"]}
    assert {**mine, "containers": [container]} == {**theirs, "restartPolicy": "Never"}
    assert kubernetes()[path]["metadata"] == PODS[deployment]["metadata"]
    labels = [PODS[manifest]["spec"]["template"]["metadata"]["labels"] for manifest in (path, deployment)]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("path", JOBS)
def test_a_job_for_each_waiting_job_scales_to_zero_by_the_same_query_and_is_never_stopped(path: str) -> None:
    spec = kubernetes()[path]["spec"]
    scaler = kubernetes()["keda/gpu-large.yaml"]["spec"]
    assert spec["triggers"] == scaler["triggers"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, scaler["maxReplicaCount"])
    assert spec["scalingStrategy"] == {"strategy": "default"}  # it subtracts the running ones, which the query counts
    assert spec["rollout"] == {"strategy": "gradual"}  # the other one ends running workers
    assert spec["jobTargetRef"]["backoffLimit"] == 0


def test_the_documented_query_is_that_of_the_scalers() -> None:
    page = (KUBERNETES.parents[1] / "docs" / "how-to" / "deploy.md").read_text()
    (trigger,) = kubernetes()["keda/cpu.yaml"]["spec"]["triggers"]
    assert trigger["metadata"]["query"].strip() in " ".join(page.split())


def test_keda_connects_with_the_secret_of_the_workers() -> None:
    (document,) = kubernetes_of("TriggerAuthentication").values()
    (reference,) = document["spec"]["secretTargetRef"]
    assert reference == {"parameter": "connection", "name": SECRET["metadata"]["name"], "key": "onboard_database_url"}
    assert reference["key"] in SECRET["stringData"]


def test_the_documented_overlay_applies_every_folder_and_patches_what_exists() -> None:
    overlay = yaml.safe_load(documented("# overlay/kustomization.yaml"))
    folders = {path.rpartition("/")[0] for path in kubernetes()} - {""} - IN_PLACE_OF_OTHERS
    assert set(overlay["resources"]) == {f"../onboard/deploy/kubernetes/{folder}" for folder in folders}
    assert [image["name"] for image in overlay["images"]] == [*{container(path)["image"] for path in PODS}]
    (patch,) = overlay["patches"]
    (settings,) = kubernetes_of(patch["target"]["kind"]).values()
    (operation,) = yaml.safe_load(patch["patch"])
    assert settings["metadata"]["name"] == patch["target"]["name"]
    assert operation["path"].removeprefix("/data/") in settings["data"]


def test_the_documented_commands_make_another_class_of_gpus_beside_the_first(tmp_path: Path) -> None:
    copy = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    subprocess.run(["sh", "-ec", documented("cp -r gpu-large")], cwd=copy, check=True)
    for first in ("gpu-large/worker.yaml", "gpu-large/kustomization.yaml", "keda/gpu-large.yaml"):
        second = (copy / first.replace("gpu-large", "gpu-small")).read_text()
        assert second == (copy / first).read_text().replace("gpu-large", "gpu-small")
    scalers = yaml.safe_load((copy / "keda" / "kustomization.yaml").read_text())["resources"]
    assert {"gpu-large.yaml", "gpu-small.yaml"} <= set(scalers)
