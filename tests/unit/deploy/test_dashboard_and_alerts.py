"""The Grafana dashboard and the alert rules ask only for what is exported, and lead to a runbook that exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.registry_samples import register_sample_base, sample_task, sample_version

from onboard.domain.drift import day_of
from onboard.domain.worker import WorkerState
from onboard.operations.prometheus import make_registry
from onboard.registry.clock import read_clock
from onboard.registry.drift import DriftRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import WorkerRepository

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus"
LISTS = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"([a-z_]\w*)\s*\{([^}]*)\}")
ONE_OF_THEM = re.compile(r"\b(?:max|min|absent)(?: by \([^)]*\))? ?\((?:(?:rate|increase)\()?$")
WORDS = {"unless", "and", "or", "bool", "offset", "inf", "nan"}
GPU = {
    "name": "H100", "index": 0, "memory_used_bytes": 1, "memory_total_bytes": 2, "utilization_ratio": 0.5,
    "temperature_celsius": 60,
}  # fmt: skip


def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "onboard.json").read_text())
    return document


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def targets() -> Iterator[dict[str, Any]]:
    for panel in panels():
        yield from panel["targets"]


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def expressions() -> list[str]:
    return [target["expr"] for target in targets()] + [rule["expr"] for rule in alerts()]


def metrics_in(expression: str) -> set[str]:
    """Every name that is neither a function nor a label nor a word of PromQL."""
    bare = LISTS.sub(" ", re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", expression))
    return set(re.findall(r"(?<![\w.])[a-zA-Z_]\w*(?!\w|\s*\()", bare)) - WORDS


def labels_in(expression: str) -> set[str]:
    return {name.strip() for names in LISTS.findall(expression) for name in names.split(",")}


@pytest.fixture
def exported(services: Services) -> dict[str, set[str]]:
    """The labels of every series that a deployment with a GPU exports, by its name."""
    with services.database.write() as session:
        WorkerRepository(session).enter(
            "w", WorkerState.RUNNING, queues=["default"], host="h", device="cuda:0", pid=1, facts={"gpus": [GPU]}
        )
    register_sample_base(services.database)
    with services.database.write() as session:
        VersionRepository(session).add(sample_version(), sample_task())
        DriftRepository(session).add(day_of(read_clock(session)), {("colours", 1): {"answered": 1}})
    families = text_string_to_metric_families(generate_latest(make_registry(services.database)).decode())
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def test_what_is_asked_for_is_exported_with_those_labels(exported: dict[str, set[str]]) -> None:
    for expression in expressions():
        names = metrics_in(expression)
        assert names, expression
        assert names <= exported.keys(), expression
        assert labels_in(expression) <= set.union(*(exported[name] for name in names)), expression
        for name, matchers in SELECTOR.findall(expression):
            assert set(re.findall(r"(\w+)\s*[!=]", matchers)) <= exported[name], expression


def test_everything_that_was_promised_is_shown_or_watched(exported: dict[str, set[str]]) -> None:
    asked = set.union(*(metrics_in(expression) for expression in expressions()))
    # started: the count of the waiting times says the same; a histogram's sum and count are for whoever wants the mean
    unasked = {"celery_task_started_total"} | {name for name in exported if name.endswith(("_sum", "_count"))}
    assert exported.keys() - asked == unasked


def test_places_that_tell_the_same_are_made_one_before_anything_is_added_up() -> None:
    """Every place that is scraped tells of the whole deployment: a sum over them would count it so many times."""
    for expression in expressions():
        if expression == "onboard_build_info":  # the table of those places
            continue
        for name in metrics_in(expression):
            for mention in re.finditer(rf"\b{name}\b", expression):
                assert ONE_OF_THEM.search(expression[: mention.start()]), expression


def test_every_metric_is_documented_and_no_other(exported: dict[str, set[str]]) -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    documented = re.findall(r"`((?:onboard|celery)_\w+)`", page)
    families = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in exported}
    assert sorted(documented) == sorted(families)


def test_a_legend_names_labels_that_the_series_have() -> None:
    for target in targets():
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels_in(target["expr"]), target


def test_the_dashboard_can_be_imported_for_any_prometheus() -> None:
    document = dashboard()
    assert document["schemaVersion"] >= 42
    variables = {variable["name"]: variable for variable in document["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    users = [*panels(), *targets(), *(variable for variable in variables.values() if variable["type"] == "query")]
    assert {user["datasource"]["uid"] for user in users} == {"${datasource}"}
    used = set(re.findall(r"\$(\w+)", json.dumps(panels()))) - {"__rate_interval", "__all"}
    assert used == {"queue", "worker"} < variables.keys()


def test_variables_take_their_values_from_what_is_exported(exported: dict[str, set[str]]) -> None:
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            query = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert query is not None
            assert query[2] in exported[query[1]]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    every = dashboard()["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_alert_says_what_to_do_in_a_section_that_exists() -> None:
    for rule in alerts():
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert anchor in anchors((ROOT / file).read_text()), rule["alert"]
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["alert"] in (ROOT / file).read_text()


def test_every_alert_has_a_runbook_that_says_what_it_means_how_to_confirm_what_to_do_and_how_to_undo() -> None:
    page = (ROOT / "docs" / "how-to" / "runbooks.md").read_text()
    _, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    runbooks = {section.splitlines()[0]: section for section in sections}
    assert list(runbooks) == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"docs/how-to/runbooks.md#{rule['alert'].lower()}"
        parts = re.split(r"^\*\*(\w+)\.\*\*", runbooks[rule["alert"]], flags=re.MULTILINE)
        assert parts[1::2] == ["Means", "Confirm", "Do", "Undo"], rule["alert"]
        assert all(len(part.split()) >= 1 for part in parts[2::2]), rule["alert"]


def anchors(markdown: str) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_names_that_these_tests_find_are_those_of_the_expression() -> None:
    expression = 'max by (le, q) (rate(a_bucket{b=~"c"}[5m])) * 3600 > 1e3 unless on (q) (absent(d) == 1)'
    assert metrics_in(expression) == {"a_bucket", "d"}
    assert labels_in(expression) == {"le", "q"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Prometheus")
def test_promtool_finds_rules_and_queries_right_and_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    def promtool(*words: str | Path) -> None:
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, cwd=RULES)
        assert done.returncode == 0, done.stdout + done.stderr

    queries = [target["expr"].replace("$__rate_interval", "5m") for target in targets()]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", "alerts.yml", tmp_path / "panels.yml")
    promtool("test", "rules", "alerts_test.yml")
