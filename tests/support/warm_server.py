"""Runs programs in forks of one process that has loaded its environment's libraries: see warm.py.

`python warm_server.py SOCKET MODULE...`. Each connection brings one line of JSON and gets one back: how the program
ended. A fork has imported what takes seconds, and nothing that an earlier program did: no variables, threads, seeds,
plug-ins or devices. It ends when standard input does.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
from types import ModuleType
from typing import Any


def serve(address: str, modules: list[str]) -> dict[str, Any]:
    """Take jobs for ever; return, in a process of its own, what each of them is to run."""
    for name in modules:
        # An environment has some of these.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    # What is never freed is not copied either.
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    attending = 0
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection = listener.accept()[0]
        while attending and os.waitpid(-1, os.WNOHANG)[0]:
            attending -= 1
        if not os.fork():
            listener.close()
            return attend(connection)
        connection.close()
        attending += 1
    # Their time is the tests' time too.
    for _ in range(attending):
        os.wait()
    os._exit(0)


def attend(connection: socket.socket) -> dict[str, Any]:
    """Return in the program's process; in the other one, tell how it ended, or end it when nobody waits."""
    with connection.makefile() as stream:
        job: dict[str, Any] = json.loads(stream.readline())
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        connection.close()
        return job
    # Whoever of both is first: it leads a group, with which its own children end.
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    if connection in select.select([os.pidfd_open(child), connection], [], [])[0]:
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # What it started and did not wait for.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(code).encode())
    os._exit(0)


def become(job: dict[str, Any]) -> None:
    """Make this process what `python ARGUMENTS...` is before it runs a line."""
    for number, (path, flags) in enumerate(
        ((job["stdin"], os.O_RDONLY), (job["stdout"], os.O_WRONLY), (job["stderr"], os.O_WRONLY))
    ):
        file = os.open(path, flags | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    if "numpy" in sys.modules:
        # What nobody seeds is to differ from program to program, as in processes of their own.
        sys.modules["numpy"].random.seed()
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    first = os.path.dirname(job["arguments"][0]) if job["arguments"][0][0] != "-" else ""
    added = job["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [first, *filter(None, added), *sys.path[1:]]
    importlib.invalidate_caches()


def program(arguments: list[str]) -> None:
    """Run `-c CODE`, `-m MODULE` or a file; its own end is this process's."""
    kind, *rest = arguments
    if kind == "-m":
        sys.argv = rest
        # Loaded for others to import; of a package it is `__main__` that is run.
        if not hasattr(sys.modules.get(rest[0]), "__path__"):
            sys.modules.pop(rest[0], None)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    name, code = ("<string>", rest.pop(0)) if kind == "-c" else (kind, "")
    if kind != "-c":
        with open(kind, encoding="utf-8") as file:
            code = file.read()
    sys.argv = [kind, *rest]
    main = sys.modules["__main__"] = ModuleType("__main__")
    if kind != "-c":
        main.__file__ = kind
    exec(compile(code, name, "exec", dont_inherit=True), main.__dict__)


def leave(code: int) -> None:
    """End as Python does, without taking apart what was loaded: that would copy every page of it first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # The program may have closed it.
        with contextlib.suppress(ValueError):
            stream.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    given = serve(sys.argv[1], sys.argv[2:])
    become(given)
    try:
        program(given["arguments"])
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        leave(end.code or 0)
    leave(0)
