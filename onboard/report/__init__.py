"""Present a job's document to people: a self-contained HTML page and a terminal view with the same facts."""

from onboard.report.html import render
from onboard.report.sentences import headline
from onboard.report.terminal import render_text

__all__ = ["headline", "render", "render_text"]
