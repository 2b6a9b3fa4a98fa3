"""Messages about names, choices and states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

DOMAIN: Final[Mapping[str, Message]] = {
    "alias-is-version-number": Message(
        "An alias cannot be called {alias!r}, which is a version number.", "Choose a name other than v and a number."
    ),
    "argument-not-texts": Message(
        "{field}: {value!r} is neither a text nor a list of texts.", 'Pass a text or a list of texts: {field}="NAME"'
    ),
    "bound-not-finite": Message("{at_least} is not a value that a metric could reach.", "Pass a finite number."),
    "bound-without-metric": Message("A minimum value needs a metric.", "Pass one: --metric accuracy"),
    "job-limit-invalid": Message(
        "{text!r} is not a number of jobs.",
        "Use a whole number such as 20, 0 to allow none, or none to lift the limit.",
    ),
    "quota-too-large": Message("{field} is {value}, which is more than {most}.", "Use a smaller number, or no limit."),
    "quota-negative": Message(
        "A limit cannot be negative, but {field} is {value}.",
        "Use 0 to allow nothing, or leave the limit out to allow everything.",
    ),
    "oidc-group-without-scopes": Message(
        "ONBOARD_OIDC_GROUPS has {group!r}, which gives a group no scopes.",
        "Set it to GROUP=SCOPE,SCOPE, with semicolons between groups: engineers=read,submit; operators=read,ops",
    ),
    "oidc-redirect-url-wrong": Message(
        "ONBOARD_OIDC_REDIRECT_URL is {url!r}, but browsers reach this service at the path {path}.",
        "End it with {path}, the part before /login being ONBOARD_ROOT_PATH. Register the same at the provider.",
    ),
    "oidc-setting-missing": Message(
        "ONBOARD_{setting} is not set, but other settings of OpenID Connect are.",
        "Set ONBOARD_OIDC_ISSUER, _CLIENT_ID, _CLIENT_SECRET, _REDIRECT_URL and _GROUPS, or none of them.",
    ),
    "oidc-url-insecure": Message(
        "ONBOARD_{setting} is {url!r}, which is not an https:// address.",
        "Use https://; http:// works with localhost only.",
    ),
    "share-not-a-percentage": Message("{given!r} is not a percentage.", "Write the share as a percentage: --share 10%"),
    "share-of-everything": Message(
        "A share of 100% leaves no texts to the alias's version.", "Promote the version without a share."
    ),
    "share-out-of-range": Message(
        "The share {given} is not between 0% and 100%.",
        "Use a share such as 10%, which is 0.1 as a number, or 0% to end the canary.",
    ),
    "share-without-percent": Message(
        "The share {given} has no percent sign.", "Add the sign: --share {given}% lets the version answer {given}%."
    ),
    "share-with-names": Message(
        "A canary answers with the alias's current label names.",
        "Leave out --as-before until you promote the version without a share.",
    ),
    "size-invalid": Message("{text!r} is not a size.", "Use a number of bytes such as 500MB, 1.5GB or 2GiB."),
    "extra-not-installed": Message("{module} is not installed.", "Install it: pip install 'onboard[{extra}]'"),
    "hub-owner-not-allowed": Message(
        "This service does not read {repository} from the hub for others.",
        "Send the dataset as a file. The operator of the service can allow its owner: ONBOARD_HUB_OWNERS={named}",
    ),
    "hub-token-for-everybody": Message(
        "ONBOARD_HUB_TOKEN_OWNERS is *, so everyone who can submit could read everything that the token can read.",
        "List the owners of the datasets that may be read with the token.",
    ),
    "job-fields-unknown": Message(
        "Unknown fields in a job's spec: {fields}.",
        "Install the version of onboard that it was submitted with, or a later one.",
    ),
    "job-state-forbids": Message(
        "Job {job} is {state}; it cannot become {wanted}.", "See it with: onboard jobs show {job}"
    ),
    "labels-not-a-list": Message("labels: this is not a list.", 'Pass a list of labels: labels=["A", "B"]'),
    "lifetime-invalid": Message(
        "{text!r} is not a lifetime of a token.", "Use 30d, 12h, 2w or 45m, at most 3650d, or never."
    ),
    "method-compared-only": Message(
        "{method} is only for comparisons: it changes every weight of the base, so it publishes nothing.",
        "Use one of: --method {allowed} (the table is in docs/reference/methods.md).",
    ),
    "method-not-of-base": Message(
        "The base {base} has no method {method!r}: its hypernetwork is {of_base}.",
        "Use one of: --method {allowed} (the table is in docs/reference/methods.md).",
    ),
    "method-setting-malformed": Message(
        "The setting {method_setting!r} {trouble}.", "Use the form --method-setting reduction_factor=16."
    ),
    "method-unknown-to-release": Message(
        "{part} is of the method {method!r}, which this release of onboard does not know.",
        "Update: pip install -U onboard",
    ),
    "name-invalid": Message(
        "{name!r} is not a valid {kind}.",
        "Use 1 to {most_letters} lower-case letters, digits, '-' or '_', starting with a letter or digit.",
    ),
    "rows-and-shots": Message(
        "--rows {rows} and --shots {shots} are the same option.", "Leave out --shots, the former name of --rows."
    ),
    "scope-missing": Message("A token needs at least one scope.", "Scopes: {known}."),
    "task-weights-format-unknown": Message(
        "The weights have the format {format!r}; this version reads onboard-task-weights-1.",
        "Upgrade Onboard: pip install -U onboard",
    ),
    "time-limit-invalid": Message(
        "{seconds:g} s is not a valid time limit.", "Use a positive number of seconds: --time-limit 3600"
    ),
    "token-file-invalid": Message(
        "{where} contains no token: a token has {least_letters} to 256 letters, digits or any of . _ ~ + / = -.",
        "Create one with: openssl rand -hex 32",
    ),
    "unknown-choice": Message("{value!r} {wrong}.", "Use one of {choices}."),
    "unknown-device": Message("{device!r} is not a device.", "ONBOARD_DEVICE (or --device): auto, cpu, cuda or cuda:N"),
    "unknown-form": Message("{name!r} is not a form of tasks.", "Use single or pairs."),
    "unknown-method": Message(
        "There is no method {method!r}.{guess}",
        "Use one of: --method {allowed} (the table is in docs/reference/methods.md).",
    ),
    "unknown-metric-of-kind": Message(
        "There is no metric {metric!r} for {kind}.{guess}", "Use one of: --metric {allowed}"
    ),
    "unknown-metric-of-search": Message("There is no metric {metric!r}.", "Use one of {known}."),
    "unknown-scope": Message("{scope!r} is not a scope.", "Scopes: {known}."),
    "version-provisional": Message(
        (
            "{version} has no embedding {purpose}: it is provisional, a readout alone, which its job published "
            "before it learned an embedding."
        ),
        "{remedy}",
    ),
    "version-without-embedding": Message(
        "{version} has no embedding {purpose}: its method, {method}, makes {instead}.", "{remedy}"
    ),
    "versions-of-two-tasks": Message(
        "{a} and {b} belong to different tasks.", "Compare two versions of one task: {task}@v1 {task}@v2"
    ),
    "remove-with-others": Message(
        "--remove and {other} cannot be combined.", "Add or correct rows in one command, and remove rows in another."
    ),
    "label-not-in-task": Message(
        "The task {task!r} does not have the label {shown!r}.{guess}", "List its labels: onboard labels {task}"
    ),
    "merge-labels-too-few": Message("Merging takes at least two labels.", "Run: onboard labels TASK merge A B into C"),
    "label-change-labels-too-many": Message("{action} takes one label.", "Change one label at a time."),
    "label-name-wrong": Message("The new name of the label {trouble}.", "Choose a short name."),
    "label-name-unchanged": Message("The label is already called {shown!r}.", "Choose another name."),
    "label-name-in-use": Message(
        "The task {task!r} has another label {shown!r}.",
        "Choose another name, or merge them: onboard labels {task} merge {merged} into {shown}",
    ),
    "label-action-unknown": Message("{action!r} is not a change of labels.", "Use one of {actions}."),
    "label-change-name": Message("{trouble}.", "Pass the new name as `to` with rename and merge only."),
    "label-change-description": Message("{trouble}.", "Pass a description with describe only."),
    "label-given-twice": Message("A label of {task!r} is repeated.", "List each label once."),
    "labels-left-too-few": Message(
        "The task {task!r} has {labels} labels, and only one would be left.",
        "Keep at least two labels, or delete the task: onboard tasks delete TASK",
    ),
}
