"""Messages about versions, the hub and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

VERSIONS: Final[Mapping[str, Message]] = {
    "artifacts-not-deleted": Message(
        "Task {task!r} is deleted, but some of its files are still there: {reason}",
        "When the store is available again, run: onboard gc",
    ),
    "carrying-busy": Message("Other tasks are being carried.", "Try again in a moment."),
    "comparison-busy": Message("Other versions are being compared.", "Try again in a moment."),
    "hub-not-signed-in": Message("You are not signed in to the hub.", "{remedy}"),
    "hub-place-invalid": Message("{place!r} is not a location on the hub.", "Use hf://OWNER/NAME."),
    "hub-unreachable-for-version": Message("The hub cannot be reached for {place}: {reason}.", "Try again later."),
    "hub-version-gated": Message("{place} is gated.", "Accept its terms on the hub and sign in: hf auth login"),
    "hub-without-version": Message(
        "{place} does not contain a version made by Onboard.", "Push one: onboard push TASK hf://OWNER/NAME"
    ),
    "hub-write-forbidden": Message("You are not allowed to write to {place} on the hub.", "{remedy}"),
    "hypernetwork-moved-while-carrying": Message(
        "The hypernetwork of the base is now at version {head}, not {expected}.", "Carry the task again."
    ),
    "measuring-busy": Message("Other versions are being measured.", "Try again in a moment."),
    "not-better-than-majority": Message(
        "{alias} is new, and {version} is not significantly better than always giving the most frequent label.",
        "See its metrics: onboard tasks show {task}; or promote it without --if-better",
    ),
    "not-better-than-present": Message("{version} is {verdict} than {alias}, v{present}: {reason}", "{how}{back}"),
    "onnx-answers-differ": Message(
        "The ONNX model answers differently from the service (by {apart:.2g} in log-probability).",
        "Export it with --format adapters.",
    ),
    "onnx-not-installed": Message(
        "The ONNX export needs a package that is not installed: {reason}.", "Install it: pip install 'onboard[onnx]'"
    ),
    "onnx-too-large": Message(
        "The T5 of base {base} has {gigabytes:.1f} GB, and an ONNX file can hold at most 2 GB.",
        "Export it with --format adapters.",
    ),
    "pull-bytes-differ": Message(
        "{reference} in {repository} differs from the one that was pulled before.",
        "Versions never change, so ask the publisher. If the change is intended, pass --allow-older",
    ),
    "pull-file-damaged": Message(
        "{file} of {place} differs from its digest.", "Pull another revision, or ask the publisher to push it again."
    ),
    "pull-file-exists": Message(
        "{file} exists with other content.", "Choose another folder with --output, or overwrite it with --force."
    ),
    "pull-file-missing": Message("{place} does not contain {file}.", "Ask the publisher to push it again."),
    "pull-file-name-invalid": Message(
        "{place} lists {file!r}, which is not a file of a version.",
        "A version has {own_files} and the files of a base in base/.",
    ),
    "pull-folder-occupied": Message("{folder} contains other files.", "Choose another folder with --output."),
    "pull-manifest-damaged": Message(
        "{file} of {place} cannot be read: {reason}.", "Ask the publisher to push it again."
    ),
    "pull-of-later-release": Message("{place} was pushed by a later release.", "Install that: pip install -U onboard"),
    "pull-older-than-before": Message(
        "{repository} has {reference}, but version {newest} was pulled from it before.",
        "To go back to an older version, pass --allow-older",
    ),
    "pull-older-than-expected": Message(
        "{place} contains {reference}, but version {lowest} or later is expected.", "Ask the publisher."
    ),
    "pull-record-damaged": Message(
        "{path} cannot be read: {reason}.", "Delete it; the record of earlier pulls is then lost."
    ),
    "pull-too-large": Message("{place} has more than {limit_gibibytes} GiB.", "Pull it without the base."),
    "pull-too-many-files": Message(
        "{place} lists {files:,} files; the limit is {limit}.", "Ask the publisher to push it again."
    ),
    "pull-unexpected-task": Message(
        "{place} contains {version}, but the task {expected} is expected.", "Check the location, or leave --expect out."
    ),
    "push-file-foreign": Message(
        "{name} is not a file of a version and cannot be pushed.",
        "Leave it out; onboard fetch writes {own_files}.",
    ),
    "push-with-revision": Message(
        "A push creates a new revision, so the location must not name one.", "Leave the revision out: hf://{repository}"
    ),
    "readout-labels-differ": Message("The readout of {version} has other labels.", "Restore it from a backup."),
    "signature-invalid": Message(
        "The signature model.sig cannot be verified with {key}: {reason}.",
        "Use the publisher's public key, or ask the publisher to push it again.",
    ),
    "signature-missing": Message(
        "The version is not signed, but a signature that {key} verifies is required.",
        "Ask the publisher to push it with --signing-key, or unset the trusted key.",
    ),
    "signature-of-other-place": Message(
        "The files in {place} were signed for {signed_for:.200}.",
        "Pull it from there: onboard pull hf://{signed_for:.200}",
    ),
    "signature-of-other-revision": Message(
        "The files in {place} were signed by an earlier release, without the name of the repository.",
        "Ask the publisher to push and sign it again.",
    ),
    "signing-key-forbidden": Message("The key {key} cannot be read: {reason}.", "Let this user read it."),
    "signing-key-invalid": Message("{key} cannot be used: {kinds} is needed.", "{remedy}"),
    "signing-key-missing": Message("There is no key {key}.", "{remedy}"),
    "task-taught-base": Message(
        "A base was trained on {task!r}, so it cannot be unlearned.",
        "Delete it without --unlearn; to make a base without it: onboard base train",
    ),
    "unknown-hub-version": Message(
        "There is no {place} on the hub, or it is private.", "Check the name; private ones need a token: hf auth login"
    ),
    "unknown-task-to-delete": Message("There is no task {task!r}.{alike}", "List them with: onboard tasks list"),
    "as-before-not-made-of": Message(
        "{version} was not made from {present}, the alias's current version.",
        "Promote it without --as-before; the alias then answers with the labels of the new version.",
    ),
    "as-before-new-alias": Message(
        "The alias is new, so it has no previous labels to answer with for {version}.",
        "Promote it without --as-before.",
    ),
    "as-before-merged": Message(
        "The labels {merged} became {shown!r}, so it has more than one previous name.",
        "Promote it without --as-before.",
    ),
    "as-before-same-name": Message(
        "Two labels of {version} would be called {shown}.", "Promote it without --as-before."
    ),
    "version-file-unreadable": Message(
        "The file of the version cannot be read.", "Check the service with: onboard doctor"
    ),
}
