"""Commands of `onboard`, each in its own process, forked from one that has already imported what commands import.

Starting Python and importing torch takes seconds, most commands themselves take milliseconds.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).parent.parent
PRELOADED: Final = (
    "cli.main", "onboard.serving.predictor", "onboard.jobs.submit", "onboard.jobs.detached",
    "onboard.client.connection", "onboard.hypernetworks.register", "onboard.data.read", "onboard.model.engine",
    "onboard.versions.promote", "sklearn.linear_model", "transformers.models.t5.modeling_t5",
    "transformers.models.auto.modeling_auto", "transformers.models.auto.tokenization_auto",
)  # fmt: skip
STREAMS: Final = ("stdin", "stdout", "stderr")
# Written as `onboard` into a folder: sends what a shell gave it, and ends as the command did.
_ON_PATH: Final = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rw") as stream:
    connection.connect({address!r})
    json.dump([sys.argv, os.getcwd(), dict(os.environ)], stream)
    print(file=stream, flush=True)
    code, out, err = json.loads(stream.readline())
sys.stderr.write(err)
sys.stdout.write(out)
sys.exit(code)
"""


def run_forked(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], given: str | None, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as `subprocess.run` would.

    Args:
        command: the program's path, which is not started, and its arguments.
        folder: the present directory.
        environment: all of it.
        given: standard input; None is empty.
        seconds: how long it may take.
    """
    with tempfile.TemporaryDirectory() as streams, socket.socket(socket.AF_UNIX) as connection:
        files = {name: Path(streams) / name for name in STREAMS}
        files["stdin"].write_text(given or "", encoding="utf-8")
        connection.settimeout(seconds)
        connection.connect(_forking())
        with connection.makefile("rw") as stream:
            request = [list(command), str(folder), dict(environment), [str(files[name]) for name in STREAMS]]
            print(json.dumps(request), file=stream, flush=True)
            pid = int(stream.readline())
            try:
                code = int(stream.readline())
            except BaseException as error:
                os.kill(pid, signal.SIGKILL)
                if not isinstance(error, TimeoutError):
                    raise
                printed = [files[name].read_text(encoding="utf-8") for name in STREAMS[1:]]
                raise subprocess.TimeoutExpired(list(command), seconds, *printed) from error
        printed = [files[name].read_text(encoding="utf-8") for name in STREAMS[1:]]
        return subprocess.CompletedProcess(list(command), code, *printed)


@contextmanager
def forked_program(seconds: float) -> Iterator[Path]:
    """A folder for the PATH of a shell with an `onboard` in it, which reads no standard input.

    Args:
        seconds: how long each command may take.
    """
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "socket")
        program = Path(folder) / "bin" / "onboard"
        program.parent.mkdir()
        program.write_text(_ON_PATH.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o755)

        class Asked(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                command, present, environment = json.loads(self.rfile.readline())
                done = run_forked(command, Path(present), environment, None, seconds)
                self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode() + b"\n")

        with socketserver.ThreadingUnixStreamServer(address, Asked) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
            thread.start()
            try:
                yield program.parent
            finally:
                server.shutdown()
                thread.join()


@functools.cache
def _forking() -> str:
    """The address of the process that forks, one for all tests of this one; it ends with this one."""
    folder = tempfile.TemporaryDirectory()
    address = str(Path(folder.name) / "socket")
    process = subprocess.Popen(
        [sys.executable, "-c", "from support.forked import serve; serve()", address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS.parent,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def end() -> None:
        process.communicate()
        folder.cleanup()

    atexit.register(end)
    return address


def serve() -> None:
    """Fork for whoever connects to the address on the command line, until standard input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            readable, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in readable:
                return
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    with suppress(BrokenPipeError):  # the caller has given up
                        _answer(connection)
                    os._exit(0)


def _answer(connection: socket.socket) -> None:
    """Fork for the command; send the id of its process at once, and its exit status at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("rw") as stream:
        command, folder, environment, files = json.loads(stream.readline())
        pid = os.fork()
        if pid == 0:
            os.close(connection.fileno())
            os._exit(_run(command, folder, environment, files))
        print(pid, file=stream, flush=True)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(code, file=stream, flush=True)


def _run(command: list[str], folder: str, environment: dict[str, str], files: list[str]) -> int:
    """Make this process look as if it had been started, run the command, and return the exit status."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for descriptor, (name, file) in enumerate(zip(STREAMS, files, strict=True)):
        _open(descriptor, name, file)
    sys.argv = command
    from cli.main import main

    try:
        main()
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return int(isinstance(code, str)) or int(code or 0)


def _open(descriptor: int, name: str, file: str) -> None:
    """Make a file a standard stream, with the encoding that Python takes where no locale is set."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT if descriptor else os.O_RDONLY, 0o600)
    os.dup2(opened, descriptor)
    os.close(opened)
    raw = io.FileIO(descriptor, "w" if descriptor else "r", closefd=False)
    buffered = io.BufferedWriter(raw) if descriptor else io.BufferedReader(raw)
    stream = io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", line_buffering=descriptor == 2)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)
