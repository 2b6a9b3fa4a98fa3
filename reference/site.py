"""Hooks of MkDocs: pages made from the code, and links from docs/ to files that lie elsewhere in the repository."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from reference import commands, errors, http_api
from reference.redirects import redirects

ROOT: Final = Path(__file__).parent.parent
MADE: Final = {"commands": commands.page, "errors": errors.page, "http": http_api.page}
ELSEWHERE: Final = "repository"  # where the site shows files outside of docs/
_CODE: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation: `folder/` is every page of it."""
    assert config.nav is not None
    config.nav = [_filled(entry) for entry in config.nav]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the files that pages link to, whatever these link to included."""
    for name, make in MADE.items():
        files.append(File.generated(config, f"reference/{name}.md", content=make()))
    waiting = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    seen = set(waiting)
    while waiting:
        for path in _linked(waiting.pop()):
            if path in seen:
                continue
            seen.add(path)
            waiting += [path] if path.endswith(".md") else []
            if not path.startswith("docs/"):
                source = str(ROOT / path)
                level = InclusionLevel.NOT_IN_NAV
                files.append(File.generated(config, place_of(path), abs_src_path=source, inclusion=level))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write a page at every address that earlier releases had, which leads to the present one."""
    for address, document in redirects():
        (Path(config.site_dir) / address).write_text(document, encoding="utf-8")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead where the files are in the site. `config` and `files` are named by MkDocs."""
    del config, files
    here = page.file.src_uri
    path = here.removeprefix(f"{ELSEWHERE}/") if here.startswith(f"{ELSEWHERE}/") else f"docs/{here}"
    folder, place = posixpath.dirname(path), posixpath.dirname(here)

    def led(link: re.Match[str]) -> str:
        target = _file_at(folder, link[2])
        if target is None:
            return link[0]
        return f"{link[1]}{posixpath.relpath(place_of(target), place or '.')}{link[3]}"

    return _outside_of_code(markdown, led)


def place_of(path: str) -> str:
    """Where a file of the repository lies in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{ELSEWHERE}/{path}"


def _linked(path: str) -> Iterator[str]:
    """The files of the repository that a page of it links to."""
    text = _CODE.sub("", (ROOT / path).read_text(encoding="utf-8"))
    for _, target, _ in _LINK.findall(text):
        file = _file_at(posixpath.dirname(path), target)
        if file is not None:
            yield file


def _file_at(folder: str, target: str) -> str | None:
    """The file of a relative link; a folder means its README. None if it is not a file of ours."""
    if re.match(r"[a-z]+:|/", target):
        return None
    path = posixpath.normpath(posixpath.join(folder, target))
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    return path if not path.startswith("..") and (ROOT / path).is_file() else None


def _outside_of_code(markdown: str, led: Any) -> str:
    parts, end = [], 0
    for block in _CODE.finditer(markdown):
        parts += [_LINK.sub(led, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _LINK.sub(led, markdown[end:])])


def _filled(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {title: _filled(value) for title, value in entry.items()}
    if isinstance(entry, list):
        return [_filled(value) for value in entry]
    return _pages(f"{entry}*.md") if entry.endswith("/") else entry


def _pages(pattern: str) -> list[str]:
    """Pages of docs/, a folder's README first."""
    paths = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").glob(pattern)]
    return [path.as_posix() for path in sorted(paths, key=lambda path: (path.name != "README.md", path))]
