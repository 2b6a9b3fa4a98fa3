"""Parts of the package that are installed when they are asked for, and what is said where one is missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from support.refusals import refused

from onboard.domain.extras import require_extra

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def test_a_missing_part_is_named_with_the_command_that_installs_it() -> None:
    with refused("extra-not-installed", module="no_such_module"):
        require_extra("serve", "json", "no_such_module")
    require_extra("serve", "json")


def test_a_module_below_a_missing_package_is_named_by_that_package() -> None:
    with refused("extra-not-installed", module="no_such_package"):
        require_extra("otel", "no_such_package.trace")


def test_every_extra_that_messages_documentation_and_image_name_is_one() -> None:
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "Dockerfile"]
    files += [path for room in ("onboard", "cli", "workers") for path in (ROOT / room).rglob("*.py")]
    lists = [names for path in files for names in re.findall(r"(?:onboard|\.)\[([a-z0-9,]+)\]['\"]", path.read_text())]
    calls = [name for path in files for name in re.findall(r'require_extra\("(\w+)"', path.read_text())]
    named = {name for names in (*lists, *calls) for name in names.split(",")}
    assert {"gpu", "s3", "serve"} <= named <= set(EXTRAS)


def test_the_table_of_extras_has_every_one_but_that_of_developers() -> None:
    (table,) = re.findall(
        r"^\| extra \| brings \|\n\|---\|---\|\n((?:\|.*\n)+)",
        (ROOT / "docs" / "quickstart.md").read_text(),
        re.MULTILINE,
    )
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(EXTRAS.keys() - {"dev"})
