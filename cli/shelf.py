"""`onboard push` and `onboard pull`: versions on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit, say
from onboard.domain.temporary import temporary_folder

if TYPE_CHECKING:
    from onboard.domain.task import EmbeddingVersion


def push(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    place: Annotated[str, typer.Argument(help="hf://OWNER/NAME, created if it does not exist.")],
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Push the base as well, so that other machines can predict.")
    ] = False,
    licence: Annotated[str, typer.Option(metavar="NAME", help="License for the card, such as apache-2.0.")] = "",
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    signing_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key (PEM) to sign with. Defaults to ONBOARD_SIGNING_KEY."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Upload a version to the Hugging Face hub: embedding, card, pins and the digest of every file."""
    from onboard.domain.task import EmbeddingVersion
    from onboard.settings import Settings
    from onboard.versions import hub_place, shelf

    key, where = signing_key or Settings().signing_key, hub_place.HubPlace.parse(place)
    with connected() as service, temporary_folder("onboard-push-") as folder:
        document = service.version_document(task)
        version = EmbeddingVersion.from_json(document)
        service.fetch(version.reference, folder, bundle)
        pushed = shelf.push(version, folder, where, licence=licence, private=private, key=key)
    if not pushed.has_base:
        say(f"the base {version.base_digest} is not included; users need it, or push with --bundle")
    emit({**document, **pushed.to_document().to_json()}, as_json, lambda: f"{version.reference} is on {pushed.place}")


def pull(
    place: Annotated[str, typer.Argument(help="hf://OWNER/NAME[@REVISION].")],
    output: Annotated[Path | None, typer.Option(help="Folder. Defaults to ./TASK-vN.")] = None,
    trusted_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Public key (PEM) to verify the signature with. Defaults to ONBOARD_TRUSTED_KEY."
        ),
    ] = None,
    expect: Annotated[
        str | None, typer.Option(metavar="TASK[@vN]", help="Refuse any other task, and versions older than vN.")
    ] = None,
    allow_older: Annotated[
        bool,
        typer.Option(
            "--allow-older", help="Allow a version older than the newest one that was pulled from this repository."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Download a version from the Hugging Face hub, verified by digest, in the format of `onboard fetch`."""
    from onboard.contract.versions import VersionDocument
    from onboard.domain.names import Reference
    from onboard.settings import Settings
    from onboard.versions import hub_place, pulling

    def folder(version: EmbeddingVersion) -> Path:
        return output or Path(f"{version.task}-v{version.version}")

    settings = Settings()
    terms = pulling.PullTerms(
        key=trusted_key or settings.trusted_key, expected=Reference.parse(expect) if expect else None,
        allow_older=allow_older, overwrite=force, home=settings.resolved_home,
    )  # fmt: skip
    pulled = pulling.pull(hub_place.HubPlace.parse(place), folder, terms)
    if pulled.signed and not pulled.verified:
        say("it is signed, but the signature was not checked: pass --trusted-key FILE with the publisher's public key")
    files = [str(path) for path in pulled.files]
    signature = {"signed": pulled.signed, "signature_verified": pulled.verified}
    document = {**VersionDocument.of(pulled.version).to_json(), "commit": pulled.commit, **signature, "files": files}
    emit(document, as_json, lambda: "\n".join([pulled.version.reference, *files]))
