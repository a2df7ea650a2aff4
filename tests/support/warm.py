"""One process per environment that has its libraries loaded, in forks of which tests run programs.

`warm(python).run("-c", code, ...)` stands for `subprocess.run([python, "-c", code, ...])`: the same answer, and a
process of its own, but torch, TensorFlow, JAX and MXNet are loaded once in a session instead of once in a test. What
libraries read while they are loaded is as in `LOADED_WITH` for all; a program that needs other threads or another
loader starts its own interpreter, as ranks of MPI do.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from checkouts import ROOT

# What takes long to load and starts no thread.
MODULES = (
    *("numpy", "torch", "tensorflow", "jax", "mxnet", "sklearn", "gensim", "pydantic"),
    # What a first export by dynamo imports, which takes longer than the export.
    *("onnx", "onnxscript.function_libs.torch_lib.ops", "networkx", "torch._dynamo", "torch.export._trace"),
    *("torch.onnx._internal.exporter._core", "torch.onnx._internal.exporter._torchlib.ops"),
    *("transect.payloads.dataset", "transect.payloads.reference", "transect.payloads.train", "transect.engine.stage"),
)
LOADED_WITH = {
    "PYTHONPATH": str(ROOT / "src"),
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "PYTHONUNBUFFERED": "",
}
READ_AT_START = {"LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONOPTIMIZE"}
STREAMS = ("stdin", "stdout", "stderr")
_INHERITED = dict(os.environ)
_started: dict[str, Warm] = {}


class Program:
    """A program that has been started; `wait` for its end. Its streams are files."""

    def __init__(self, server: Warm, arguments: tuple[str, ...], given: dict[str, Any]) -> None:
        self._server, self._arguments = server, arguments
        self.stdin, self.stdout, self.stderr = (Path(given[name]) for name in STREAMS)
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(server.address))
        self._connection.sendall(json.dumps({"arguments": arguments} | given).encode() + b"\n")

    def wait(self, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Return how it ended and what it said. Raises TimeoutError, with which it ends."""
        self._connection.settimeout(timeout)
        with self._connection:
            answer = self._connection.recv(64)
        err = self.stderr.read_text(errors="replace")
        if not answer:
            self._server.stop()
            raise AssertionError(f"the warm process of this program ended:\n{self._server.log_tail()}\n{err}")
        out = self.stdout.read_text(errors="replace") if self.stdout.is_file() else ""
        return subprocess.CompletedProcess(self._arguments, json.loads(answer), out, err)

    def kill(self) -> None:
        """End it, as nobody waits for it any more."""
        self._connection.close()


class Warm:
    """The process of one environment."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._folder = Path(tempfile.mkdtemp(prefix="warm-"))
        self.address = self._folder / "socket"
        self._count = 0
        with (self._folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                [python, str(Path(__file__).with_name("warm_server.py")), str(self.address), *MODULES],
                env=_environment({}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout
        if self._process.stdout.readline() != b"ready\n":
            raise AssertionError(f"no warm process of {python}:\n{self.log_tail()}")

    @property
    def alive(self) -> bool:
        """Whether it takes programs."""
        return self._process.poll() is None

    def log_tail(self) -> str:
        """Return the end of what it wrote to standard error."""
        return (self._folder / "log").read_text(errors="replace")[-4000:]

    def start(
        self,
        *arguments: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: bytes = b"",
        merge: bool = False,
        pipes: bool = False,
    ) -> Program:
        """Start a program: `-c CODE`, `-m MODULE` or a file, each with its arguments.

        `merge`: standard error goes where standard output does. `pipes`: who starts it opens the named pipes
        `stdin` and `stdout`, in this order.
        """
        # support/tiers.py: a fast test is not to have one either.
        sys.audit("transect.warm", *arguments[:2])
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        files = {name: folder / name for name in STREAMS}
        for name, path in files.items():
            if pipes and name != "stderr":
                os.mkfifo(path)
            else:
                path.write_bytes(input if name == "stdin" else b"")
        given = {name: str(path) for name, path in files.items()}
        if merge:
            given["stderr"] = given["stdout"]
        given |= {"cwd": str(cwd or Path.cwd()), "env": _environment(env or {})}  # type: ignore[dict-item]
        return Program(self, tuple(map(str, arguments)), given)

    def run(self, *arguments: object, timeout: float = 600, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return self.start(*arguments, **given).wait(timeout)

    def check(self, *arguments: object, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run a program that has to end well."""
        done = self.run(*arguments, **given)
        assert done.returncode == 0, done.stderr[-4000:]
        return done

    def stop(self) -> None:
        """End it and forget it: the next program gets another."""
        _started.pop(self._python, None)
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    # Whoever hands on the whole environment of the tests asks for nothing of its own.
    both = os.environ | given
    asked = {name: value for name, value in both.items() if _INHERITED.get(name) != value}
    changed = {
        name
        for name, value in LOADED_WITH.items()
        # More folders may follow the sources.
        if asked.get(name, value) != value and not (name == "PYTHONPATH" and asked[name].startswith(value))
    } | (READ_AT_START & asked.keys())
    if changed:
        raise ValueError(f"{sorted(changed)}: read when Python or its libraries are loaded")
    return os.environ | LOADED_WITH | asked


def ended(programs: Iterable[Program], timeout: float = 300) -> list[subprocess.CompletedProcess[str]]:
    """Wait for ranks that meet; when one does not end, none goes on."""
    with ExitStack() as stack:
        for program in (begun := list(programs)):
            stack.callback(program.kill)
        return [program.wait(timeout) for program in begun]


def warm(python: str | Path) -> Warm:
    """Return the process of this interpreter's environment, started anew if it has ended."""
    python = str(python)
    if python not in _started or not _started[python].alive:
        _started[python] = Warm(python)
    return _started[python]


def run_command(
    command: Iterable[object],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    merge: bool = False,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end: of Python in a fork of its environment's process, any other as it is.

    `env`: all variables, none of this process's left out. `merge`: standard error goes where standard output does.
    `fresh`: as users start it, which shows what a fork hides: what it imports without saying so, what follows from the
    order of a set, and a crash when what was loaded is taken apart.
    """
    if env is not None and (absent := os.environ.keys() - env.keys()):
        raise ValueError(f"{sorted(absent)}: a fork would have these all the same")
    program, *arguments = map(str, command)
    if Path(program).name.startswith("python") and not fresh:
        return warm(program).run(*arguments, cwd=cwd, env=env, merge=merge)
    err = subprocess.STDOUT if merge else subprocess.PIPE
    return subprocess.run([program, *arguments], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=err)


@atexit.register
def _stop() -> None:
    for server in list(_started.values()):
        server.stop()
        shutil.rmtree(server._folder, ignore_errors=True)
