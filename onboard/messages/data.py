"""Messages about datasets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

DATA: Final[Mapping[str, Message]] = {
    "card-too-deep": Message(
        "{source} has a card that nests more than {limit} levels deep.",
        "Correct its README.md, or pass its files of rows alone.",
    ),
    "card-too-large": Message(
        "{source} has a card of {size:,} bytes; the limit is {limit:,}.",
        "Correct its README.md, or pass its files of rows alone.",
    ),
    "card-too-many-values": Message(
        "{source} has a card that expands to more than {limit:,} values.",
        "Correct its README.md, or pass its files of rows alone.",
    ),
    "card-unreadable": Message("{shown} has a card that cannot be read: {reason}.", "Correct its README.md."),
    "configuration-unclear": Message("{source} {reason}.", "Choose one: {base}/CONFIG with one of {names}."),
    "description-empty": Message(
        "The description of the label {shown!r} is empty.",
        'Use the form --label-description card="lost or stolen bank card".',
    ),
    "description-malformed": Message(
        "The label description {shown!r} is not of the form LABEL=TEXT.",
        'Use the form --label-description card="lost or stolen bank card".',
    ),
    "description-of-regression": Message("A regression has no labels to describe.", "Leave out --label-description."),
    "description-of-unknown-label": Message(
        "The description is for {shown!r}, which is not a label of the task.{guess}",
        "Describe one of its labels: {labels}.",
    ),
    "description-repeated": Message("The label {shown!r} has two descriptions.", "Describe each label once."),
    "description-too-long": Message(
        "The description of the label {shown!r} has {characters:,} characters; the limit is {limit:,}.", "Shorten it."
    ),
    "file-name-without-letters": Message(
        "The file's name gives {name!r}, which is not a valid task name.", "Name the task: --task {stem}"
    ),
    "folder-file-name-invalid": Message("{name!r} is not the name of a file in the folder.", "Save the dataset again."),
    "folder-file-outside": Message("{shown} names a file outside of it: {path}.", "Put the file into the folder."),
    "folder-file-unreadable": Message("{source} cannot be read: {reason}.", "Save the dataset again."),
    "folder-files-remote": Message(
        "{source} has a card that names files elsewhere: {name}.", "Download these files, and pass them."
    ),
    "folder-not-a-dataset": Message("{source} is not a dataset of the datasets library: {reason}.", "{remedy}"),
    "folder-without-rows": Message("{source} is a folder without files that contain rows.", "{remedy}"),
    "folder-without-training-split": Message("{source} has no training split (it has: {present}).", "{remedy}"),
    "hub-dataset-gated": Message("{source} is gated.", "Accept its terms on the hub and sign in: hf auth login"),
    "hub-dataset-too-many-files": Message(
        "{source} has {files:,} files of rows; the limit is {limit:,}.",
        "Download the part that you need, and pass that.",
    ),
    "hub-dataset-without-files": Message(
        "{source} has no Parquet files and no files of another supported format.",
        (
            "On a machine that reaches the hub, download the dataset as Parquet or JSONL; then pass the file: onboard "
            "check FILE.parquet"
        ),
    ),
    "hub-dataset-without-training-split": Message(
        "{source} has no training split that can be read.",
        (
            "On a machine that reaches the hub, download the dataset as Parquet or JSONL; then pass the file: onboard "
            "check FILE.parquet"
        ),
    ),
    "hub-file-outside": Message(
        "{source} lists a file that lies outside of it: {path!r}.",
        (
            "On a machine that reaches the hub, download the dataset as Parquet or JSONL; then pass the file: onboard "
            "check FILE.parquet"
        ),
    ),
    "hub-file-too-large": Message(
        "{source} has {mebibytes:,} MiB; the limit is {limit_mebibytes:,} MiB.",
        "Download it, draw a few thousand rows, and pass that file.",
    ),
    "hub-name-invalid": Message("{source!r} is not a dataset of the hub.", "Write hf://NAME or hf://NAME/CONFIG."),
    "hub-name-refused": Message(
        "{source!r} is not a dataset of the hub: {reason}",
        "Write hf://NAME, or hf://NAME/CONFIG for one of its configurations.",
    ),
    "hub-revision-invalid": Message(
        "{revision!r} is not a revision of a dataset of the hub.",
        "Use a branch, a tag or a commit: hf://OWNER/NAME@v1",
    ),
    "hub-unreachable": Message(
        "The hub cannot be reached for {source}: {reason}.",
        (
            "On a machine that reaches the hub, download the dataset as Parquet or JSONL; then pass the file: onboard "
            "check FILE.parquet"
        ),
    ),
    "label-repeated": Message("The label set names {repeated!r} more than once.", "Name each label once."),
    "label-studio-choice-unknown": Message(
        'label_config: the <Choices> "{control}" have choice="{choice}".', 'Write choice="single" or choice="multiple".'
    ),
    "label-studio-choices-missing": Message(
        "label_config: there are {found} <Choices> for a <Text>, not one.",
        "Configure choices about one text; regions, images and HTML are not supported.",
    ),
    "label-studio-config-unreadable": Message(
        "label_config: this is not a labeling configuration: {reason}.", "Send the project's labeling configuration."
    ),
    "label-studio-label-is-list": Message(
        "label_config: the choice {label!r} reads like a list of labels.", "Give the <Choice> another value."
    ),
    "label-studio-labels-missing": Message(
        "label_config: the <Choices> have {found} usable labels, not 2 to {most:,}.",
        "Write 2 to {most:,} <Choice> with values of at most 200 characters.",
    ),
    "label-studio-text-by-url": Message(
        'label_config: the <Text> "{name}" loads its text from a URL.', "Import the texts themselves."
    ),
    "label-studio-text-without-field": Message(
        'label_config: the <Text> "{name}" does not show one field.', 'Write value="$text".'
    ),
    "label-too-long": Message(
        "The label {label!r} has {characters:,} characters; the limit is {limit}.",
        "Shorten it, and describe it with --label-description.",
    ),
    "label-words-alike": Message(
        "This base's vocabulary cannot tell the labels {words} apart.",
        "Rename the labels, or choose another base with --base.",
    ),
    "labels-read-alike": Message(
        "The labels {first!r} and {second!r} read alike, and without rows only their words tell labels apart.",
        "Rename one of them, or leave it out.",
    ),
    "labels-too-few": Message("The label set has fewer than two labels.", "List all labels: --labels A,B"),
    "labels-with-regression": Message("A regression has no label set.", "Leave out --labels, or --kind regression."),
    "option-needs-rows": Message("{option} has no meaning without labeled rows.", "Leave it out, or submit a dataset."),
    "shots-not-positive": Message("--rows {shots} is not a valid number of rows.", "Use at least one row per label."),
    "snapshot-format-unknown": Message(
        "This snapshot has the unknown format {format} {version}.",
        "Install the version of onboard that wrote it, or a later one.",
    ),
    "snapshot-incomplete": Message(
        "The dataset snapshot does not contain as many rows as its header says.", "Restore it from a backup."
    ),
    "snapshot-unreadable": Message("The bytes are not a dataset snapshot: {reason}.", "Restore it from a backup."),
    "text-field-count": Message(
        "--text-field is repeated {count} times; a row has one text or two.", "Pass it once, or twice for pairs."
    ),
    "text-half-character": Message(
        "A row is not UTF-8: it contains half a surrogate pair.", "Write the character in full, or remove it."
    ),
    "too-few-shots": Message("--rows {shots} is not a valid number of rows.", "Use at least one row per label."),
    "unknown-hub-dataset": Message(
        "The hub has no dataset {source}.", "Check the name: hf://OWNER/NAME. Private ones need a token: hf auth login"
    ),
    "unknown-hub-revision": Message(
        "{repository} has no revision {revision!r} on the hub.", "Check the branch, tag or commit."
    ),
    "unknown-kind": Message("{kind!r} is not a kind of task.", "Use one of {kinds}."),
    "rows-change-nothing": Message("{trouble} Nothing was queued.", "{remedy}"),
    "rows-not-in-task": Message(
        "The dataset has none of the {texts} in the file. Nothing was queued.", "Pass the texts as they were submitted."
    ),
    "label-without-rows-left": Message(
        "No training row of {shown} would be left. Nothing was queued.",
        "Keep a row of every label, or delete the label: onboard labels TASK delete LABEL",
    ),
    "numbers-left-too-few": Message(
        "Fewer than two different numbers would be left. Nothing was queued.", "Remove fewer rows."
    ),
    "sets-left-alike": Message(
        "Every row left would have the same set of labels. Nothing was queued.",
        "Keep rows with different sets of labels.",
    ),
    "rows-file-empty": Message("{file} has no usable row.", "Add rows with texts and labels."),
    "unlabelled-with-sets": Message(
        "--unlabelled cannot be used for a task with several labels per text.",
        "Leave --unlabelled out.",
    ),
}
