"""Messages about the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

CLI: Final[Mapping[str, Message]] = {
    "answers-not-writable": Message("{path} cannot be written: {reason}.", "{remedy}"),
    "base-files-of-other-base": Message(
        (
            "The files of base {base} in {folder} are not those that jobs were submitted for: {base_digest:.19}… "
            "instead of {registered_digest:.19}…."
        ),
        (
            "If you replaced the base on purpose, submit a job on it, which registers it. Otherwise make the base "
            "again or restore it."
        ),
    ),
    "base-train-without-source": Message(
        "There is nothing to make a base from.", "Pass --recipe FILE, or --backbone ID --sources DIR."
    ),
    "bulk-needs-folders": Message(
        "A job reads files and writes to a folder.", "Pass both: --input FOLDER --output FOLDER"
    ),
    "carry-without-task": Message(
        "There is no task to carry.", "Carry one or all: onboard tasks carry TASK, or: onboard tasks carry --all"
    ),
    "command-needs-service-machine": Message(
        "{part} only works on the machines of a service, but ONBOARD_API_URL is set to {url}.",
        "Run it there, or here for a service of this machine: unset ONBOARD_API_URL",
    ),
    "dataset-given-twice": Message("There are two datasets: {file} and {named}.", "Pass one: onboard submit FILE"),
    "fields-without-test-file": Message(
        "--text-field, --label-field and --unknown-labels describe a file.", "Pass the file: --test FILE"
    ),
    "file-not-writable": Message("The {part} cannot be written to {path}: {reason}.", "{remedy}"),
    "label-tool-unfit": Message(
        "doccano labels single texts with names; this task has pairs of texts or numbers.",
        "Use another tool: --label-tool label-studio, or --label-tool argilla",
    ),
    "label-tool-without-file": Message("--label-tool needs a file to write to.", "Pass the file: --label-next FILE"),
    "lessons-unusable": Message(
        "The prior of the base {base} leaves out the lessons of {left_out}: each is missing, damaged or of another "
        "base, or has numbers that are not finite.",
        "Restore the artifact folder from a backup, or submit these tasks again.",
    ),
    "map-file-type-unknown": Message(
        "{output!r} is neither a picture nor a page.",
        "Use --output map.png for a picture, or --output map.html for a page.",
    ),
    "method-name-empty": Message(
        "A name in --methods is empty.", "Separate the methods by commas: --methods default,linear"
    ),
    "methods-too-few": Message("A comparison needs two methods or more.", "Pass several: --methods A,B"),
    "no-texts-to-label": Message(
        "Job {job} has no texts to label next.",
        "Submit some with the rows: onboard submit FILE --task {task} --unlabelled FILE",
    ),
    "no-worker-lives": Message("No worker is running, so jobs will wait.", "Start one: onboard worker"),
    "output-is-file": Message("{output} is a file.", "Pass the file without the slash: --output {file}"),
    "output-is-file-for-source": Message(
        "{source} is {kind}, and {output} is a file.", "The answers need a folder: --output FOLDER/"
    ),
    "output-is-input": Message(
        "{path} contains the texts; the answers would overwrite them.", "Choose another file: --output FILE"
    ),
    "output-missing-for-source": Message("{source} is {kind}.", "Pass a folder for the answers: --output FOLDER/"),
    "output-stream-failed": Message(
        "Standard output cannot be written: {reason}.",
        "Send the output to a file or program that accepts it. The command itself has finished.",
    ),
    "plot-not-svg": Message(
        "--plot must end in .svg, and {plot!r} does not.", "Choose the name of an SVG picture: --plot methods.svg"
    ),
    "predict-without-task": Message(
        "There is no task to predict with.",
        "Pass a task, or several with --tasks: onboard predict --tasks a,b --text T",
    ),
    "predict-without-text": Message(
        "There is no text to predict.", "Pass --text, or --text-a with --text-b, or --input."
    ),
    "queue-without-worker": Message(
        "Jobs wait in {names}, which no live worker serves{left}.", "{where}onboard worker --queue {queue}{idle}"
    ),
    "service-of-other-release": Message(
        "The service is onboard {theirs}, and this is onboard 0.1.0.",
        "Install the same version here: pip install onboard=={theirs}",
    ),
    "standard-input-once": Message(
        "Standard input cannot be read again.",
        "Write the rows to a file first, or write the answers to a file with --output.",
    ),
    "standard-input-without-name": Message(
        "The dataset comes from standard input, so there is no file name to name the task after.",
        "Name the task: --task NAME",
    ),
    "standard-input-without-task": Message(
        "The dataset comes from standard input, so there is no file name to name the task after.",
        "Name the task: onboard submit - --task NAME",
    ),
    "tasks-repeated": Message("--tasks names a task twice.", "Name each task once."),
    "text-field-without-file": Message("--text-field names fields of a file.", "Pass the file: --input FILE"),
    "unknown-into-folder": Message(
        "--unknown cannot be used when answers are written to a folder.",
        "Write the answers to a file: --output answers.jsonl, or --output answers.csv",
    ),
    "unknown-job-choice": Message("{odd!r} is not a valid {kind}.", "{remedy}"),
    "suggestions-without-file": Message(
        "--label-tool writes the suggestions of one task to one file.", "Name one task and a file: --output FILE.json"
    ),
    "unknown-label-tool": Message(
        "{label_tool!r} is not a choice of --label-tool.", "Use one of {writers}; without it the file is a table."
    ),
    "unknown-on-error": Message("{on_error!r} is not a choice of --on-error.", "Use skip or refuse."),
    "webhooks-failing": Message("{webhooks}", "Fix the receivers: docs/how-to/webhooks.md#troubleshoot"),
    "worker-does-not-listen": Message(
        (
            "Jobs have waited for {seconds:.0f} s although worker {worker} is free: it does not receive "
            "messages from the broker."
        ),
        ("It restarts automatically. If that does not help, stop it and start another: onboard workers drain {worker}"),
    ),
    "worker-in-trouble": Message("Worker {name} {does}: {reason}{more}", "{remedy}"),
    "workers-outdated": Message(
        "Workers are older than onboard {release} and ignore its jobs: {older}.",
        "Install the same version there and start them again: pip install -U onboard",
    ),
    "rows-file-count": Message("The command takes exactly one file of rows.", "Run: onboard add {task} FILE"),
    "label-change-unreadable": Message("{words!r} is not a change of labels.", "{usage}"),
}
