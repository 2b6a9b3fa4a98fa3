"""Messages about stored artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

STORAGE: Final[Mapping[str, Message]] = {
    "artifact-damaged": Message("The artifact {digest} {damaged}", "{remedy}"),
    "artifact-damaged-in-store": Message("The artifact {digest} in {url} {damaged}", "{remedy}"),
    "artifact-gone": Message("The artifact {digest} is gone."),
    "artifact-not-in-store": Message("The artifact {digest} is not in {url}."),
    "bucket-not-writable": Message("{url} cannot be written: {reason}.", "Make the bucket, then retry."),
    "credentials-in-url": Message(
        "{option} has credentials in it, which everybody who sees the job would read.",
        "Give them by the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile.",
    ),
    "digest-invalid": Message("{digest!r} is not the digest of an artifact.", "A digest is sha256: and 64 characters."),
    "embedding-digest-differs": Message(
        "The embedding of {version} does not match its digest.", "restore it from a backup"
    ),
    "embedding-not-finite": Message("The stored task embedding holds what is no number.", "restore it from a backup"),
    "embedding-unreadable": Message("The bytes hold no task embedding.", "onboard doctor"),
    "lesson-of-other-base": Message(
        "The lesson belongs to base {pinned:.19}…, not to {present:.19}….", "Submit the task again on this base."
    ),
    "lesson-unreadable": Message("The bytes hold no lesson.", "onboard doctor"),
    "novelty-digest-differs": Message("What the version knows of texts does not match its digest.", "Fetch it again."),
    "novelty-unreadable": Message("The file of the version does not hold what it knows.", "onboard doctor"),
    "output-forbidden": Message("{output} cannot be written: {reason}.", "--output a folder that you can write to"),
    "output-not-writable": Message("{output} cannot be written: {reason}.", "{remedy}"),
    "readout-of-other-base": Message(
        "The readout is pinned to base {pinned:.19}…, not to {present:.19}….",
        "set ONBOARD_BASE to the base that it was trained on, or submit the task again",
    ),
    "readout-unreadable": Message("The bytes hold no readout.", "onboard doctor"),
    "store-failed": Message(
        "In {store} {failed}: {reason}.",
        "See that the store can be reached, and that {setting} and its credentials are right, then retry.",
    ),
    "store-file-missing": Message("A store of the service has no {name}."),
    "store-file-missing-at": Message("{url} has no {name}."),
    "store-forbidden": Message("In {store} {failed}: {reason}.", "{mend}, or let {setting} name another place."),
    "store-full": Message("In {store} {failed}: {reason}.", "Free some space, then retry."),
    "store-unusable": Message("A store of the service cannot be used{reason}.", "{remedy}"),
    "store-url-unusable": Message(
        "{purpose} cannot be opened: {reason}.", "For s3:// run: pip install 'onboard[s3]'; or correct {setting}."
    ),
    "stored-answers-damaged": Message(
        "The stored cross-validated answers of the version are damaged.", "onboard doctor"
    ),
    "weights-digest-differs": Message(
        "The weights of {version} do not match their digest.", "restore it from a backup"
    ),
    "weights-unreadable": Message("The bytes hold no weights of a task.", "onboard doctor"),
}
