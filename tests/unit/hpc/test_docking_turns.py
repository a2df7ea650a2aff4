"""Kernels of docking take turns: those of the probe itself, and programs, which ask it how many runs come next."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from checkouts import ROOT, environment_python
from docking_parts import docking_cell, small
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.docking.base import PROGRAMMING_MODELS
from transect.hpc.ingest import ingest
from transect.hpc.probes._docking_deck import write_prepared
from transect.hpc.probes._docking_energy import constants
from transect.hpc.probes._docking_program import Lacks, find
from transect.launch.processes import Outcome
from transect.planning.stage import STAGES
from transect.stages.bench.run import BenchRunner
from turn_server import Contender, TurnServer, turn_server

KERNELS = ["numpy", "numba", "openmp", "rust", "go"]
# A run is short beside this, and a turn long beside what threads do once after it.
POSES = 512


def probe(kernel: str, folder: Path) -> list[str]:
    model = PROGRAMMING_MODELS.get(kernel)
    python = environment_python(model.environment, folder)
    options = f"--implementation {kernel} --deck small --poses {POSES} --ppwi 4 --iterations 3"
    program = model.program("gcc", "cpu")
    try:
        named = ["--program", find(program[0], Path(python).parent)] if program else []
    except Lacks as error:
        pytest.skip(str(error))
    return [python, "-m", "transect.hpc.probes.docking", *options.split(), *named]


def start(server: TurnServer, kernel: str, folder: Path) -> Contender:
    folder.mkdir()
    return server.start(probe(kernel, folder), folder, PYTHONPATH=str(ROOT / "src"))


def details(folder: Path, counts: list[int]) -> dict[str, Any]:
    """Return what the stage makes of a run that took these turns."""
    (folder / "output.log").write_bytes((folder / "stdout").read_bytes())
    job: Any = SimpleNamespace(
        cell=docking_cell(),
        folder=folder,
        turns={"heat": "h", "counts": counts, "quiet": [True] * len(counts)},
        spec={"system": {"cores_per_node": 8}},
    )
    outcome = Outcome(end="exited", code=0, seconds=1.0, peak_bytes=0)
    return BenchRunner(STAGES.get("bench")).collect(job, outcome).details


@pytest.mark.env
@pytest.mark.parametrize("kernel", KERNELS)
def test_who_waits_runs_nothing_and_every_run_of_a_turn_is_in_the_log(kernel: str, tmp_path: Path) -> None:
    counts, idle = [40, 2, 1, 40], []
    took: dict[str, list[int]] = {"a": [], "b": []}
    with turn_server() as server:
        both = {name: start(server, kernel, tmp_path / name) for name in took}
        for number, count in enumerate(counts):
            for name in "ab" if number % 2 == 0 else "ba":
                waiting = both["b" if name == "a" else "a"]
                before, own = waiting.cpu_ns(), both[name].cpu_ns()
                took[name].append(both[name].turn(count))
                idle.append((waiting.cpu_ns() - before) / (both[name].cpu_ns() - own))
        codes = [one.end() for one in both.values()]
    assert codes == [0, 0], (tmp_path / "a" / "stdout").read_text()
    assert min(idle) < 0.01
    benchmark = BENCHMARKS.get("docking-probe")
    for name, turns in took.items():
        (run,) = ingest([tmp_path / name / "stdout"], benchmark.parser)
        assert (run.status, run.reason) == ("ok", "")
        seconds = np.array(benchmark.iterations(run)) * POSES
        assert len(run.samples["warm-up"].values) == 2 and len(seconds) == sum(counts)
        told = details(tmp_path / name, counts)["turns"]
        assert (told["metric"], told["counts"], told["quiet"]) == ("pose_time", [39, 1, 1, 39], [True] * 4)
        assert told["seconds"][1] * POSES == pytest.approx(run.samples["kernel"].values[41])
        timed = [part.sum() for part in np.split(seconds, np.cumsum(counts)[:-1])]
        assert all(0 < own <= all_ns * 1e-9 for own, all_ns in zip(timed, turns, strict=True)), (timed, turns)


@pytest.mark.env
@pytest.mark.parametrize("kernel", ["numpy", "rust"])
def test_without_who_gives_turns_it_ends_and_nothing_goes_on(kernel: str, tmp_path: Path) -> None:
    with turn_server() as server:
        one = start(server, kernel, tmp_path / "a")
        one.turn(1)
        one.connection.close()
        code = one.process.wait(timeout=300)
    said = (tmp_path / "a" / "stdout").read_text()
    assert code == 2 and "status: refused: TRANSECT_TURNS: the engine that gives turns has gone" in said


@pytest.mark.env
@pytest.mark.parametrize("kernel", ["openmp", "rust", "go"])
@pytest.mark.parametrize(("words", "runs"), [("2\n1\n0\n", 3), ("2\n", 2), ("", 0)])
def test_a_program_without_a_number_of_runs_asks_for_it(kernel: str, words: str, runs: int, tmp_path: Path) -> None:
    deck, program = small(), probe(kernel, tmp_path)[-1]
    write_prepared(deck, constants(deck.kinds), tmp_path / "deck")
    argv = [program, "--deck", "deck", "--energies", "energies", "--iterations", "0", "--warm-ups", "1"]
    done = subprocess.run(argv, input=words, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    lines = [line.split()[0] for line in done.stdout.splitlines() if not line.startswith("fact ")]
    asked = words.count("\n") if words.endswith("0\n") else words.count("\n") + 1
    assert done.returncode == 0, done.stderr
    assert (lines.count("warm-up"), lines.count("time"), lines.count("turn")) == (1, runs, asked)
    assert lines[:2] == ["warm-up", "turn"] and (tmp_path / "energies").stat().st_size == 4 * 20
