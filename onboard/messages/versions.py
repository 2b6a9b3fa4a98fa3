"""Messages about versions, the hub and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

VERSIONS: Final[Mapping[str, Message]] = {
    "artifacts-not-deleted": Message(
        "Task {task!r} is deleted, but some of its files are still there: {reason}",
        "When the store can be reached again: onboard gc",
    ),
    "carrying-busy": Message("Other tasks are being carried.", "Try again in a moment."),
    "comparison-busy": Message("Other versions are being compared.", "Try again in a moment."),
    "hub-not-signed-in": Message("Nobody is signed in at the hub.", "{remedy}"),
    "hub-place-invalid": Message("{place!r} is not a place on the hub.", "Write hf://OWNER/NAME."),
    "hub-unreachable-for-version": Message("The hub cannot be reached for {place}: {reason}.", "Try again later."),
    "hub-version-gated": Message("{place} is gated.", "Accept its terms on the hub and sign in: hf auth login"),
    "hub-without-version": Message(
        "{place} contains no version of Onboard.", "Push one: onboard push TASK hf://OWNER/NAME"
    ),
    "hub-write-forbidden": Message("The hub does not let you write to {place}.", "{remedy}"),
    "hypernetwork-moved-while-carrying": Message(
        "The hypernetwork of the base is at version {head} now, not {expected}.", "Carry the task again."
    ),
    "measuring-busy": Message("Other versions are being measured.", "Try again in a moment."),
    "not-better-than-majority": Message(
        "{alias} is new, and {version} was not shown to be better than always giving the commonest answer.",
        "See how it was measured: onboard tasks show {task}; or promote it all the same, without --if-better",
    ),
    "not-better-than-present": Message("{version} is {verdict} than {alias}, v{present}: {reason}", "{how}{back}"),
    "onnx-answers-differ": Message(
        "The model as ONNX answers otherwise than the service (by {apart:.2g} in log-probability).",
        "Export it with --format adapters.",
    ),
    "onnx-not-installed": Message(
        "ONNX needs a package that is not installed: {reason}.", "Install it: pip install 'onboard[onnx]'"
    ),
    "onnx-too-large": Message(
        "The T5 of base {base} has {gigabytes:.1f} GB, and a file of ONNX contains 2 GB.",
        "Export it with --format adapters.",
    ),
    "pull-bytes-differ": Message(
        "{repository} offers {reference} with other bytes than were pulled from there before.",
        "Versions never change: ask whoever pushed it. If it is meant: --allow-older",
    ),
    "pull-file-damaged": Message(
        "{file} of {place} differs from its digest.", "Pull another revision, or have it pushed again."
    ),
    "pull-file-exists": Message(
        "{file} exists with other content.", "Name another folder with --output, or overwrite it with --force."
    ),
    "pull-file-missing": Message("{place} lacks {file}.", "Have it pushed again."),
    "pull-file-name-invalid": Message(
        "{place} lists {file!r}, which is not a file of a version.",
        "A version has {own_files} and the files of a base in base/.",
    ),
    "pull-folder-occupied": Message("{folder} has other content.", "Name another folder with --output."),
    "pull-manifest-damaged": Message("{file} of {place} cannot be read: {reason}.", "Have it pushed again."),
    "pull-of-later-release": Message("{place} was pushed by a later release.", "Install that: pip install -U onboard"),
    "pull-older-than-before": Message(
        "{repository} offers {reference}, and version {newest} was pulled from there before.",
        "If going back is meant: --allow-older",
    ),
    "pull-older-than-expected": Message(
        "{place} contains {reference}, and version {lowest} or a later one is expected.", "Ask whoever pushes it."
    ),
    "pull-record-damaged": Message(
        "{path} cannot be read: {reason}.", "Delete it; the record of earlier pulls is then lost."
    ),
    "pull-too-large": Message("{place} has more than {limit_gibibytes} GiB.", "Pull it without the base."),
    "pull-too-many-files": Message("{place} lists {files:,} files; the limit is {limit}.", "Have it pushed again."),
    "pull-unexpected-task": Message(
        "{place} contains {version}, and the task {expected} is expected.", "Check the place, or leave --expect out."
    ),
    "push-file-foreign": Message(
        "{name} is not a file of a version, and is not pushed.",
        "Leave it out, or look at what onboard fetch writes: {own_files}.",
    ),
    "push-with-revision": Message(
        "A push creates a new revision, so the place must not name one.", "Leave the revision out: hf://{repository}"
    ),
    "readout-labels-differ": Message("The readout of {version} has other labels.", "Restore it from a backup."),
    "signature-invalid": Message(
        "The signature model.sig does not contain under {key}: {reason}.",
        "Use the public key of whoever pushed it, or have it pushed again.",
    ),
    "signature-missing": Message(
        "It is not signed, and a signature that {key} verifies is demanded.",
        "Have it pushed with --signing-key, or unset the trusted key.",
    ),
    "signature-of-other-place": Message(
        "The files in {place} were signed for {signed_for:.200}.",
        "Pull it from there: onboard pull hf://{signed_for:.200}",
    ),
    "signature-of-other-revision": Message(
        "The files in {place} were signed by an earlier release, without the name of the repository.",
        "Have it pushed and signed again.",
    ),
    "signing-key-forbidden": Message("The key {key} cannot be read: {reason}.", "Let this user read it."),
    "signing-key-invalid": Message("{key} is not a key that can be used here: {kinds} is needed.", "{remedy}"),
    "signing-key-missing": Message("There is no key {key}.", "{remedy}"),
    "task-taught-base": Message(
        "A base was trained on {task!r}, so it cannot be unlearned.",
        "Delete it without --unlearn; a base without it is made by: onboard base train",
    ),
    "unknown-hub-version": Message(
        "There is no {place} on the hub, or it is private.", "Check the name; private ones need a token: hf auth login"
    ),
    "unknown-task-to-delete": Message("There is no task {task!r}.{alike}", "List them with: onboard tasks list"),
    "as-before-not-made-of": Message(
        "{version} was not made from {present}, which the alias means now.",
        "Promote it without --as-before; then the alias answers with the labels of the new version.",
    ),
    "as-before-new-alias": Message(
        "The alias is new, so nobody knows {version} by earlier labels.", "Promote it without --as-before."
    ),
    "as-before-merged": Message(
        "The labels {merged} became {shown!r}, so it has more than one earlier name.", "Promote it without --as-before."
    ),
    "as-before-same-name": Message(
        "Two labels of {version} would be called {shown}.", "Promote it without --as-before."
    ),
    "version-file-unreadable": Message(
        "The file of the version cannot be read.", "Check the service with: onboard doctor"
    ),
}
