"""transect without its start: a process that has it imported forks for each command, study and module.

A fork runs the product's own code: the planning, the block runner, the command line. What stands in is
Snakemake's part alone: which of its jobs are to run by what it goes by, and their order and attempts.
A fork takes plug-ins, caches, variables and its working folder with it when it ends, so that no call
knows of another. The sources are those that were imported first: for an edit of the driver's own code
that is to do something, start a process.

`python engine.py` serves: a line of JSON on stdin for each call, a line with the exit code back.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PROFILE = Path(__file__).resolve().parents[2] / "profiles" / "local" / "config.yaml"
_PACKAGES = ("adapters", "cli", "domain", "engine", "launch", "planning", "report")


class Engine:
    """Calls transect as its sources in `source` are, from the folder `src` of a checkout."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._server: subprocess.Popen[str] | None = None

    def __call__(
        self, kind: str, *arguments: object, folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run in a fork and a folder: `command`, the command line; `module`, one by name; `study`, all of it."""
        # support/tiers.py: a fast test is not to have one either.
        sys.audit("transect.warm", kind, *arguments[:1])
        server = self._started(environment)
        variables = {**environment, "PYTHONPATH": str(self._source)}
        with tempfile.TemporaryDirectory() as scratch:
            out, err = Path(scratch, "out"), Path(scratch, "err")
            call = {"kind": kind, "arguments": arguments, "folder": str(folder), "environment": variables}
            call |= {"out": str(out), "err": str(err)}
            assert server.stdin is not None and server.stdout is not None
            answer = ""
            try:
                server.stdin.write(json.dumps(call) + "\n")
                server.stdin.flush()
                answer = server.stdout.readline()
            finally:
                if not answer:
                    # A test that was cut short must not leave its answer to the next one, nor what it runs.
                    os.killpg(server.pid, signal.SIGKILL)
                    self._server = None
            assert answer, "the engine has gone"
            texts = (path.read_text(encoding="utf-8", errors="replace") for path in (out, err))
            return subprocess.CompletedProcess([kind, *map(str, arguments)], int(answer), *texts)

    def _started(self, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**environment, "PYTHONPATH": str(self._source)},
                start_new_session=True,
            )
            weakref.finalize(self, _end, self._server)
        return self._server


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.close()
    server.wait(600)
    server.stdout.close()


# From here on: the process that serves.


def _serve() -> None:
    import importlib
    import pkgutil

    # What prints must not answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for name in _PACKAGES:
        package = importlib.import_module(f"transect.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"transect.{name}.{module.name}")
    from transect.engine.stage import RUNNERS
    from transect.planning.stage import STAGES

    for name in STAGES:
        RUNNERS.get(name)
    hashed = _hash_sources()
    for line in sys.stdin:
        code = _forked(_call, json.loads(line), hashed)
        answers.write(f"{code}\n")
        answers.flush()


def _sources() -> dict[Path, tuple[int, int]]:
    """Return the size of each source file, and when it was changed last."""
    from transect.domain.paths import PACKAGE

    facts = {path: path.stat() for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
    return {path: (status.st_mtime_ns, status.st_size) for path, status in facts.items() if path.is_file()}


def _hash_sources() -> dict[Path, tuple[int, int]]:
    """Hash the sources for all forks to come; return what they are a function of."""
    from transect.planning import code_hash

    before = _sources()
    for path in before:
        code_hash._file_hash(path)
        if path.suffix == ".py":
            code_hash._imports(path)
    return before


def _forget_hashes() -> None:
    from transect.planning import code_hash

    for cached in (code_hash._text, code_hash._imports, code_hash._file_hash):
        cached.cache_clear()


def _forked(run: Any, *given: Any) -> int:
    """Run a function in a fork; return its exit code, or less than 0 for the signal that ended it."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        code = run(*given)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _call(call: dict[str, Any], hashed: dict[Path, tuple[int, int]]) -> int:
    if _sources() != hashed:
        _forget_hashes()
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    for number, name in ((1, call["out"]), (2, call["err"])):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if call["kind"] == "command":
        from transect.cli.main import run

        sys.argv = ["transect", *call["arguments"]]
        run()
    if call["kind"] == "module":
        return _module(*call["arguments"])
    return _study(*call["arguments"])


def _module(name: str, *arguments: str) -> int:
    """Do what `python -m NAME` does."""
    import importlib

    sys.argv = [name, *arguments]
    return int(importlib.import_module(name).main())


def _study(config: dict[str, Any], dry: bool, report: bool, summary: bool) -> int:
    """Bring a study up to date as Snakemake does, with its report or without.

    `summary` prints what would be made, and makes nothing.
    """
    from transect.adapters.snakemake.main_flow import open_flow

    handlers = {name: lambda _: None for kind in ("onstart", "onsuccess", "onerror") for name in (kind, f"_{kind}")}
    plugin, dag = None if summary else "local", SimpleNamespace(forcefiles=set())
    # Handlers that a workflow has are attributes of its class.
    snakemake = type("Workflow", (), handlers)()
    modifier = SimpleNamespace(modify_path=str)
    vars(snakemake).update(dryrun=dry, executor_plugin=plugin, touch=False, dag=dag, modifier=modifier)
    options = {"study": "quick", "system": "laptop", "results": "results", "strict": False} | config
    flow = open_flow(options, snakemake)
    flow.look()
    jobs = _jobs(flow, snakemake.dag.forcefiles, report=report)
    if summary:
        print(*(path for job in jobs for path in job.outputs), sep="\n", end="")
    if not jobs or dry or summary:
        return 0
    flow.start([SimpleNamespace(output=job.outputs) for job in jobs])
    missing: set[str] = set()
    for job in jobs:
        for path in map(Path, job.outputs):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        attempts = () if missing & {*job.inputs, *job.waits} else range(1, _attempts() + 1)
        if not any(_forked(_module, *job.command(attempt)) == 0 for attempt in attempts):
            missing.update(job.outputs)
    if missing:
        flow.fail()
    else:
        flow.finish()
    return int(bool(missing))


def _attempts() -> int:
    """How often a block that fails is begun, as the profile has it."""
    found = re.search(r"^retries: (\d+)$", _PROFILE.read_text(), re.MULTILINE)
    assert found is not None
    return 1 + int(found[1])


def _job(module: str, outputs: list[str], inputs: list[str], arguments: Any, waits: list[str] | None = None) -> Any:
    """Return one job; `arguments` of its module, or what makes them for an attempt."""
    given = arguments if callable(arguments) else lambda attempt: arguments
    return SimpleNamespace(
        outputs=outputs, inputs=inputs, waits=waits or [], command=lambda attempt: (module, *given(attempt))
    )


def _jobs(flow: Any, stale: set[str], *, report: bool) -> list[Any]:
    """Return the jobs that are to run, in an order in which they can. `stale`: outputs that count as not there."""
    found = []

    def add(outputs: list[str], command: Any, inputs: Any = (), waits: Any = ()) -> None:
        """Add a job; `command` gives what is run of an attempt."""
        found.append(SimpleNamespace(outputs=outputs, inputs=inputs, waits=waits, command=command))

    for name in flow._facts.environments:
        stamp = f"{flow.results}/environments/{name}.json"
        made = ("transect.engine.build_environment", *flow.environment_call(name), f"--out={stamp}")
        add([stamp], lambda _, made=made: made)
    for rule, block in sorted(flow._blocks, key=lambda k: -flow.order(*k)):
        stamp = flow.pattern(rule).format(block=block)
        ran = ("transect.engine.run_block", *flow.call(rule, block), f"--stamp={stamp}")
        command = lambda attempt, ran=ran: (*ran, f"--attempt={attempt}")  # noqa: E731
        add([stamp], command, flow.inputs(rule, block), flow.waits(rule, block))
    if report:
        pages = [f"{flow.folder}/{name}" for name in ("report.html", "records.parquet", "summary.json")]
        add(pages, lambda _: ("transect.engine.make_report", f"--folder={flow.folder}"), flow.stamps())
        if flow.strict:
            strict, out = ("transect.adapters.snakemake.strict", "--summary", pages[2]), f"{flow.folder}/strict.ok"
            add([out], lambda _: (*strict, "--out", out), pages[2:])
    return _needed(_sorted(found), stale)


def _sorted(jobs: list[Any]) -> list[Any]:
    """Put each job behind those that make what it takes; what can run first stays first."""
    ordered: list[Any] = []
    made: set[str] = set()
    makes = {path for job in jobs for path in job.outputs}
    while jobs:
        job = next(candidate for candidate in jobs if ({*candidate.inputs, *candidate.waits} & makes) <= made)
        jobs.remove(job)
        ordered.append(job)
        made.update(job.outputs)
    return ordered


def _needed(jobs: list[Any], stale: set[str]) -> list[Any]:
    needed, again = [], set()
    for job in jobs:
        outputs = [Path(path) for path in job.outputs]
        runs = not again.isdisjoint(job.inputs) or not stale.isdisjoint(job.outputs)
        runs = runs or not all(path.exists() for path in outputs)
        if not runs:
            oldest = min(path.stat().st_mtime_ns for path in outputs)
            runs = any(Path(path).stat().st_mtime_ns > oldest for path in job.inputs)
        if runs:
            needed.append(job)
            again.update(job.outputs)
    return needed


if __name__ == "__main__":
    _serve()
