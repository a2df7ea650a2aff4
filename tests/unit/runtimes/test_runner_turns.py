"""Turns at level `latency`: two programs in each language, of which one waits while the other runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runner_program import NATIVE, Program, X

from transect.domain.axes.infer import InferCell
from transect.onnx_models.tensors import write_tensors
from transect.runtimes.infer import conclude
from transect.runtimes.options import session_options
from transect.runtimes.prepare import prepare_run
from transect.runtimes.programs import run_record, start_command
from turn_server import Contender, TurnServer, turn_server

LANGUAGES = [*NATIVE, "java", "kotlin", "javascript", "python"]
# Long enough that what is done once after a turn does not count.
CALLS = 4000
ONE_THREAD = {"intra_op_num_threads": 1}


def contender(server: TurnServer, program: Program, folder: Path) -> Contender:
    write_tensors(folder / "inputs", {"x": X}, batch=2)
    plan = program.plan(folder, "linear", options=ONE_THREAD, min_runs=10**6, profile=folder / "profile")
    return server.start(start_command(program.runtime, program.python, plan), folder)


@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
def test_who_waits_runs_nothing_and_counts_no_time(program: Program, tmp_path: Path) -> None:
    counts, idle = [CALLS, 3, 1, CALLS, CALLS + 1], []
    took: dict[str, list[int]] = {"a": [], "b": []}
    with turn_server() as server:
        both = {name: contender(server, program, tmp_path / name) for name in took}
        for number, count in enumerate(counts):
            for name in "ab" if number % 2 == 0 else "ba":
                waiting = both["b" if name == "a" else "a"]
                before, own = waiting.cpu_ns(), both[name].cpu_ns()
                took[name].append(both[name].turn(count))
                if count >= CALLS:
                    idle.append((waiting.cpu_ns() - before) / (both[name].cpu_ns() - own))
        codes = [one.end() for one in both.values()]
    assert codes == [0, 0], (tmp_path / "a" / "stderr").read_text()
    # Compilers of virtual machines go on a while.
    assert min(idle) < 0.01
    for name, turns in took.items():
        record = run_record(program.runtime, tmp_path / name, 0)
        assert record["stop_reason"] == "turns" and len(record["profile_run_ns"]) == 10
        parts = np.array([record[f"{part}_ns"] for part in ("bind", "run", "copy")])
        assert parts.shape == (3, sum(counts))
        timed = [part.sum() for part in np.split(parts, np.cumsum(counts)[:-1], axis=1)]
        assert all(0 < own <= all_ for own, all_ in zip(timed, turns, strict=True)), (timed, turns)


@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
@pytest.mark.parametrize("when", ["before its first turn", "in a turn", "while it waits"])
def test_a_server_that_goes_ends_the_program_in_one_line(program: Program, tmp_path: Path, when: str) -> None:
    with turn_server() as server:
        one = contender(server, program, tmp_path)
        if when == "in a turn":
            one.send(CALLS)
        elif when == "while it waits":
            one.turn(1)
        one.connection.close()
        code = one.process.wait(timeout=300)
        peer = server.variable.rpartition(":")[0]
    said, record = (tmp_path / "stderr").read_text(), run_record(program.runtime, tmp_path, code)
    assert (code, record["status"], record["cause"]) == (1, "failed", "crash"), said
    # A virtual machine also names the class of its error.
    assert record["message"].endswith(f"turns: {peer} ended the connection")
    assert said == f"{program.runtime}: {record['message']}\n"


@pytest.mark.parametrize("program", LANGUAGES, indirect=True)
def test_who_is_not_there_or_not_named_ends_the_program(program: Program, tmp_path: Path) -> None:
    with turn_server() as server:
        gone = server.variable
    for given, code, words in (
        (gone, 1, f"turns: {gone.rpartition(':')[0]}: "),
        (gone[:-1], 2, "TRANSECT_TURNS: expected HOST:PORT:KEY"),
    ):
        write_tensors(tmp_path / "inputs", {"x": X})
        run = program.start(program.plan(tmp_path, "linear"), tmp_path, TRANSECT_TURNS=given)
        assert run.code == code, run.stderr
        assert words in run.record["message"] and run.stderr.count("\n") == 1
        assert gone[-32:] not in run.stderr


@pytest.mark.parametrize(
    "program", ["c", "cpp", "rust", "go", "java", "javascript", "browser", "python"], indirect=True
)
def test_a_program_that_takes_no_turns_does_not_ask_for_them(program: Program, tmp_path: Path) -> None:
    with turn_server() as server:
        gone = server.variable
    write_tensors(tmp_path / "inputs", {"x": X})
    if program.runtime == "browser":
        plan = program.plan(tmp_path, "linear")
    else:
        np.zeros(3, "<i8").tofile(tmp_path / "arrivals.bin")
        plan = program.plan(tmp_path, "linear", arrivals=tmp_path / "arrivals.bin")
    run = program.start(plan, tmp_path, TRANSECT_TURNS=gone)
    assert run.code == 0, run.stderr
    assert run.record["stop_reason"] != "turns"


def test_a_runtime_and_the_framework_are_compared_turn_by_turn(torch_python: str, digits: Path, tmp_path: Path) -> None:
    spec = {"options": session_options("equal", 1, "cpu", {}), "limits": {"warmup": 2, "max_seconds": 0}}
    cells = [
        InferCell(workload="digits-cnn", runtime="torch-eager", provider="cpu", batch=16),
        InferCell(workload="digits-cnn", runtime="python", exporter="torchscript", provider="cpu", batch=16),
    ]
    counts, started = [5, 4, 1, 3], []
    with turn_server() as server:
        for cell in cells:
            folder = tmp_path / cell.runtime
            folder.mkdir()
            export, weights = digits / "torchscript", digits / "weights.npz"
            command = prepare_run(spec, cell, export, {"weights": weights}, folder, torch_python)
            started.append(server.start(command, folder))
        for number, count in enumerate(counts):
            for one in started if number % 2 == 0 else reversed(started):
                one.turn(count)
        codes = [one.end() for one in started]
    turns = {"heat": "h", "counts": counts, "quiet": [True, False, True, True]}
    for cell, code in zip(cells, codes, strict=True):
        found = conclude(cell, digits / "torchscript", tmp_path / cell.runtime, code, python=torch_python, turns=turns)
        assert found["status"] == "ok", found
        told = found["details"]["turns"]
        assert (told["heat"], told["counts"], told["quiet"]) == ("h", [4, 3, 1, 2], turns["quiet"])
        assert all(0 < run <= whole for run, whole in zip(told["seconds"], told["end_to_end_seconds"], strict=True))
        assert found["details"]["runs"] == found["samples"]["latency"]["count"] == 7
        assert found["details"]["stop_reason"] == "turns"
