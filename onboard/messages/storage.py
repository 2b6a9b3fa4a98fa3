"""Messages about stored artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

STORAGE: Final[Mapping[str, Message]] = {
    "artifact-damaged": Message("The artifact {digest} {damaged}", "{remedy}"),
    "artifact-damaged-in-store": Message("The artifact {digest} in {url} {damaged}", "{remedy}"),
    "artifact-gone": Message("The artifact {digest} is missing.", "Restore it from a backup."),
    "artifact-not-in-store": Message("The artifact {digest} is not in {url}.", "Restore it from a backup."),
    "bucket-not-writable": Message("{url} cannot be written: {reason}.", "Create the bucket, then retry."),
    "credentials-in-url": Message(
        "{option} contains credentials that everyone who sees the job could read.",
        "Pass them in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile.",
    ),
    "digest-invalid": Message("{digest!r} is not the digest of an artifact.", "A digest is sha256: and 64 characters."),
    "embedding-digest-differs": Message(
        "The embedding of {version} does not match its digest.", "Restore it from a backup."
    ),
    "embedding-not-finite": Message(
        "The stored task embedding contains values that are not finite.", "Restore it from a backup."
    ),
    "embedding-unreadable": Message(
        "The bytes do not contain a task embedding.", "Check the service with: onboard doctor"
    ),
    "lesson-of-other-base": Message(
        "The lesson belongs to base {pinned:.19}…, not to {present:.19}….", "Submit the task again on this base."
    ),
    "lesson-unreadable": Message("The bytes do not contain a lesson.", "Check the service with: onboard doctor"),
    "novelty-digest-differs": Message(
        "The novelty statistics of the version do not match their digest.", "Fetch the version again."
    ),
    "novelty-unreadable": Message(
        "The file of the version does not contain its novelty statistics.", "Check the service with: onboard doctor"
    ),
    "output-forbidden": Message(
        "{output} cannot be written: {reason}.", "Choose a folder that you can write to with --output."
    ),
    "output-not-writable": Message("{output} cannot be written: {reason}.", "{remedy}"),
    "readout-of-other-base": Message(
        "The readout is pinned to base {pinned:.19}…, not to {present:.19}….",
        "Set ONBOARD_BASE to the base that the version was trained on, or submit the task again.",
    ),
    "readout-unreadable": Message("The bytes do not contain a readout.", "Check the service with: onboard doctor"),
    "store-failed": Message(
        "In {store} {failed}: {reason}.",
        "Check the connection to the store, {setting} and its credentials, then retry.",
    ),
    "store-file-missing": Message("A store of the service has no {name}.", "Restore it from a backup."),
    "store-file-missing-at": Message("{url} has no {name}.", "Restore it from a backup."),
    "store-forbidden": Message("In {store} {failed}: {reason}.", "{mend}, or set {setting} to another location."),
    "store-full": Message("In {store} {failed}: {reason}.", "Free some space, then retry."),
    "store-unusable": Message("A store of the service cannot be used{reason}.", "{remedy}"),
    "store-url-unusable": Message(
        "{purpose} cannot be opened: {reason}.", "For s3:// run: pip install 'onboard[s3]'; or correct {setting}."
    ),
    "stored-answers-damaged": Message(
        "The stored cross-validated answers of the version are damaged.", "Check the service with: onboard doctor"
    ),
    "weights-digest-differs": Message(
        "The weights of {version} do not match their digest.", "Restore it from a backup."
    ),
    "weights-unreadable": Message(
        "The bytes do not contain the weights of a task.", "Check the service with: onboard doctor"
    ),
    "features-of-other-base": Message("The features belong to another base.", "Submit the task again on this base."),
    "features-unreadable": Message("The bytes do not contain features.", "Check the service with: onboard doctor"),
}
