"""`onboard predict --queue`: files answered by a job whose shards workers share, whatever happens to them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.command_line import CommandLine
from support.published import add_version, embedding_of
from support.real_s3 import S3Server

from bench.harness.services import wait_until
from onboard.bases import Base
from onboard.domain.bulk import MAX_SHARD_ATTEMPTS
from onboard.domain.job import Job, JobState
from onboard.errors import StorageError
from onboard.pipeline.run import run
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.shards import ShardRepository
from onboard.serving.bulk import answering, job, outputs, plan
from workers.helping import help_out
from workers.shell import work

LABELS = ("sad", "happy")
WORDS = ("good film", "a bad plot", "the film was great and not sad", "awful")
ROWS = 46


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHARD_ROWS", 10)
    monkeypatch.setattr(answering, "_ROWS_AT_ONCE", 4)
    monkeypatch.setattr(job, "_LOOK_SECONDS", 0.02)
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")


@pytest.fixture
def command(tiny_services: Services, tiny_base: Base, command_line: CommandLine) -> CommandLine:
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), pairs=False)
    add_version(tiny_services, tiny_base, "alike", LABELS, LABELS, z=embedding_of(3), pairs=True)
    command_line.at_home(tiny_services.settings)
    return command_line


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of two files: 34 rows, one of them bad, and 12."""
    folder = tmp_path / "in"
    folder.mkdir()
    texts = [WORDS[n % 4] if n != 21 else "" for n in range(34)]
    parquet.write_table(pa.table({"text": texts, "id": range(34)}), folder / "a.parquet")
    lines = [json.dumps({"text": WORDS[n % 4], "id": n}) + "\n" for n in range(34, ROWS)]
    (folder / "b.jsonl").write_text("".join(lines))
    return folder


def submit(command: CommandLine, source: object, output: object, task: str = "mood") -> str:
    said = command("predict", task, "--input", source, "--output", output, "--queue", "default", "--json")
    assert said.code == 0, said.err
    return str(said.document["job"])


def worked(services: Services, worker: str = "w1") -> Job:
    done = work(services, worker, ["default"], run, heartbeat_seconds=0.05)
    assert done is not None
    return done


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("part-*")) for line in path.read_text().splitlines()]


def require_whole(rows: list[dict[str, Any]]) -> None:
    """Every row is answered once, in order, the bad one in its place."""
    assert [row.get("id") for row in rows] == [n if n != 21 else None for n in range(ROWS)]
    assert rows[21]["error"]["row"] == 22
    assert all(row["label"] in LABELS for row in rows if "error" not in row)


def in_the_middle(monkeypatch: pytest.MonkeyPatch, place: int, act: Callable[[], object]) -> None:
    """Do something just before the publishing of so many shards has begun."""
    published, done = outputs.LocalOutputs.publish, []

    def publish(self: Any, part: Path, name: str) -> None:
        if name.startswith("part-"):
            done.append(name)
            if len(done) == place:
                act()
        published(self, part, name)

    monkeypatch.setattr(outputs.LocalOutputs, "publish", publish)


def test_a_job_answers_every_row_and_says_how_far_it_is(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path
) -> None:
    job_id = submit(command, source, tmp_path / "out")
    assert command("jobs", "show", job_id).code == 0  # while it waits
    assert worked(tiny_services).state is JobState.SUCCEEDED
    require_whole(rows_in(tmp_path / "out"))
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [*(f"part-{n:06d}.jsonl" for n in range(6)), "plan.json"]
    said = command("jobs", "watch", job_id, "--json")
    assert (said.document["rows"], said.document["bad_rows"], said.document["versions"]) == (ROWS, 1, ["mood@v1"])
    assert "46 of 46 rows" in said.err
    shown = command("jobs", "show", job_id, "--report", tmp_path / "report.html")
    assert "46 rows are answered by `mood@v1`" in shown.out
    assert "46 rows are answered" in (tmp_path / "report.html").read_text()
    alone = command("predict", "mood", "--input", source, "--output", tmp_path / "alone")
    assert alone.code == 0
    assert rows_in(tmp_path / "alone") == rows_in(tmp_path / "out")
    again = submit(command, source, tmp_path / "out")  # the same run, which is done
    assert worked(tiny_services).id == again
    require_whole(rows_in(tmp_path / "out"))


def test_a_job_that_is_to_refuse_bad_rows_fails_before_it_answers_any(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path
) -> None:
    asked = ("predict", "mood", "--input", source, "--queue", "default", "--on-error", "refuse", "--json")
    assert command(*asked, "--output", tmp_path / "out").code == 0
    failed = worked(tiny_services)
    assert (failed.state, failed.attempt) == (JobState.FAILED, 1)  # another attempt would find the same rows
    assert failed.error is not None
    assert (failed.error["type"], failed.error["bad_rows"]) == ("rows-not-answerable", 1)
    assert rows_in(tmp_path / "out") == []
    (source / "a.parquet").unlink()  # the bad row was there
    assert command(*asked, "--output", tmp_path / "out").code == 0
    assert worked(tiny_services).state is JobState.SUCCEEDED
    assert command(*asked[:-1], "--on-error", "anything", "--output", tmp_path / "more").code == 2
    skipped = submit(command, source, tmp_path / "skipped")
    assert (worked(tiny_services).id, rows_in(tmp_path / "skipped")) == (skipped, rows_in(tmp_path / "out"))


def test_helpers_share_the_shards_of_a_job_that_runs(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(command, source, tmp_path / "out")
    helped: list[bool] = []

    def help_with_the_rest() -> None:
        thread = threading.Thread(
            target=lambda: helped.append(help_out(tiny_services, "w2", ["default"], 60.0, 0.05)), daemon=True
        )
        thread.start()

    monkeypatch.setattr(job._Telling, "look", slow_look(job._Telling.look, help_with_the_rest))
    monkeypatch.setattr(job, "_NOTE_SECONDS", 0.0)
    assert worked(tiny_services).state is JobState.SUCCEEDED
    wait_until(lambda: helped, 20, "the helper")
    require_whole(rows_in(tmp_path / "out"))
    assert help_out(tiny_services, "w2", ["default"], 60.0, 0.05) is False
    with tiny_services.database.read() as session:
        assert ShardRepository(session).holders() == {}


def slow_look(look: Callable[..., Any], begin: Callable[[], None]) -> Callable[..., Any]:
    """The one who runs the job begins with help, and is slower than it."""
    begun: list[bool] = []

    def looked(self: Any) -> Any:
        if not begun:
            begun.append(True)
            begin()
        threading.Event().wait(0.05)
        return look(self)

    return looked


def test_who_is_fenced_in_the_middle_writes_nothing_and_the_next_goes_on(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(command, source, tmp_path / "out")

    class Killed(BaseException):
        """As kill -9 in the middle of a shard: nothing is tidied up."""

    def die() -> None:
        raise Killed

    in_the_middle(monkeypatch, 3, die)
    monkeypatch.setattr(ShardRepository, "give_back", lambda *_: None)
    with pytest.raises(Killed):
        work(tiny_services, "w1", ["default"], run)
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("part-*")}
    assert len(written) == 2
    (tmp_path / "out" / ".part-000002.jsonl.1.part").write_text("half a li")
    with tiny_services.database.write() as session:  # as the worker's parent does
        ClaimRepository(session).expire("w1", os.getpid())
        ShardRepository(session).expire("w1", os.getpid())
    assert worked(tiny_services, "w2").state is JobState.SUCCEEDED
    require_whole(rows_in(tmp_path / "out"))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in written} == written
    assert not list((tmp_path / "out").glob(".*"))
    with tiny_services.database.read() as session:
        assert JobRepository(session).get(job_id).attempt == 2


def test_a_cancelled_job_stops_and_a_retry_goes_on_where_it_was(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submit(command, source, tmp_path / "out")

    def cancel() -> None:
        raise StorageError("away")

    in_the_middle(monkeypatch, 4, cancel)
    assert worked(tiny_services).state is JobState.QUEUED  # a store that is away is tried again
    assert command("jobs", "cancel", job_id).code == 0
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    assert len(before) == 3
    assert command("jobs", "retry", job_id).code == 0
    assert worked(tiny_services).state is JobState.SUCCEEDED
    require_whole(rows_in(tmp_path / "out"))
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in before} == before


def test_an_input_that_changes_ends_the_job_whoever_meets_it(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(command, source, tmp_path / "out")
    content = (source / "b.jsonl").read_text()
    in_the_middle(monkeypatch, 2, lambda: (source / "b.jsonl").write_text(content + content))
    ended = worked(tiny_services)
    assert ended.state is JobState.FAILED
    assert "b.jsonl has changed" in (ended.error or {})["message"]
    assert len(rows_in(tmp_path / "out")) == 34  # of the other file
    later = submit(command, source, tmp_path / "later")
    (source / "c.jsonl").write_text(content)
    refused = worked(tiny_services)
    assert (refused.id, refused.state) == (later, JobState.FAILED)
    assert "2 files" in (refused.error or {})["message"]
    assert not (tmp_path / "later" / "plan.json").exists()


def test_a_helper_that_cannot_answer_ends_the_job_and_a_shard_that_kills_too(
    command: CommandLine, tiny_services: Services, source: Path, tmp_path: Path
) -> None:
    job_id = submit(command, source, tmp_path / "out")
    with tiny_services.database.write() as session:
        ClaimRepository(session).claim("w1", ["default"], pid=1)
        ShardRepository(session).add(job_id, [10, 10, 10, 4, 10, 2], done=())
    assert help_out(tiny_services, "w2", ["default"], 60.0, 0.05)  # the plan is not where it ought to be
    with tiny_services.database.write() as session:
        ClaimRepository(session).expire("w1", 1)
    ended = worked(tiny_services)
    assert ended.state is JobState.FAILED
    assert (ended.error or {})["worker"] == "w2"
    assert "all workers" in (ended.error or {})["remedy"]
    assert command("jobs", "retry", job_id).code == 0
    with tiny_services.database.write() as session:
        ClaimRepository(session).claim("w1", ["default"], pid=1)
        for _ in range(MAX_SHARD_ATTEMPTS):
            ShardRepository(session).claim(job_id, "w3", pid=3)
            ShardRepository(session).expire("w3", 3)
        ClaimRepository(session).expire("w1", 1)
    ended = worked(tiny_services)
    assert (ended.error or {})["type"] == "shard-lost"


@pytest.mark.parametrize(
    ("words", "code", "type_"),
    [
        (("nothing",), 3, "unknown-task"),
        (("alike",), 2, "input-pairs-differ"),
        (("mood", "--text-field", "body"), 2, "unknown-field"),
        (("mood", "--labels", "happy,furious"), 2, "input-labels-wrong"),
        (("mood", "--queue", "No Name"), 2, "name-invalid"),
    ],
)
def test_what_cannot_be_answered_is_told_before_anything_is_queued(
    command: CommandLine, source: Path, tmp_path: Path, words: tuple[str, ...], code: int, type_: str
) -> None:
    said = command("predict", "--input", source, "--output", tmp_path / "out", "--queue", "default", *words, "--json")
    assert (said.code, said.error["type"]) == (code, type_), said.err
    assert command("jobs", "list", "--json").document["jobs"] == []


def test_outputs_that_hold_something_or_are_another_jobs_are_refused(
    command: CommandLine, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(output: object, **_: object) -> str:
        said = command("predict", "mood", "--input", source, "--output", output, "--queue", "default", "--json")
        assert said.code in (2, 4, 6)
        return str(said.error["type"])

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("all of it")
    assert refused(tmp_path / "full") == "output-has-other-files"
    assert refused(source / "out") == "output-inside-input"
    submit(command, source, tmp_path / "out")
    assert refused(tmp_path / "out") == "output-being-written"
    monkeypatch.setenv("ONBOARD_API_URL", "http://127.0.0.1:1")
    assert refused(tmp_path / "other") == "command-needs-service-machine"


def test_objects_of_a_bucket_are_read_by_pattern_and_answered_into_it(
    command: CommandLine, tiny_services: Services, source: Path, s3_url: str, s3_server: S3Server, tmp_path: Path
) -> None:
    client, place = s3_server.client(), "s3://onboard"
    assert s3_url.startswith(place)
    for name in ("a.parquet", "b.jsonl"):
        client.upload_file(str(source / name), "onboard", f"in/{name}")
    client.put_object(Bucket="onboard", Key="in/notes.txt", Body=b"not data")
    submit(command, f"{place}/in/[ab].*", f"{place}/out/")
    assert worked(tiny_services).state is JobState.SUCCEEDED
    keys = [stored["Key"] for stored in client.list_objects_v2(Bucket="onboard", Prefix="out/")["Contents"]]
    assert keys == [*(f"out/part-{n:06d}.jsonl" for n in range(6)), "out/plan.json"]
    for key in keys:
        client.download_file("onboard", key, str(tmp_path / key.rpartition("/")[2]))
    require_whole(rows_in(tmp_path))
    alone = command("predict", "mood", "--input", f"{place}/in/b.jsonl", "--output", f"{place}/alone")
    assert (alone.code, "12 rows are in" in alone.out) == (0, True), alone.err
    later = submit(command, f"{place}/in/*.jsonl", f"{place}/later")
    client.put_object(Bucket="onboard", Key="in/b.jsonl", Body=b'{"text": "other"}\n')
    ended = worked(tiny_services)
    assert (ended.id, ended.state) == (later, JobState.FAILED)
    assert (ended.error or {})["type"] == "source-changed"
    for words, type_ in (
        (("--input", f"{place}/nothing", "--output", f"{place}/o"), "input-url-missing"),
        (("--input", "s3://absent/in", "--output", f"{place}/o"), "input-url-missing"),
        (("--input", f"{place}/in", "--output", f"{place}/out"), "output-of-other-input"),
        (("--input", "s3://key:secret@onboard/in", "--output", f"{place}/o"), "credentials-in-url"),
    ):
        assert command("predict", "mood", *words, "--queue", "default", "--json").error["type"] == type_
