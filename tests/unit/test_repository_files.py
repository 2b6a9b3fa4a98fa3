"""The files that a repository is expected to have: citation, notice, forms of issues, hooks before a commit."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from onboard import __version__
from onboard.bases.documents import notice, origins_table, write_documents

ROOT = Path(__file__).parent.parent.parent
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
TOLD = {"title": "is it a question", "publisher": "someone/questions", "licence": "CC0 | MIT"}


def validate(path: Path, schema_name: str) -> Any:
    """The document of a YAML file, valid by a schema that check-jsonschema brings."""
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema_name}.json"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(described := json.loads(schema.read_text(encoding="utf-8")))
    kind(described).validate(document)
    return document


def test_the_citation_names_this_release() -> None:
    citation = validate(ROOT / "CITATION.cff", "citation-file-format")
    assert (citation["version"], citation["license"]) == (__version__, "Apache-2.0")
    assert citation["references"][0]["url"] in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(path.name for path in FORMS.glob("*.yml") if path.name != "config.yml"))
def test_a_form_for_an_issue_is_one(name: str) -> None:
    validate(FORMS / name, "github-issue-forms")


def test_the_choice_of_forms_is_configured() -> None:
    validate(FORMS / "config.yml", "github-issue-config")


def test_whoever_forks_gets_the_checks_that_we_run_with_actions_named_by_their_commit() -> None:
    workflow = validate(ROOT / ".github" / "workflows" / "ci.yml", "github-workflows")
    validate(ROOT / ".github" / "dependabot.yml", "dependabot")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in [step.get("run") for step in steps]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []
    assert workflow["permissions"] == {"contents": "read"}, "a pull request of a stranger runs this"


def test_what_runs_before_a_commit_is_what_the_make_target_checks_with_the_same_programs() -> None:
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"  # nothing is pinned a second time
    entries = [hook["entry"] for hook in repository["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    programs = [line.strip().removeprefix("$(BIN)/").removesuffix(" .") for line in recipe.splitlines()]
    assert [entry.removeprefix(".venv/bin/").removesuffix(" --fix") for entry in entries] == [
        program.replace(" --check", "") for program in programs
    ]


def test_the_notice_says_what_the_shipped_bases_say() -> None:
    made = "python -c \"from onboard.bases.documents import notice; print(notice(), end='')\" > NOTICE"
    assert (ROOT / "NOTICE").read_text(encoding="utf-8") == notice(), made


def test_sources_are_told_with_publisher_and_licence_and_others_are_left_out() -> None:
    table = origins_table({"questions": {**TOLD, "rows": 3}, "silent": {"rows": 4}})
    assert table[2:] == ["| questions | is it a question | someone/questions | CC0 \\| MIT |"]
    assert origins_table({"silent": {"rows": 4}}) == []


def test_the_licence_of_a_base_lists_the_licences_of_its_sources(tmp_path: Path) -> None:
    document = {
        "name": "ours", "licence": "Given under CC0.\n", "reduction_factor": 12, "task_embedding_size": 64,
        "max_tokens": 128, "sources": {"questions": TOLD},
    }  # fmt: skip
    write_documents(tmp_path, document, "A T5 with adapters", ["| source |", "|---|"])
    licence = (tmp_path / "LICENSE.md").read_text(encoding="utf-8")
    assert licence.startswith("# Licence of the base `ours`\n\nGiven under CC0.\n\n| source |")
    assert "someone/questions" in licence


def pins(name: str) -> dict[str, list[str]]:
    """What stands after the name in each line of a file of requirements, by the name as pip compares it."""
    lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {canonicalize_name(re.split("==| ", line)[0]): line.partition("==")[2].split() for line in lines}


def needed(requirements: Iterable[str], extras: Iterable[str], seen: set[tuple[str, str]]) -> set[str]:
    """Names of all that is installed with these requirements, by what the packages here say that they need."""
    names = set()
    for requirement in map(Requirement, requirements):
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        name = canonicalize_name(requirement.name)
        names.add(name)
        key = (name, ",".join(sorted(requirement.extras)))
        if key not in seen and name in pins("constraints.txt"):
            seen.add(key)
            names |= needed(metadata.requires(name) or (), requirement.extras, seen)
    return names


def test_what_a_deployment_installs_is_locked_as_it_is_pinned_with_a_digest_each() -> None:
    pinned, locked = pins("constraints.txt"), pins("requirements.lock")
    assert {name: words[0] for name, words in locked.items()} == {name: pinned[name][0] for name in locked}
    assert [name for name, words in locked.items() if not re.fullmatch("--hash=sha256:[0-9a-f]{64}", words[1])] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r'"\.\[([a-z0-9,]+)\]"', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    parts = [line for extra in extras.split(",") for line in project["optional-dependencies"][extra]]
    closure = needed([*project["dependencies"], *parts], (), set())
    assert closure & pinned.keys() - {"torch"} == locked.keys(), "after a change: make lock"
