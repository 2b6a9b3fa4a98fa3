"""The Helm chart: linted and rendered by Helm, its objects by their schemas, and what they say about one another."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from support.deployed import (
    CHART,
    GPUS_WITHOUT_KEDA,
    ROOT,
    chart,
    chart_of,
    documented,
    health_command,
    helm,
    kubernetes_process,
)

from onboard import __version__
from onboard.api.serve import GRACE_SECONDS
from onboard.domain.job import LEASE_SECONDS
from onboard.domain.names import NAME_PATTERN
from workers.plan import DRAIN_SECONDS

EVERYTHING = """
image: {digest: "sha256:%s", pullSecrets: [{name: registry}]}
serviceAccount: {create: true, annotations: {role: onboard}}
extraVolumes: [{name: base, persistentVolumeClaim: {claimName: base}}]
extraVolumeMounts: [{name: base, mountPath: /base, readOnly: true}]
api:
  allowedHosts: [onboard.other]
  nodeSelector: {zone: a}
  tolerations: [{key: api, operator: Exists}]
  affinity: &affinity
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}
ingress: {enabled: true, className: nginx, host: onboard.example, tlsSecret: tls, annotations: {a: b}}
workers:
  cpu: {nodeSelector: {zone: a}, tolerations: [{key: cpu, operator: Exists}], affinity: *affinity}
  gpu:
    classes:
      - {name: gpu-large, maxReplicas: 2, nodeSelector: {gpu: h200}}
      - {name: gpu-small, maxReplicas: 4, resources: {limits: {memory: 8Gi, nvidia.com/gpu: 1}}}
keda: {enabled: true}
networkPolicy: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
""" % ("0" * 64)
DOCUMENTED = documented("# values.yaml")
RELEASES = {
    "defaults": "", "documented": DOCUMENTED, "without KEDA": GPUS_WITHOUT_KEDA, "everything": EVERYTHING,
}  # fmt: skip
OBJECTS = {
    f"{release}: {name}": document for release, values in RELEASES.items() for name, document in chart(values).items()
}
JOBS = {  # what KEDA makes of its templates
    key: {"apiVersion": "batch/v1", "kind": "Job", "metadata": document["metadata"],
          "spec": document["spec"]["jobTargetRef"]}
    for key, document in OBJECTS.items() if document["kind"] == "ScaledJob"
}  # fmt: skip
DEPLOYMENTS = {key: document for key, document in OBJECTS.items() if document["kind"] == "Deployment"}
MIGRATIONS = {key: document for key, document in OBJECTS.items() if document["kind"] == "Job"}
PODS = {**DEPLOYMENTS, **JOBS, **MIGRATIONS}
WORKERS = [key for key in [*DEPLOYMENTS, *JOBS] if "worker" in key]
APIS = [key for key in DEPLOYMENTS if key.endswith("/onboard-api")]
API, CPU, GPU = "Deployment/onboard-api", "Deployment/onboard-worker-cpu", "onboard-worker-gpu-large"
SECRET = yaml.safe_load((CHART.parent / "secret-example.yaml").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


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
# What the definitions of KEDA and of the Prometheus operator say about the members that are used here; no package has
# them.
DEFINED = {
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
    "ServiceMonitor": exactly(
        {
            "selector": exactly({"matchLabels": {"type": "object", "additionalProperties": TEXT}}),
            "endpoints": {"type": "array", "minItems": 1, "items": exactly(
                {"port": TEXT}, path={"type": "string", "pattern": "^/"},
                interval={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
            )},
        }
    ),
    "TriggerAuthentication": exactly({"secretTargetRef": {"type": "array", "minItems": 1, "items": exactly(
        {"parameter": TEXT, "name": TEXT, "key": TEXT}
    )}}),
}  # fmt: skip


def of_kind(*kinds: str) -> list[str]:
    return [key for key, document in OBJECTS.items() if document["kind"] in kinds]


def rendered_with(key: str) -> dict[str, dict[str, Any]]:
    """All objects of the same release."""
    return chart(RELEASES[key.partition(": ")[0]])


def pod(document: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = document["spec"]["template"]["spec"]
    return spec


def container(document: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod(document)["containers"]
    answer: dict[str, Any] = only
    return answer


def labels(document: dict[str, Any]) -> dict[str, str]:
    answer: dict[str, str] = document["spec"]["template"]["metadata"]["labels"]
    return answer


def chosen(key: str, selector: dict[str, str]) -> set[str]:
    """The pods of the release that have these labels, by the objects that start them."""
    release = key.partition(": ")[0] + ": "
    return {
        name.removeprefix(release)
        for name, document in PODS.items()
        if name.startswith(release) and selector.items() <= labels(document).items()
    }


def refused(values: str) -> str:
    done = helm("template", "onboard", str(CHART), "--values", "-", values=values)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_helm_finds_nothing_to_complain_about(release: str) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", "-", values=RELEASES[release])
    assert done.returncode == 0, done.stdout


def test_the_chart_is_that_of_this_release() -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert described["version"] == described["appVersion"] == __version__
    assert {container(document)["image"] for document in chart_of("Deployment").values()} == {f"onboard:{__version__}"}


@pytest.mark.parametrize("key", [key for key in OBJECTS if OBJECTS[key]["kind"] not in DEFINED] + [*JOBS])
def test_an_object_is_what_the_cluster_takes(key: str) -> None:
    kubernetes_validate.validate(PODS.get(key) or OBJECTS[key], kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("key", of_kind(*DEFINED))
def test_what_is_for_keda_or_prometheus_is_what_they_take(key: str) -> None:
    document = OBJECTS[key]
    group = "monitoring.coreos.com/v1" if document["kind"] == "ServiceMonitor" else "keda.sh/v1alpha1"
    assert document["apiVersion"] == group
    jsonschema.Draft202012Validator(DEFINED[document["kind"]]).validate(document["spec"])


def test_the_example_of_a_secret_is_one() -> None:
    kubernetes_validate.validate(SECRET, kubernetes_validate.latest_version(), strict=True)
    assert SECRET["metadata"]["name"] == VALUES["secret"]


@pytest.mark.parametrize("key", OBJECTS)
def test_an_object_has_the_labels_of_its_release_and_no_namespace(key: str) -> None:
    metadata = OBJECTS[key]["metadata"]
    assert metadata["labels"]["app.kubernetes.io/name"] == "onboard"
    assert metadata["labels"]["app.kubernetes.io/instance"] == "onboard"
    assert "namespace" not in metadata
    assert len(metadata["name"]) <= 63


def test_two_releases_in_one_namespace_share_nothing() -> None:
    done = helm("template", "second", str(CHART), "--values", "-", values=EVERYTHING)
    second = {f"{each['kind']}/{each['metadata']['name']}" for each in yaml.safe_load_all(done.stdout)}
    assert second & set(chart(EVERYTHING)) == set()
    assert "instance: onboard" not in done.stdout


@pytest.mark.parametrize("key", PODS)
def test_a_pod_is_restricted(key: str) -> None:
    assert pod(PODS[key])["securityContext"] == {
        "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    assert container(PODS[key])["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod(PODS[key])["automountServiceAccountToken"] is False
    places = {mount["mountPath"] for mount in container(PODS[key])["volumeMounts"]}
    assert places - {"/base"} == {"/run/secrets", "/var/lib/onboard", "/tmp"}
    assert ("/base" in places) is key.startswith("everything")
    assert "memory" in container(PODS[key])["resources"]["limits"]


@pytest.mark.parametrize("key", PODS)
def test_a_pod_finds_its_settings_its_secrets_and_its_service_account(key: str) -> None:
    assert [source["configMapRef"]["name"] for source in container(PODS[key])["envFrom"]] == ["onboard"]
    assert "ConfigMap/onboard" in rendered_with(key)
    (secrets,) = [volume["secret"] for volume in pod(PODS[key])["volumes"] if "secret" in volume]
    assert secrets == {"secretName": SECRET["metadata"]["name"], "defaultMode": 0o440}
    assert {"onboard_database_url", "onboard_broker_url"} <= set(SECRET["stringData"])
    account = pod(PODS[key])["serviceAccountName"]
    assert account == "default" or f"ServiceAccount/{account}" in rendered_with(key)
    credentials = VALUES["settings"]["AWS_SHARED_CREDENTIALS_FILE"]
    assert credentials.removeprefix("/run/secrets/") in SECRET["stringData"]


def test_an_image_is_named_by_its_digest_where_there_is_one_and_its_registry_knows_us() -> None:
    for document in chart_of("Deployment", EVERYTHING).values():
        assert container(document)["image"] == f"onboard@sha256:{'0' * 64}"
        assert pod(document)["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.parametrize("key", WORKERS)
def test_a_worker_has_time_to_leave_and_is_looked_at_as_the_image_says(key: str) -> None:
    worker = PODS[key]
    assert DRAIN_SECONDS + 15 <= pod(worker)["terminationGracePeriodSeconds"] < LEASE_SECONDS
    for probe in ("startupProbe", "livenessProbe"):
        assert container(worker)[probe]["exec"]["command"] == health_command()
    assert f"--metrics-port={container(worker)['ports'][0]['containerPort']}" in container(worker)["args"]
    annotations = worker["spec"]["template"]["metadata"]["annotations"]
    scraped = {name for name in annotations if name.startswith("prometheus.io/")}
    assert scraped == (
        set() if "ServiceMonitor/onboard" in rendered_with(key) else {"prometheus.io/scrape", "prometheus.io/port"}
    )
    assert annotations.get("prometheus.io/port", "9100") == "9100"


def test_a_grace_that_is_too_short_is_refused() -> None:
    assert SCHEMA["properties"]["workers"]["properties"]["terminationGraceSeconds"]["minimum"] == DRAIN_SECONDS + 15
    assert "terminationGraceSeconds" in refused("workers: {terminationGraceSeconds: 30}")


@pytest.mark.parametrize("key", APIS)
def test_the_api_is_asked_for_its_health_has_time_to_leave_and_knows_its_token(key: str) -> None:
    api = PODS[key]
    paths = {
        probe: container(api)[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    (port,) = container(api)["ports"]
    assert {container(api)[probe]["httpGet"]["port"] for probe in paths} == {port["name"]}
    assert container(api)["args"] == ["serve", "--host=0.0.0.0", f"--port={port['containerPort']}"]
    waits = int(container(api)["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod(api)["terminationGracePeriodSeconds"] >= waits + GRACE_SECONDS + 5
    file = kubernetes_process(API).environment["ONBOARD_BOOTSTRAP_TOKEN_FILE"]
    assert file.removeprefix("/run/secrets/") in SECRET["stringData"]
    assert api["spec"]["replicas"] >= 2


@pytest.mark.parametrize("key", APIS)
def test_the_service_finds_the_api_alone_and_may_ask_it_by_its_names(key: str) -> None:
    service = rendered_with(key)["Service/onboard-api"]
    assert chosen(key, service["spec"]["selector"]) == {API}
    (port,) = service["spec"]["ports"]
    assert port["targetPort"] == container(PODS[key])["ports"][0]["name"]
    hosts = rendered_with(key)["ConfigMap/onboard"]["data"]["ONBOARD_ALLOWED_HOSTS"].split()
    assert hosts[0] == service["metadata"]["name"]
    if "Ingress/onboard-api" in rendered_with(key):
        (rule,) = rendered_with(key)["Ingress/onboard-api"]["spec"]["rules"]
        (path,) = rule["http"]["paths"]
        assert path["backend"]["service"] == {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
        assert rule["host"] in hosts


def test_a_changed_setting_restarts_the_processes_that_read_it() -> None:
    before, after = (chart_of("Deployment", f"settings: {{ONBOARD_BASE: {base}}}") for base in ("mini", "ours"))
    for name in before:
        sums = [
            each[name]["spec"]["template"]["metadata"]["annotations"]["checksum/settings"] for each in (before, after)
        ]
        assert len({*sums}) == 2


def test_the_migration_runs_once_for_each_image() -> None:
    (now,), (again,), (next_one,) = (
        chart_of("Job", values) for values in ("", "api: {replicas: 3}", 'image: {tag: "0.2.0"}')
    )
    assert now == again != next_one


@pytest.mark.parametrize("key", of_kind("PodDisruptionBudget"))
def test_a_disruption_budget_is_that_of_one_deployment_and_lets_nodes_be_drained(key: str) -> None:
    spec = OBJECTS[key]["spec"]
    (name,) = chosen(key, spec["selector"]["matchLabels"])
    deployment = rendered_with(key)[name]
    assert deployment["spec"]["selector"] == spec["selector"]
    assert spec.get("maxUnavailable", 1) >= 1
    assert spec.get("minAvailable", 0) < deployment["spec"].get("replicas", 1) or "maxUnavailable" in spec


def test_every_deployment_has_a_budget_but_an_api_of_one_replica() -> None:
    for values in RELEASES.values():
        names = [
            {name.partition("/")[2] for name in chart_of(kind, values)}
            for kind in ("Deployment", "PodDisruptionBudget")
        ]
        assert names[0] == names[1]
    assert "PodDisruptionBudget/onboard-api" not in chart("api: {replicas: 1}")


@pytest.mark.parametrize("release", RELEASES)
def test_only_the_api_and_the_metrics_can_be_connected_to(release: str) -> None:
    policies = chart_of("NetworkPolicy", RELEASES[release])
    everybody = policies["NetworkPolicy/onboard"]["spec"]
    key = f"{release}: "
    workers = {name for name in chosen(key, {}) if "worker" in name}
    assert "ingress" not in everybody
    assert chosen(key, everybody["podSelector"]["matchLabels"]) == chosen(key, {}) > {API, *workers}
    for name, port, pods in (("onboard-api", "http", {API}), ("onboard-metrics", "metrics", workers)):
        spec = policies[f"NetworkPolicy/{name}"]["spec"]
        assert chosen(key, spec["podSelector"]["matchLabels"]) == pods
        (rule,) = spec["ingress"]
        assert rule == {"from": [{"namespaceSelector": {}}], "ports": [{"protocol": "TCP", "port": port}]}
        assert {container(PODS[key + each])["ports"][0]["name"] for each in pods} == {port}


def test_outgoing_connections_are_those_of_the_values_and_dns() -> None:
    spec = chart(EVERYTHING)["NetworkPolicy/onboard"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    dns, ours = spec["egress"]
    assert {(port["protocol"], port["port"]) for port in dns["ports"]} == {("UDP", 53), ("TCP", 53)}
    assert ours == {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}
    assert chart()["NetworkPolicy/onboard"]["spec"]["policyTypes"] == ["Ingress"]
    assert chart_of("NetworkPolicy", "networkPolicy: {enabled: false}") == {}


@pytest.mark.parametrize("key", of_kind("ServiceMonitor"))
def test_prometheus_finds_the_metrics_of_every_worker(key: str) -> None:
    monitor, service = OBJECTS[key], rendered_with(key)["Service/onboard-metrics"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    others = [each for name, each in rendered_with(key).items() if name == "Service/onboard-api"]
    assert not any(
        monitor["spec"]["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items() for each in others
    )
    (endpoint,), (port,) = monitor["spec"]["endpoints"], service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    assert chosen(key, service["spec"]["selector"]) == {name for name in chosen(key, {}) if "worker" in name}
    assert (monitor["metadata"]["labels"].get("release") == "prometheus") is key.startswith("everything")


@pytest.mark.parametrize("key", [key for key in DEPLOYMENTS if key.endswith((API, CPU))])
def test_a_pod_of_the_previous_image_stays_until_its_successor_works(key: str) -> None:
    assert DEPLOYMENTS[key]["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert {"startupProbe"} <= container(DEPLOYMENTS[key]).keys()  # a worker without a readiness probe is ready with it


def test_a_class_of_gpus_has_one_name_everywhere() -> None:
    worker = chart(GPUS_WITHOUT_KEDA)[f"Deployment/{GPU}"]
    assert "--queue=gpu-large" in container(worker)["args"]
    assert "--device=cuda:0" in container(worker)["args"]
    assert container(worker)["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert pod(worker)["nodeSelector"] == {"onboard/gpu-class": "gpu-large"}
    assert worker["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0


def test_classes_of_gpus_stand_beside_one_another_with_their_own_nodes_and_sizes() -> None:
    large, small = (
        chart_of("ScaledJob", EVERYTHING)[f"ScaledJob/onboard-worker-gpu-{size}"] for size in ("large", "small")
    )
    nodes = [each["spec"]["jobTargetRef"]["template"]["spec"]["nodeSelector"] for each in (large, small)]
    assert nodes == [{"gpu": "h200"}, {"onboard/gpu-class": "gpu-small"}]
    sizes = [
        container(each["spec"]["jobTargetRef"] | {"spec": each["spec"]["jobTargetRef"]})["resources"]
        for each in (large, small)
    ]
    assert sizes == [VALUES["workers"]["gpu"]["resources"], {"limits": {"memory": "8Gi", "nvidia.com/gpu": 1}}]
    assert (large["spec"]["maxReplicaCount"], small["spec"]["maxReplicaCount"]) == (2, 4)


@pytest.mark.parametrize("key", of_kind("ScaledObject", "ScaledJob"))
def test_a_scaler_counts_the_queue_of_its_workers(key: str) -> None:
    spec = OBJECTS[key]["spec"]
    assert 0 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
    (trigger,) = spec["triggers"]
    assert trigger["type"] == "postgresql"
    assert set(trigger["metadata"]) == {"query", "targetQueryValue", "activationTargetQueryValue"}
    worker = JOBS.get(key) or rendered_with(key)[f"Deployment/{spec['scaleTargetRef']['name']}"]
    (queue,) = [word.partition("=")[2] for word in container(worker)["args"] if word.startswith("--queue=")]
    assert f"queue = '{queue}'" in trigger["metadata"]["query"]
    assert f"TriggerAuthentication/{trigger['authenticationRef']['name']}" in rendered_with(key)


def test_keda_alone_decides_about_the_number_of_workers_that_it_scales() -> None:
    assert "replicas" not in chart(DOCUMENTED)[CPU]["spec"]
    assert chart()[CPU]["spec"]["replicas"] == 1
    assert chart_of("ScaledObject") == chart_of("ScaledJob") == {}


def test_workers_of_a_job_each_are_those_of_the_deployment_but_leave_when_idle() -> None:
    settings = "settings: {}\nserviceMonitor: {enabled: true}\n" + GPUS_WITHOUT_KEDA
    theirs = chart(settings)[f"Deployment/{GPU}"]["spec"]["template"]
    mine = chart(settings + "\nkeda: {enabled: true}")[f"ScaledJob/{GPU}"]["spec"]["jobTargetRef"]["template"]
    (words,), (their_words,) = (
        [each["args"] for each in template["spec"]["containers"]] for template in (mine, theirs)
    )
    assert [word for word in words if word not in their_words] == ["--idle-exit=60"]
    (container,) = mine["spec"]["containers"]
    assert mine["spec"] | {"containers": [container | {"args": their_words}]} == theirs["spec"] | {
        "restartPolicy": "Never"
    }
    assert mine["metadata"]["labels"] == theirs["metadata"]["labels"]
    kept = mine["metadata"]["annotations"].items() - theirs["metadata"]["annotations"].items()
    assert dict(kept) == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true",
    }  # fmt: skip


@pytest.mark.parametrize("key", JOBS)
def test_a_job_for_each_waiting_job_scales_to_zero_and_is_never_stopped(key: str) -> None:
    spec = OBJECTS[key]["spec"]
    assert spec["minReplicaCount"] == 0
    assert spec["scalingStrategy"] == {"strategy": "default"}  # it subtracts the running ones, which the query counts
    assert spec["rollout"] == {"strategy": "gradual"}  # the other one ends running workers
    assert spec["jobTargetRef"]["backoffLimit"] == 0


def test_the_documented_query_is_that_of_the_scalers() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    (trigger,) = chart(DOCUMENTED)["ScaledObject/onboard-worker-cpu"]["spec"]["triggers"]
    assert trigger["metadata"]["query"].strip() in " ".join(page.split())


def test_keda_connects_with_the_secret_of_the_workers() -> None:
    (document,) = chart_of("TriggerAuthentication", DOCUMENTED).values()
    (reference,) = document["spec"]["secretTargetRef"]
    assert reference == {"parameter": "connection", "name": SECRET["metadata"]["name"], "key": "onboard_database_url"}
    assert reference["key"] in SECRET["stringData"]


def test_requests_and_limits_are_those_of_the_sizing_page() -> None:
    page = (ROOT / "docs" / "how-to" / "size-an-installation.md").read_text()
    described = {
        "API": VALUES["api"],
        "CPU worker": VALUES["workers"]["cpu"],
        "GPU worker, and one GPU": VALUES["workers"]["gpu"],
        "migration": VALUES["migrate"],
    }
    for pod_name, values in described.items():
        amounts = [
            values["resources"][kind].get(name, "") for name in ("cpu", "memory") for kind in ("requests", "limits")
        ]
        row = " | ".join([pod_name, *amounts]).replace("|  |", "| |")
        assert f"| {row} |" in page, row


def leaves(values: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """The paths of the values that stand for themselves: those whose members the schema does not name."""
    if not isinstance(values, dict) or "properties" not in schema:
        return [path]
    return [
        leaf
        for name in values
        for leaf in leaves(values[name], schema["properties"][name], f"{path}.{name}".strip("."))
    ]


def test_the_reference_lists_every_value_and_no_other_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "helm-chart.md").read_text()
    table, classes = page.split("An entry of")
    rows = [re.findall(r"`([\w.]+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    assert sorted(itertools.chain(*rows)) == sorted(leaves(VALUES, SCHEMA))
    for line in table.splitlines():
        if not line.startswith("| `"):
            continue
        names, defaults = (re.findall(r"`([^`]*)`", cell) for cell in line.split("|")[1:3])
        for name, default in zip(names, defaults if len(defaults) == len(names) else [], strict=False):
            value: Any = VALUES
            for part in name.split("."):
                value = value[part]
            if isinstance(value, str | int):
                assert default == (json.dumps(value) if value in ("", True, False) else str(value)), name
    described = SCHEMA["properties"]["workers"]["properties"]["gpu"]["properties"]["classes"]["items"]["properties"]
    assert re.findall(r"^\| `(\w+)`", classes, re.MULTILINE) == [
        "name",
        "maxReplicas",
        "replicas",
        "resources",
        "nodeSelector",
    ]
    assert len(described) == 5


def test_a_queue_of_the_chart_is_named_as_queues_are() -> None:
    workers = SCHEMA["properties"]["workers"]["properties"]
    assert workers["cpu"]["properties"]["queue"]["pattern"] == NAME_PATTERN
    name = workers["gpu"]["properties"]["classes"]["items"]["properties"]["name"]["pattern"]
    for queue in ("gpu-large", "a", "a" * 32):
        assert re.fullmatch(name, queue)
        assert re.fullmatch(NAME_PATTERN, queue)
    for queue in ("gpu_large", "-a", "a-", "a" * 33, "a'b"):
        assert not re.fullmatch(name, queue)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ("keda: {enable: true}", "enable"),
        ("replicas: 3", "replicas"),
        ("ingress: {enabled: true}", "/ingress/host"),
        ("settings: {ONBOARD_DATABASE_URL: postgresql://u:p@h/n}", "ONBOARD_DATABASE_URL"),
        ("settings: {ONBOARD_ALLOWED_HOSTS: x}", "ONBOARD_ALLOWED_HOSTS"),
        ("image: {digest: abc}", "/image/digest"),
        ("api: {replicas: 0}", "/api/replicas"),
        ("api: {resources: {requests: {cpu: 1}, limits: null}}", "limits"),
        ('workers: {cpu: {queue: "x\' OR 1=1"}}', "/workers/cpu/queue"),
        ("workers: {gpu: {classes: [{name: cpu, maxReplicas: 1}]}}", "/workers/gpu/classes/0/name"),
        ("workers: {gpu: {classes: [{name: big}]}}", "maxReplicas"),
        ("workers: {gpu: {classes: [{name: big, maxReplicas: 1}, {name: big, maxReplicas: 2}]}}", "big occurs twice"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(values: str, word: str) -> None:
    assert word in refused(values)


def test_a_setting_is_removed_by_an_empty_text() -> None:
    data = chart('settings: {AWS_SHARED_CREDENTIALS_FILE: ""}')["ConfigMap/onboard"]["data"]
    assert "AWS_SHARED_CREDENTIALS_FILE" not in data
    assert "AWS_DEFAULT_REGION" in data
