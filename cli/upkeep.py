"""`onboard gc`, `onboard backup`, `onboard restore`: what a service needs of those who run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.output import AsJson, emit, say, table
from cli.services import local_only, opened
from onboard.contract.upkeep import Amount, BackupDocument, RestoredDocument
from onboard.domain.counting import counted, size_text

if TYPE_CHECKING:
    from cli.columns import Columns
    from onboard.operations.backup.restore import RestoreResult
    from onboard.operations.gc import Garbage

_DAMAGED, _REFUSED = 1, 4  # exit codes


@local_only("gc")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted, without deleting.")] = False,
    older_than: Annotated[
        float, typer.Option(min=1, help="Keep files newer than this many hours; a running job may still need them.")
    ] = 24,
    as_json: AsJson = False,
) -> None:
    """Delete unused files, and data past ONBOARD_RETENTION_…. Versions are never deleted.

    Exits with 1 if needed files are missing.
    """
    from onboard.operations.gc import collect_garbage

    with opened(register=False) as services:
        garbage = collect_garbage(services, older_than_hours=older_than, dry_run=dry_run)
    emit(garbage.to_document().to_json(), as_json, lambda: _freed(garbage))
    for artifact in garbage.damaged:
        say(f"error: {artifact['digest']} is {artifact['problem']}; needed by {', '.join(artifact['used_by'])}")
    if garbage.damaged:
        say("  → Copy these files back from a backup: docs/how-to/troubleshoot.md, An artifact is missing or damaged")
        raise typer.Exit(_DAMAGED)
    if garbage.foreign.count:
        unknown, known = garbage.foreign.count, garbage.known
        say(f"error: {unknown} stored artifacts are unknown to this database, which knows {known}; none was deleted")
        say("  → Check whether ONBOARD_ARTIFACT_URL is the store of another service. Every service needs its own")
        raise typer.Exit(_REFUSED)


@local_only("backup")
def backup(
    target: Annotated[str, typer.Argument(metavar="DIR|FILE", help="Folder, URL (s3://…), or file named ….zip.")],
    as_json: AsJson = False,
) -> None:
    """Copy database and artifacts of the running service; into the same folder, only new files.

    Exits with 1 if the service itself lacks artifacts; the rest is backed up.
    """
    from onboard.operations.backup.make import back_up

    with opened(register=False) as services:
        manifest, copied = back_up(services, target, say)
    document = BackupDocument.of(
        manifest, backup=target, absent=copied.absent, present=copied.present,
        copied=Amount(count=copied.copied, size_bytes=copied.copied_bytes),
    )  # fmt: skip
    said = (
        f"{target}: {sum(document.rows.values())} rows, {manifest.artifacts['count']} artifacts "
        f"({copied.copied} copied, {size_text(copied.copied_bytes)}; {copied.present} were there)"
    )
    emit(document.to_json(), as_json, lambda: said)
    for artifact in copied.absent:
        what = f"{artifact['digest']} ({artifact['kind']})"
        say(f"error: {what} is {artifact['problem']} in the service, so not in the backup")
    if copied.absent:
        say("  → onboard gc lists what needs them; an earlier backup may still have them")
        raise typer.Exit(_DAMAGED)


@local_only("restore")
def restore(
    source: Annotated[str, typer.Argument(metavar="DIR|FILE", help="Folder, URL or zip file of a backup.")],
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Keep tokens valid as in the backup, including those revoked since.")
    ] = False,
    send_webhooks: Annotated[
        bool, typer.Option("--send-webhooks", help="Send undelivered webhooks, some possibly twice.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty service, on SQLite or PostgreSQL, with a folder or an object store.

    Revokes tokens and drops undelivered webhooks by default.
    """
    from onboard.operations.backup.restore import restore as fill
    from onboard.registry.load import GoingOn
    from onboard.settings import Settings

    restored = fill(Settings(), source, say, GoingOn(tokens=keep_tokens, webhooks=send_webhooks))
    emit(_restored(restored).to_json(), as_json, lambda: _told(restored))
    if restored.loaded.kept_tokens:
        kept_tokens = restored.loaded.kept_tokens
        work = f"{counted(kept_tokens, 'token')} {'works' if kept_tokens == 1 else 'work'}"
        say(f"warning: {work} as in the backup, even if revoked since")
        say("  → Check them: onboard token list")
    for base in restored.bases:
        if base["versions"] and base["folder"] is None:
            say(f"warning: base {base['name']} ({base['digest']}) is not here, and {base['versions']} versions need it")
            say("  → Copy its folder to ONBOARD_HOME/bases, or set ONBOARD_BASE to it")


def _freed(garbage: Garbage) -> Columns:
    amounts = [(f"artifacts: {kind}", amount) for kind, amount in sorted(garbage.artifacts.items())]
    amounts += [("unfinished files", garbage.unfinished)] if garbage.unfinished.count else []
    rows = [(what, str(amount.count), size_text(amount.size_bytes)) for what, amount in amounts]
    rows += [(f"rows: {name}", str(count), "") for name, count in garbage.rows.items()]
    rows.append(("files in all", str(garbage.freed.count), size_text(garbage.freed.size_bytes)))
    return table(("would be deleted" if garbage.dry_run else "deleted", "count", "size"), rows)


def _restored(restored: RestoreResult) -> RestoredDocument:
    manifest, loaded, copied = restored.manifest, restored.loaded, restored.artifacts
    return RestoredDocument.of(
        manifest, backup_revision=manifest.revision,
        copied=Amount(count=copied.copied, size_bytes=copied.copied_bytes), present=copied.present,
        requeued=loaded.unfinished.requeued, cancelled=loaded.unfinished.cancelled,
        revoked_tokens=loaded.revoked_tokens, kept_tokens=loaded.kept_tokens, dropped_webhooks=loaded.dropped_webhooks,
        bases=restored.bases,
    )  # fmt: skip


def _are(count: int, noun: str) -> str:
    """ "1 token is", "2 tokens are"."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def _told(restored: RestoreResult) -> str:
    manifest, done, loaded = restored.manifest, restored.artifacts, restored.loaded
    waiting = loaded.unfinished.requeued
    lines = [
        f"restored as of {manifest.created_at}: {sum(table.rows for table in manifest.tables.values())} rows, "
        f"{done.copied + done.present} artifacts ({done.copied} copied, "
        f"{size_text(done.copied_bytes)}; {done.present} were there)"
    ]
    if waiting:
        lines.append(f"queued again because they were running: {', '.join(waiting)}")
    if loaded.revoked_tokens:
        lines.append(
            f"{_are(loaded.revoked_tokens, 'token')} revoked; create new ones: onboard token create NAME --scope …"
        )
    if loaded.dropped_webhooks:
        lines.append(f"{counted(loaded.dropped_webhooks, 'webhook')} that had not been delivered will not be sent")
    if manifest.absent:
        lines.append(f"{counted(len(manifest.absent), 'artifact')} lost before the backup was made; see onboard gc")
    lines += [f"base {base['name']} {base['digest']}: {base['folder'] or 'not here'}" for base in restored.bases]
    return "\n".join(lines)
