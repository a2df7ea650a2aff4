"""The docking kernel's log and benchmark: what is read of them, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docking_parts import docking_cell, scan, small, write_deck
from transect.hpc.benchmarks import docking_probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.docking.base import PROGRAMMING_MODELS
from transect.hpc.probes import _docking_deck as decks
from transect.hpc.probes import docking
from transect.hpc.probes._docking_arguments import IMPLEMENTATIONS
from transect.hpc.probes._docking_places import PINS
from transect.planning.code_hash import closure

LOG = """\
transect probe docking 1
note: a transect probe, not miniBUDE
python: 3.11.7
implementation: numba
threads: 1
poses: 256
ligand_atoms: 26
protein_atoms: 938
poses_per_item: 256
sample kernel 0 0.002000000
sample kernel 1 0.001000000
result kernel-time best 1.000000e-03 s median 1.500000e-03 s runs 2
result kernel best 1.876860e+11 FLOP/s median 1.251240e+11 FLOP/s runs 2
result kernel-ppwi1 best 2.498674e+11 FLOP/s median 1.665783e+11 FLOP/s runs 2
verify energies difference 2.665e-05 tolerance 2.500e-04 passed
status: ok
end of transect probe docking
"""


LOG_CASES = [
    (lambda t: t, "ok", ""),
    (lambda t: "0: " + t.replace("\n", "\n0: "), "ok", ""),
    (lambda t: t.replace("kernel best 1.87", "kernel best 2.87"), "invalid", "samples give 1.87"),
    (lambda t: t.replace("protein_atoms: 938", "protein_atoms: 9380"), "invalid", "kernel: best"),
    (lambda t: t.replace("protein_atoms: 938\n", ""), "invalid", "its work is not known"),
    (lambda t: t.replace("sample kernel 1 0.001000000\n", ""), "invalid", "1 samples are"),
    (lambda t: t.replace("0.001000000", "0.000000000"), "invalid", "a sample of 0.0 s"),
    (lambda t: t.replace("passed", "FAILED"), "invalid", "energies are wrong"),
    (lambda t: t.replace("difference 2.665e-05", "difference 2.665e-01"), "invalid", "wrong"),
    (lambda t: t.replace("status: ok", "status: invalid: it is"), "invalid", "it is"),
    (lambda t: re.sub(r"verify.*\n", "", t), "no-result", "verification"),
    (lambda t: re.sub(r"result kernel best.*\n", "", t), "no-result", "lacks a result"),
    (lambda t: t.replace("docking 1\nnote", "docking 2\nnote"), "invalid", "format 2"),
    (lambda t: t[: t.index("status")], "truncated", "no last line"),
    (lambda t: t[: t.index("status")] + "Killed\n", "failed", "Killed"),
]


@pytest.mark.parametrize(("change", "status", "reason"), LOG_CASES)
def test_a_changed_log_is_caught(change, status: str, reason: str) -> None:
    run = scan(change(LOG))[0]
    assert run.status == status, run.reason
    assert reason in run.reason


# the benchmark


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        ({"device": "cuda"}, "not on 'cuda'"),
        ({"nodes": 2}, "2 ranks were asked for"),
        ({"options": (("implementation", "fortran"),)}, "openmp, openmp-target, rust, found 'fortran'"),
        ({"options": (("poses", 0),)}, "a whole number from 1 on, found 0"),
        ({"options": (("iterations", "many"),)}, "option iterations"),
        ({"options": (("pin", "yes"),)}, "one of none, close, spread, cores, found 'yes'"),
        ({"options": (("deck", "data/bm1"),)}, "an absolute path, found 'data/bm1'"),
        ({"options": (("deck", "$NO_SUCH_DECK/x"),)}, "no variable of the environment fills in"),
        ({"options": (("deck", "/nowhere"),)}, "/nowhere lacks ligand.in"),
    ],
)
def test_it_refuses_what_it_cannot_run(axes: dict[str, object], reason: str) -> None:
    assert reason in str(BENCHMARKS.get("docking-probe").supports(docking_cell(**axes)))


def test_it_sweeps_threads_and_fills_in_the_deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deck(small(), tmp_path)
    monkeypatch.setenv("SOME_DECK", str(tmp_path))
    options = (("deck", "$SOME_DECK"), ("implementation", "numpy"))
    for threads in (1, 2, 4):
        one = docking_cell(threads=threads, options=options)
        benchmark = BENCHMARKS.get("docking-probe")
        assert benchmark.supports(one) is None
        argv = benchmark.command(one, tmp_path, "python", [])
        assert argv[argv.index("--threads") + 1] == str(threads)
        assert argv[argv.index("--deck") + 1] == str(tmp_path)
        assert argv[argv.index("--poses") + 1] == "2048"


def test_names_that_are_written_twice_agree() -> None:
    assert docking_probe._FILES == decks.FILES
    assert docking_probe._SYNTHETIC == docking.SYNTHETIC
    assert set(docking_probe._SIZES) == set(decks.SIZES)
    assert docking_probe._PINS == PINS
    assert set(docking_probe._CAUSES) == {docking.WRONG, docking.BAD_INPUT, docking.LACKING, docking.DIED}
    without = {name for name in PROGRAMMING_MODELS if not PROGRAMMING_MODELS.get(name).program("", "cpu")}
    assert without == set(IMPLEMENTATIONS)
    code = {path.name for file in BENCHMARKS.get("docking-probe").code_files() for path in closure(file)}
    assert {path.name for path in Path(docking.__file__).parent.glob("*docking*.py")} <= code
