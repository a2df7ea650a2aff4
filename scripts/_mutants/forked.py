"""pytest in a forked process whose heavy libraries are there already, and `transect` is not.

Each run is a process of its own: a mutated module is served by an import hook, so that no file changes, and whatever
becomes of the process, the next one begins as this one did.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import math
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

_HEAVY = (
    "pytest",
    "hypothesis",
    "hypothesis.extra.numpy",
    "syrupy",
    "xdist.scheduler",
    "pytest_timeout",
    "coverage",
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.special",
    "scipy.optimize",
    "pydantic",
    "yaml",
    "altair",
    "jinja2",
    "jsonschema",
    "pyarrow.parquet",
    "bs4",
    "lxml.etree",
    "re2",
    "pulp",
    "highspy",
    "psutil",
    "PIL.Image",
    "requests",
    "logging.config",
    "multiprocessing.pool",
    "http.server",
    "unittest.mock",
    "asyncio",
    "vl_convert",
)
# What these start before a test, so that no test does, is nothing that a mutant is caught by.
_STARTS_PROCESSES = {"programs_asked", "drawing_process", "drawn"}
_PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system")
_MEMORY = 16 * 2**30
_PR_SET_PDEATHSIG = 1


def prepare() -> None:
    """Import what many tests need; from then on forks share it."""
    for name in _HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def in_child(work: Callable[[], Any], seconds: float) -> tuple[str, Any]:
    """Return ("done", what `work` returned), ("timeout", None), or ("died", how)."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        return _in_child(work, seconds, folder)


def _in_child(work: Callable[[], Any], seconds: float, folder: str) -> tuple[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        tempfile.tempdir = folder
        _be_child(work, reading, writing)
    os.close(writing)
    parts, deadline, end = [], time.monotonic() + seconds, "done"
    try:
        while end == "done":
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([reading], [], [], left)[0]:
                end = "timeout"
            elif not (part := os.read(reading, 1 << 20)):
                break
            else:
                parts.append(part)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if end == "timeout":
        return end, None
    told = b"".join(parts)
    return ("done", json.loads(told)) if told.endswith(b"\n") else ("died", status)


def share(items: list[Any], jobs: int, work: Callable[[Any], None]) -> None:
    """Do `work` with each item, in so many processes at a time."""
    if jobs == 1:
        for item in items:
            work(item)
        return
    children: list[int] = []
    try:
        for job in range(jobs):
            if (child := os.fork()) == 0:
                _be_worker(lambda job=job: share(items[job::jobs], 1, work))
            children.append(child)
        while children:
            if os.waitpid(children[0], 0)[1]:
                raise SystemExit("mutants: a process that shares the work ended early")
            children.pop(0)
    finally:
        for child in children:
            # Waited for: else the end of this process cuts its clean-up off.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGTERM)
                os.waitpid(child, 0)


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, however that does: a mutant may be an endless loop."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _be_worker(work: Callable[[], None]) -> NoReturn:
    _end_with_parent()
    # Ctrl-C reaches all: the parent tells when to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = 1
    try:
        work()
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def append(path: Path, entry: dict[str, Any]) -> None:
    """Add a line to a file to which others add lines."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, json.dumps(entry).encode() + b"\n")
    os.close(file)


def _be_child(work: Callable[[], Any], reading: int, writing: int) -> None:
    try:
        os.setsid()
        _end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.environ.get("MUTANTS_LOG")
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if log else nothing
        for number, target in enumerate((nothing, said, said)):
            os.dup2(target, number)
        # An endless loop that collects what it makes must not take the machine's memory.
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        told = json.dumps(work()).encode() + b"\n"
        while told:
            told = told[os.write(writing, told) :]
    finally:
        os._exit(0)


class _Guard:
    """Lets no test start a process: whether one that does passes depends on more than this process."""

    def __init__(self) -> None:
        self.on = self.met = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in _PROCESSES:
            self.met = True
            raise RuntimeError(f"tests that meet mutants start no process: {event}")


class Run:
    """What became of one call of pytest; also the plug-in that watches it."""

    def __init__(self, chosen: set[str] | None, *, stop: bool, entered: Callable[[str], None], end: float) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.uncollected: list[str] = []
        self.alone: list[str] = []
        self.fixtures: dict[str, list[str]] = {}
        self._context = ""
        self._chosen, self._stop, self._entered, self._end = chosen, stop, entered, end
        self._guard = _Guard()
        self._bad = False

    def told(self) -> dict[str, Any]:
        """Return it for a pipe."""
        return {"seconds": self.seconds, "failed": self.failed, "uncollected": self.uncollected, "process": self.alone}

    def pytest_collectreport(self, report: Any) -> None:
        """Note files that could not be read."""
        if report.failed:
            self.uncollected.append(report.nodeid)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what was not chosen."""
        if self._chosen is not None:
            items[:] = [item for item in items if item.nodeid in self._chosen]

    def pytest_runtest_setup(self, item: Any) -> None:
        """Note what a test takes: a fixture that many share is made once."""
        self.fixtures[item.nodeid] = item.fixturenames

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        """What makes a shared fixture is executed for all tests that take it."""
        if fixturedef.argname in _STARTS_PROCESSES:
            fixturedef.func = lambda: None
        if fixturedef.scope == "function":
            return (yield)
        before = self._context
        self._enter(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._enter(before)

    def _enter(self, context: str) -> None:
        self._context = context
        self._entered(context)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Begin a test."""
        self._bad, self._guard.met, self._guard.on = False, False, True
        self._began = time.monotonic()
        self._enter(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a phase of the test ended."""
        self._bad |= report.failed
        self._skipped = report.skipped if report.when != "teardown" else self._skipped

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note how the test ended."""
        self._guard.on = False
        self._enter("")
        if self._guard.met:
            self.alone.append(nodeid)
        elif self._bad:
            self.failed.append(nodeid)
            self._session.shouldstop = "caught" if self._stop else False
        elif not self._skipped:
            self.seconds[nodeid] = time.monotonic() - self._began
        if time.monotonic() > self._end:
            self._session.shouldstop = "there was no time for more"

    def pytest_sessionstart(self, session: Any) -> None:
        """Keep the session, to end it at the first failure."""
        self._session = session


def pytest_here(
    checkout: Path,
    files: list[str],
    *,
    chosen: set[str] | None = None,
    stop: bool = True,
    each: int = 0,
    seconds: float = math.inf,
    entered: Callable[[str], None] = lambda nodeid: None,
    served: tuple[str, Path, bytes] | None = None,
) -> Run:
    """Run tests of a checkout in this process, which is good for nothing else afterwards.

    A test that takes longer than `each` seconds fails; after `seconds` none begins.
    `served` is a module's name, its file and the source that is imported instead of the file's.
    """
    import pytest
    from hypothesis import configuration

    os.chdir(checkout)
    sys.path[:0] = [str(checkout / "src")]
    os.environ["PYTHONPATH"] = str(checkout / "src")
    if served:
        sys.meta_path.insert(0, _Served(*served))
    pytest.hookimpl(wrapper=True)(Run.pytest_fixture_setup)
    run = Run(chosen, stop=stop, entered=entered, end=time.monotonic() + seconds)
    folder = Path(tempfile.gettempdir())  # This child's own.
    configuration.set_hypothesis_home_dir(folder / "hypothesis")
    options = [
        "-q",
        "-c",
        str(checkout / "pyproject.toml"),
        "--rootdir",
        str(checkout),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:run_log",
        "-p",
        "no:faulthandler",
        "--hypothesis-seed=0",
        f"--timeout={each}",
        f"--basetemp={folder / 'tests'}",
    ]
    pytest.main([*files, *options], plugins=[run])
    return run


class _Served(importlib.abc.MetaPathFinder):
    """Finds one module with a source of ours."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's own spec, with a loader that compiles our source."""
        if name != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None and spec.origin == str(self._path), (spec, self._path)
        code = compile(self._source, str(self._path), "exec")
        spec.loader = _Loader(name, str(self._path))
        spec.loader.get_code = lambda fullname: code
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """A loader whose code is told to it."""
