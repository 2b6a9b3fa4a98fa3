import io
import subprocess
import sys

import pytest
from rich.console import Console

from onboard.report import render_text
from onboard.report.terminal import sparkline


def printed(document, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    Console(file=stream, width=100, force_terminal=terminal, legacy_windows=False).print(render_text(document))
    return stream.getvalue()


def test_a_terminal_shows_the_facts_of_the_page(document):
    shown = printed(document)
    for wanted in (
        "81% (73–87%)",
        "trec@v1",
        "chosen",
        "2 rows conflict. Decide.",
        "3 of 12",
        "sha256:beef",
        "billing 41% or delivery 38%",
        "train 1 min 15 s",
    ):
        assert wanted in shown


def test_without_a_terminal_there_are_neither_colours_nor_rules(document):
    plain = printed(document)
    assert "\x1b" not in plain
    assert "─" not in plain
    coloured = printed(document, terminal=True)
    assert "\x1b[1m" in coloured
    assert "─" in coloured


def test_commands_stand_alone_on_their_line(document):
    document["weak"] = True
    assert "\n    onboard submit --dataset FILE --task tickets\n" in printed(document).replace(" \n", "\n")


def test_labels_can_neither_steer_the_terminal_nor_use_markup(document):
    document["confusion"]["labels"][2] = "\x1b[2Jred\u202e[bold red]x[/]"
    document["task"] = "t\x07\x1b]0;title\x07"
    shown = printed(document)
    assert "[2Jred[bold red]x[/]" in shown
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)


@pytest.mark.parametrize(
    "sparse", [{}, {"state": "queued"}, {"init": {"chosen": "mean"}}, {"metrics": 3, "seconds": []}]
)
def test_a_sparse_document_prints_too(sparse):
    assert printed(sparse).strip()


def test_a_sparkline_runs_from_high_to_low():
    line = sparkline([10.0 - step / 10 for step in range(100)])
    assert (line[0], line[-1], len(line)) == ("█", "▁", 40)
    assert sparkline([1.0, 1.0]) == "▁▁"


def test_importing_the_report_imports_neither_jinja2_nor_rich_nor_numpy():
    code = "import sys, onboard.report; print(sorted({'jinja2', 'rich', 'numpy', 'torch'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
