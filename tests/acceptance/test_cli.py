"""The `onboard` program from the outside: what it prints, how it exits, what it leaves."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from program import Finished, Place, kill_tree
from real_jobs import opinions
from real_services import wait_until

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.embedding import embedding_digest, unpack_embedding
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository
from onboard.services import Services
from onboard.serving import Predictor

NOBODY = 65534
NO_BROKER = "redis://:hunter2@127.0.0.1:9/0"
DOCUMENT = {
    "job", "state", "task", "version", "embedding_digest", "hypernetwork_version", "init", "metrics", "guard",
    "seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def open_base(tiny_base: Base) -> Iterator[Path]:
    """The base where every user of this machine can read it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copytree(tiny_base.folder, Path(folder) / "base"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, open_base: Path) -> Iterator[Place]:
    """The home of this file's tests: one task is learned in it, and its worker stays for a while."""
    place = Place(tmp_path_factory.mktemp("place"), open_base)
    yield place
    place.leave()


@pytest.fixture
def elsewhere(tmp_path: Path, open_base: Path) -> Iterator[Place]:
    """An empty home."""
    place = Place(tmp_path / "elsewhere", open_base)
    place.folder.mkdir()
    yield place
    place.leave()


@pytest.fixture(scope="module")
def learned(place: Place) -> Finished:
    """`onboard submit --wait --json`: enough rows to hold some out."""
    rows = place.write("mood.jsonl", opinions(70))
    test = place.write("test.jsonl", opinions(12, start=100))
    return place.run("submit", "--dataset", rows, "--test", test, "--wait", "--json")


def remedy_of(done: Finished) -> str:
    """The last line on standard error, which says what to do."""
    last = done.stderr.rstrip("\n").splitlines()[-1]
    assert last.startswith("  → "), done.stderr
    assert "Traceback" not in done.stderr
    return last.removeprefix("  → ")


# ---- the way of a task, from the outside


def test_submit_and_wait_prints_one_document_on_stdout_and_progress_only_on_stderr(learned: Finished) -> None:
    assert learned.returncode == 0, learned.stderr
    document = json.loads(learned.stdout)
    assert set(document) == DOCUMENT
    assert (document["state"], document["task"], document["version"]) == ("succeeded", "mood", 1)
    assert {"accuracy", "macro_f1"} <= set(document["metrics"]["validation"])
    assert document["metrics"]["test"]["accuracy"]["n"] == 12
    assert {"chosen", "candidates"} <= set(document["init"])
    for stage in ("check", "probe", "train", "evaluate", "publish"):
        assert f"{stage}: done in" in learned.stderr
        assert stage in document["seconds"]
    assert "started a worker" in learned.stderr
    assert "{" not in learned.stderr


def test_a_second_submit_starts_no_second_worker_and_makes_the_next_version(place: Place, learned: Finished) -> None:
    assert len([worker for worker in place.workers() if worker.live]) == 1
    done = place.run("submit", "--dataset", place.folder / "mood.jsonl", "--wait", "--seed", "1", "--shots", "6")
    assert done.returncode == 0, done.stderr
    assert "started a worker" not in done.stderr
    assert "mood" in done.stdout
    assert len(place.workers()) == 1
    document = place.json("versions", "mood")
    assert [version["version"] for version in document["versions"]] == [1, 2]
    assert document["aliases"]["latest"] in (1, 2)


def test_fetch_writes_the_verified_files(place: Place, learned: Finished) -> None:
    document = place.json("fetch", "mood@v1", "--output", "fetched")
    assert [Path(file).name for file in document["files"]] == ["embedding.safetensors", "card.md"]
    z = unpack_embedding((place.folder / "fetched" / "embedding.safetensors").read_bytes())
    assert embedding_digest(z) == json.loads(learned.stdout)["embedding_digest"] == document["embedding_digest"]
    assert (place.folder / "fetched" / "card.md").read_text(encoding="utf-8").startswith("# mood@v1")


def test_predictions_come_in_the_order_of_the_file(place: Place, learned: Finished) -> None:
    texts = [row["text"] for row in opinions(30, start=40)]
    texts[3] = "good\u2028film"  # a line separator inside of a JSON string is no end of a row
    rows = place.folder / "texts.jsonl"
    lines = [json.dumps({"text": text, "id": number}, ensure_ascii=False) for number, text in enumerate(texts)]
    rows.write_text("\ufeff" + "\n".join(lines) + "\n\n", encoding="utf-8")
    document = place.json("predict", "mood@v1", "--input", rows, "--output", "answers.jsonl")
    assert len(document["predictions"]) == 30
    assert all(set(each) == {"label", "probability", "task", "version"} for each in document["predictions"])
    assert {(each["task"], each["version"]) for each in document["predictions"]} == {("mood", 1)}
    written = (place.folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in written] == document["predictions"]
    with place.services() as services:
        back = Predictor(services).predict([{"task": "mood", "ref": "v1", "text": text} for text in texts[::-1]])
    assert [each.label for each in back[::-1]] == [each["label"] for each in document["predictions"]]
    for one, other in zip(back[::-1], document["predictions"], strict=True):
        assert one.probability == pytest.approx(other["probability"], abs=1e-5)


def test_a_jobs_report_is_one_html_file(place: Place, learned: Finished) -> None:
    job = json.loads(learned.stdout)["job"]
    document = place.json("jobs", "show", job, "--report", "report.html")
    assert (document["job"], document["state"], document["version"]) == (job, "succeeded", 1)
    page = (place.folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "mood" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    listed = place.json("jobs", "list", "--task", "mood")
    assert listed["jobs"][-1]["job"] == job
    unwritable = place.run("jobs", "show", job, "--report", place.folder / "mood.jsonl" / "report.html")
    assert unwritable.returncode == 6
    assert remedy_of(unwritable)


def test_a_finished_job_cannot_be_cancelled(place: Place, learned: Finished) -> None:
    done = place.run("jobs", "cancel", json.loads(learned.stdout)["job"])
    assert done.returncode == 4
    assert "succeeded" in done.stderr
    assert "onboard jobs show" in remedy_of(done)


def test_another_label_set_is_refused_and_nothing_is_queued(place: Place, learned: Finished) -> None:
    before = jobs_in(place)
    rows = place.write("other.jsonl", opinions(20, ("pro", "contra")))
    done = place.run("submit", "--dataset", rows, "--task", "mood")
    assert done.returncode == 4
    assert "--new-labels" in remedy_of(done)
    done = place.run("submit", "--dataset", rows, "--task", "sst2", "--json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["error"]["code"] == "conflict"
    assert jobs_in(place) == before


def jobs_in(place: Place) -> int:
    with place.services() as services, services.database.read() as session:
        return len(JobRepository(session).list())


# ---- an empty home


def test_an_empty_home_shows_the_shipped_tasks_and_they_answer(elsewhere: Place) -> None:
    tasks = {task["task"]: task for task in elsewhere.json("tasks", "list")["tasks"]}
    assert set(tasks) == {"sst2", "stsb"}
    assert tasks["sst2"]["labels"] == ["negative", "positive"]
    assert tasks["sst2"]["source"]
    assert tasks["sst2"]["version"] == 1
    answers = elsewhere.json("predict", "sst2", "--text", "a good film")["predictions"]
    assert answers[0]["label"] in ("negative", "positive")
    assert elsewhere.json("jobs", "list") == {"jobs": []}
    assert elsewhere.workers() == []


def test_help_imports_neither_torch_nor_the_database() -> None:
    program = "import sys; from cli.main import main; sys.argv = ['onboard', '--help']; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program], capture_output=True, text=True, check=True
    )
    assert "submit" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "cli.submit" in imported
    heavy = {"torch", "transformers", "sqlalchemy", "sklearn", "scipy", "numpy", "pyarrow", "celery", "safetensors"}
    assert not heavy & imported


# ---- refusals


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory, open_base: Path) -> Iterator[Place]:
    """A home to which everything that is submitted is wrong: no job may be in it at the end."""
    place = Place(tmp_path_factory.mktemp("refusing"), open_base)
    (place.folder / "folder.jsonl").mkdir()
    good = '{"text": "good film", "label": "a"}\n'
    for name, content in {
        "ok.jsonl": good.encode() + b'{"text": "bad film", "label": "b"}\n',
        "junk.jsonl": bytes(range(256)) * 20,
        "latin.csv": "text,label\ncafé,a\nx,b\n".encode("latin-1"),
        "broken.jsonl": good.encode() + b'{"text": "bad film",\n',
        "nan.jsonl": good.encode() + b'{"text": "bad film", "label": NaN}\n',
        "empty-text.jsonl": good.encode() + b'{"text": " ", "label": "b"}\n',
        "empty.jsonl": b"",
        "one-label.jsonl": good.encode() + b'{"text": "bad film", "label": "a"}\n',
        "no-label.jsonl": good.encode() + b'{"text": "bad film"}\n',
        "number.jsonl": good.encode() + b'{"text": 7, "label": "b"}\n',
        "Bad Name.jsonl": good.encode() + b'{"text": "bad film", "label": "b"}\n',
    }.items():
        (place.folder / name).write_bytes(content)
    yield place
    try:
        assert place.json("jobs", "list") == {"jobs": []}
        assert place.workers() == []
    finally:
        place.leave()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["missing.jsonl"], "does not exist"),
        (["folder.jsonl"], "is a folder"),
        (["junk.jsonl"], "binary"),
        (["latin.csv"], "not UTF-8"),
        (["broken.jsonl"], "row 2"),
        (["nan.jsonl"], "NaN"),
        (["empty-text.jsonl"], "row 2, field text"),
        (["one-label.jsonl"], "nothing to learn"),
        (["no-label.jsonl"], "row 2"),
        (["number.jsonl"], "row 2"),
        (["Bad Name.jsonl"], "task name"),
        (["ok.jsonl", "--task", "../../x"], "task name"),
        (["ok.jsonl", "--init", "nothing"], "nothing"),
        (["ok.jsonl", "--init", "sst2@v9"], "sst2@v9"),
        (["ok.jsonl", "--queue", "../q"], "queue"),
        (["ok.jsonl", "--metric", "magic"], "magic"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_with_a_submission_is_told_with_what_mends_it(
    refusing: Place, words: list[str], told: str
) -> None:
    done = refusing.run("submit", "--dataset", *words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert told in done.stderr
    assert remedy_of(done)


def test_an_empty_file_is_refused(refusing: Place) -> None:
    done = refusing.run("submit", "--dataset", "empty.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "empty.jsonl is empty" in done.stderr


def test_an_error_is_a_document_too_and_names_its_rows(refusing: Place) -> None:
    error = refusing.json("submit", "--dataset", "empty-text.jsonl", code=2)["error"]
    assert error["code"] == "dataset"
    assert error["problems"][0]["row"] == 2
    assert error["problems"][0]["field"] == "text"


def test_what_does_not_exist_is_not_found(refusing: Place) -> None:
    for words in (
        ["predict", "nothing", "--text", "x"], ["fetch", "sst2@v7"], ["jobs", "show", "0123456789ab"],
        ["submit", "--dataset", "ok.jsonl", "--base", "no-such-base"],
    ):  # fmt: skip
        done = refusing.run(*words)
        assert done.returncode == 3, done.stderr
        assert remedy_of(done).startswith(("onboard ", "List "))


def test_a_bare_backbone_is_refused_with_the_command_that_makes_a_base(refusing: Place) -> None:
    done = refusing.run("submit", "--dataset", "ok.jsonl", ONBOARD_BASE=str(refusing.base / "backbone"))
    assert done.returncode == 2
    assert "onboard base train" in remedy_of(done)


# ---- services that are away, and what is not allowed


def test_a_database_that_is_away_is_told_within_seconds_and_without_its_password(elsewhere: Place) -> None:
    away = {"ONBOARD_DATABASE_URL": "postgresql://user:hunter2@127.0.0.1:9/onboard", "ONBOARD_BROKER_URL": NO_BROKER}
    rows = elsewhere.write("mood.jsonl", opinions(8))
    started = time.monotonic()
    done = elsewhere.run("submit", "--dataset", rows, **away)
    assert time.monotonic() - started < 30
    assert done.returncode == 5
    assert "127.0.0.1:9" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    assert "ONBOARD_DATABASE_URL" in remedy_of(done)
    document = elsewhere.json("doctor", code=5, **away)
    checks = {check["what"]: check for check in document["checks"]}
    assert not document["ok"]
    assert not checks["database"]["ok"]
    assert "ONBOARD_DATABASE_URL" in checks["database"]["remedy"]
    assert checks["base"]["ok"]
    assert "hunter2" not in json.dumps(document)


@pytest.mark.services
def test_a_broker_that_is_away_is_told_and_the_job_is_kept(elsewhere: Place, postgres_url: str) -> None:
    away = {"ONBOARD_DATABASE_URL": postgres_url, "ONBOARD_BROKER_URL": NO_BROKER}
    document = elsewhere.json("doctor", code=5, **away)
    checks = {check["what"]: check for check in document["checks"]}
    assert not checks["broker"]["ok"]
    assert checks["database"]["ok"]
    assert "ONBOARD_BROKER_URL" in checks["broker"]["remedy"]
    assert "hunter2" not in json.dumps(document)
    done = elsewhere.run("submit", "--dataset", elsewhere.write("mood.jsonl", opinions(8)), "--json", **away)
    assert done.returncode == 0, done.stderr  # the row in the database is the job, the broker's message only a doorbell
    assert "127.0.0.1:9" in done.stderr
    assert json.loads(done.stdout)["state"] == "queued"


_AS_NOBODY = """
import os, sys
from cli.main import main

def onboard(*words):
    sys.argv = ["onboard", *words]
    try:
        main()
    except SystemExit as ended:
        return ended.code

home = os.environ["ONBOARD_HOME"]
os.environ["ONBOARD_HOME"] = sys.argv[1]  # a writable one: everything is imported before the user changes
words = sys.argv[2:]
onboard("submit", "--dataset", "missing.jsonl"), onboard("tasks", "list")
os.environ["ONBOARD_HOME"] = home
os.setgroups([]), os.setgid({nobody}), os.setuid({nobody})
print("-" * 8, file=sys.stderr)
sys.exit(onboard(*words))
"""


@pytest.mark.parametrize("words", [["submit", "--dataset", "mood.jsonl"], ["tasks", "list"], ["jobs", "list"]])
def test_a_read_only_home_is_not_allowed(open_base: Path, words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Place(Path(folder), open_base)
        place.write("mood.jsonl", opinions(8))
        place.home.mkdir(mode=0o555)
        done = as_nobody(place, words) if os.geteuid() == 0 else place.run(*words)
        assert done.returncode == 6, done.stderr
        assert str(place.home) in done.stderr
        assert "ONBOARD_HOME" in remedy_of(done)
        assert list(place.home.iterdir()) == []


def as_nobody(place: Place, words: list[str]) -> Finished:
    """To root nothing is read-only. The interpreter may lie where nobody else can read: it is loaded before."""
    program = _AS_NOBODY.format(nobody=NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", program, place.folder / "writable", *words],
        capture_output=True, text=True, cwd=place.folder, env=place.environment, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(words, done.returncode, done.stdout, done.stderr.partition("-" * 8)[2])


# ---- kill -9, a full disk


def in_stage(place: Place, job: str, stage: str) -> Callable[[], bool]:
    def look() -> bool:
        with place.services() as services, services.database.read() as session:
            events = EventRepository(session).list(job)
        return any(event.kind == "note" and event.message.startswith(stage) for event in events)

    return look


def test_a_job_whose_worker_was_killed_goes_on_with_the_next_worker(elsewhere: Place) -> None:
    rows = elsewhere.write("mood.jsonl", opinions(100))
    job = elsewhere.json("submit", "--dataset", rows)["job"]
    wait_until(in_stage(elsewhere, job, "train"), 120, "the training to begin")
    (worker,) = elsewhere.workers()
    kill_tree(worker.pid)
    with elsewhere.services() as services:
        assert state_of(services, job) is JobState.RUNNING
    second = elsewhere.run("submit", "--dataset", rows, "--task", "other", "--shots", "6", "--json")
    assert "started a worker" in second.stderr
    watched = elsewhere.run("jobs", "watch", job, "--json")
    assert watched.returncode == 0, watched.stderr
    assert json.loads(watched.stdout)["version"] == 1
    assert "probe: resumed" in watched.stderr
    assert elsewhere.json("jobs", "show", job)["attempt"] == 2
    assert elsewhere.json("jobs", "watch", json.loads(second.stdout)["job"])["state"] == "succeeded"
    with elsewhere.services() as services, services.database.read() as session:
        assert [version.version for version in VersionRepository(session).list(task="mood")] == [1]


def state_of(services: Services, job: str) -> JobState:
    with services.database.read() as session:
        return JobRepository(session).get(job).state


@pytest.fixture
def small_disk(elsewhere: Place) -> Iterator[Path]:
    """A disk of one megabyte for the artifacts."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = elsewhere.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    elsewhere.more["ONBOARD_ARTIFACT_URL"] = str(disk)
    try:
        yield disk
    finally:
        elsewhere.leave()
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def whole_artifacts(disk: Path) -> int:
    """How many artifacts are stored; every file among them has to be whole."""
    stored = [path for path in (disk / "sha256").rglob("*") if path.is_file()]
    for path in stored:
        assert path.name == hashlib.sha256(path.read_bytes()).hexdigest(), f"{path} is half a file"
    return len(stored)


def test_a_full_disk_refuses_submissions_stops_jobs_and_hurts_nothing(elsewhere: Place, small_disk: Path) -> None:
    rows = elsewhere.write("mood.jsonl", opinions(16))
    filler = fill(small_disk)
    refused = elsewhere.run("submit", "--dataset", rows)
    assert refused.returncode == 5
    assert "No space left on device" in refused.stderr
    assert "space" in remedy_of(refused)
    assert elsewhere.json("jobs", "list") == {"jobs": []}
    filler.unlink()

    elsewhere.json("queue", "pause")
    job = elsewhere.json("submit", "--dataset", rows)["job"]
    stored = whole_artifacts(small_disk)
    filler = fill(small_disk)
    elsewhere.json("queue", "resume")

    def failure() -> dict[str, str] | None:
        with elsewhere.services() as services, services.database.read() as session:
            return JobRepository(session).get(job).error

    error = wait_until(failure, 120, "the job to meet the full disk")
    assert error["code"] == "storage"
    assert "No space left on device" in error["message"]
    assert whole_artifacts(small_disk) == stored
    elsewhere.json("jobs", "cancel", job)
    filler.unlink()
    assert elsewhere.json("jobs", "retry", job)["state"] == "queued"
    assert elsewhere.json("jobs", "watch", job)["version"] == 1
    assert whole_artifacts(small_disk) > stored
