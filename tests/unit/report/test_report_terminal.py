import io
import re
import subprocess
import sys

import pytest
from rich.console import Console

from onboard.report import render, render_text
from onboard.report.terminal import sparkline


def printed(document, *, terminal: bool = False, width: int = 100) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=terminal, legacy_windows=False).print(render_text(document))
    return stream.getvalue()


def test_a_terminal_shows_the_facts_of_the_page(document):
    shown = printed(document)
    for fact in (
        "81% (73–87%)",
        "trec@v1",
        "chosen",
        "2 rows conflict. Decide.",
        "3 of 12",
        "sha256:beef",
        "billing 41% or delivery 38%",
        "train 1 min 15 s",
    ):
        assert fact in shown


def test_without_a_terminal_there_are_neither_colours_nor_rules(document):
    plain = printed(document)
    assert "\x1b" not in plain
    assert "─" not in plain
    coloured = printed(document, terminal=True)
    assert "\x1b[1m" in coloured
    assert "─" in coloured


def test_both_reports_have_the_same_order(document):
    document["more_rows"] = {"more": 32, "reason": "why"}
    titles = re.findall(r"<h2>(.*?)</h2>", render(document))
    assert len(titles) == 12
    lines = [re.sub(r": .*", "", line).strip() for line in printed(document).splitlines()]
    assert [line for line in lines if line in titles] == [title for title in titles if title != "Log"]


def test_pairs_that_share_a_text_are_told_apart(document):
    premise = "A man in a blue shirt stands on a ladder and cleans the window of a large house. " * 2
    rows = [{"text_a": premise, "text_b": f"{number} hypotheses", "value": 1.0} for number in range(3)]
    document["label_next"] = {"rows": rows}
    shown = printed(document)
    assert all(f"A man in a blue shirt stands on a ladde… | {number} hypotheses" in shown for number in range(3))


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(("width", "most"), [(80, 2), (104, 1)])
def test_long_names_of_starting_points_take_two_lines_at_most(document, terminal, width, most):
    name = "topics-question-40-food-depends-programming-exams-formu-4b724767"
    candidate = {"loss": 1.0, "low": 0.9, "high": 1.1, "rows": 256, "accuracy": 1.0, "tuned": 1.0, "round": 1}
    document["init"] = {"chosen": name, "candidates": [candidate | {"embedding": name}, candidate | {"round": 6}]}
    lines = printed(document, terminal=terminal, width=width).splitlines()
    first, second = (index for index, line in enumerate(lines) if "1.000" in line)
    assert second - first == most
    shown = "".join(line.split()[0] for line in lines[first:second])
    assert shown == "topics-question-4…s-formu-4b724767"


def test_commands_stand_alone_on_their_line(document):
    document["weak"] = True
    assert "\n    onboard submit --dataset FILE --task tickets --test TEST_FILE\n" in printed(document).replace(
        " \n", "\n"
    )


def test_every_row_that_looks_mislabelled_is_named(document):
    rows = [{"text": f"text {number}", "label": "a", "likelier": "b"} for number in range(3)]
    warning = {"code": "contradicted_labels", "message": "“text 0” is labeled a.", "remedy": "Look.", "examples": rows}
    document["dataset"]["warnings"] = [warning, {**warning, "code": "another"}]
    shown = printed(document)
    assert "- “text 0” is labeled a. Look.\n  - “text 1” is labeled a; b looks more likely.\n  - “text 2”" in shown
    assert shown.count("“text 1”") == 1


def test_joined_emoji_stay_joined(document):
    document["confusion"]["labels"][2] = "👨\u200d👩\u200d👧"
    assert "👨\u200d👩\u200d👧" in printed(document)


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
