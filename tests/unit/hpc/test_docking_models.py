"""The programming models of the docking kernel: right energies from each, and what each is told."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from probe_runs import start

from checkouts import environment_python
from docking_parts import docking_cell, small
from transect.domain.record import Cause
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.docking.base import PROGRAMMING_MODELS
from transect.hpc.probes import docking
from transect.hpc.probes._docking_deck import Deck, write_prepared
from transect.hpc.probes._docking_energy import constants, definition, largest_difference
from transect.hpc.probes._docking_places import LacksCpus, openmp_variables, places
from transect.hpc.probes._docking_program import Died, Lacks, find, measure
from transect.planning.stage import STAGES

# 300: no whole number of work-items of any size but 1 and 4.
POSES = 300
PROGRAMS = [("openmp", "gcc", per_item) for per_item in (1, 4, 8, 16, 32, 64, 128, 256)] + [
    ("openmp", "clang", 64),
    ("openmp-target", "gcc", 4),
    ("openmp-target", "clang", 16),
    ("openacc", "gcc", 1),
    ("openacc", "gcc", 8),
    ("go", "", 64),
    ("rust", "", 1),
    ("rust", "", 64),
]


@pytest.fixture(scope="session")
def bins(tmp_path_factory: pytest.TempPathFactory):
    """The `bin` of a model's environment, which is made when a test first asks."""
    found: dict[str, Path] = {}

    def of(name: str) -> Path:
        environment = PROGRAMMING_MODELS.get(name).environment
        if environment not in found:
            log = tmp_path_factory.mktemp("environment")
            found[environment] = Path(environment_python(environment, log)).parent
        return found[environment]

    return of


def found(bins, name: str, compiler: str, device: str = "cpu") -> str:
    """Return the program's path; a compiler that is not here skips the test with its own words."""
    (program,) = PROGRAMMING_MODELS.get(name).program(compiler, device)
    try:
        return find(program, bins(name))
    except Lacks as error:
        pytest.skip(str(error))


def right(energies: np.ndarray, deck: Deck) -> bool:
    expected = definition(deck, np.arange(len(energies)))
    return largest_difference(energies, expected) < 1e-5


@pytest.mark.env
@pytest.mark.parametrize(("name", "compiler", "per_item"), PROGRAMS)
def test_a_program_gives_the_energies_of_the_definition(
    name: str, compiler: str, per_item: int, bins, tmp_path: Path
) -> None:
    deck = small(POSES)
    threads = 1 if name == "openacc" else 2
    options = f"--ppwi {per_item} --threads {threads} --iterations 2 --warm-ups 1"
    argv = [found(bins, name, compiler), *options.split()]
    measured = measure(argv, deck, tmp_path, {})
    assert (len(measured.warm_ups), len(measured.times)) == (1, 2)
    assert min(measured.times) > 0
    assert right(measured.energies, deck)


@pytest.mark.env
@pytest.mark.parametrize("name", ["openmp", "go", "rust"])
@pytest.mark.parametrize(("schedule", "chunk"), [("static", 0), ("static", 2), ("dynamic", 3)])
def test_however_work_is_dealt_out_every_pose_is_done(
    name: str, schedule: str, chunk: int, bins, tmp_path: Path
) -> None:
    deck = small(POSES)
    compiler = "gcc" if name == "openmp" else ""
    options = f"--ppwi 16 --threads 3 --iterations 1 --schedule {schedule} --chunk {chunk}"
    argv = [found(bins, name, compiler), *options.split()]
    assert right(measure(argv, deck, tmp_path, {}).energies, deck)


@pytest.mark.env
@pytest.mark.parametrize("name", ["openmp", "go", "rust"])
def test_a_program_refuses_a_bad_deck_in_one_line(name: str, bins, tmp_path: Path) -> None:
    deck, program = small(), found(bins, name, "gcc" if name == "openmp" else "")
    path = tmp_path / "deck"
    write_prepared(deck, constants(deck.kinds), path)
    whole = path.read_bytes()
    for content, words in (
        (whole[:-4], "ends early"),
        (whole + b"more", "goes on after its last pose"),
        (b"no deck" + whole, "is no prepared deck"),
        (whole[:8] + bytes(16), "four counts from 1 on"),
        (whole[:24] + whole[24 : 24 + 60] + b"\x63\0\0\0" + whole[88:], "kind 99"),
    ):
        path.write_bytes(content)
        argv = [program, "--deck", str(path), "--energies", str(tmp_path / "energies")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 2 and words in done.stderr
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_what_was_not_compiled_says_so_with_the_compilers_words(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    notes = tmp_path / "share" / "docking"
    folder.mkdir()
    notes.mkdir(parents=True)
    (notes / "openacc-clang-cuda.txt").write_text("x.c:1: note\nclang: error: unknown argument: '-fopenacc'\n")
    with pytest.raises(Lacks, match=r"compiled: clang: .*'-fopenacc'"):
        find("transect-docking-openacc-clang-cuda", folder)
    with pytest.raises(Lacks, match="nobody tried"):
        find("transect-docking-rust", folder)
    with pytest.raises(Lacks, match=r"no-such-language .*PATH"):
        find("no-such-language", folder)


def test_a_program_for_another_cpu_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "share" / "docking").mkdir(parents=True)
    (tmp_path / "bin" / "transect-docking-rust").touch()
    (tmp_path / "share" / "docking" / "cpu.txt").write_text("avx9000\nsse2\n")
    with pytest.raises(Lacks, match="CPU with avx9000"):
        find("transect-docking-rust", tmp_path / "bin")


@pytest.mark.env
def test_every_compiler_left_a_program_or_its_words(bins) -> None:
    for name in ("openmp", "openmp-target", "openacc"):
        model = PROGRAMMING_MODELS.get(name)
        for compiler in model.compilers:
            # Of nvc, whose GPUs are its purpose, nobody wants the host's program.
            for device in model.devices if compiler != "nvc" else ("cuda",):
                (program,) = model.program(compiler, device)
                try:
                    assert Path(find(program, bins(name))).is_file()
                except Lacks as error:
                    assert "nobody tried" not in str(error)
                    assert str(error).startswith(program) and "compiled: " in str(error)


@pytest.mark.env
@pytest.mark.parametrize("per_item", [1, 16])
def test_opencl_gives_right_energies_or_says_that_it_has_no_platform(per_item: int, bins) -> None:
    options = f"--implementation opencl --deck small --poses {POSES} --ppwi {per_item} --iterations 2"
    argv = [str(bins("opencl") / "python"), "-m", "transect.hpc.probes.docking", *options.split()]
    done = start(argv)
    if done.returncode == docking.LACKING:
        assert "status: lacks: OpenCL: " in done.stdout
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "verified: yes" in done.stdout and "\nthreading: 1 " in done.stdout


@pytest.mark.env
def test_cuda_is_compiled_here_and_says_when_there_is_no_gpu(bins, tmp_path: Path) -> None:
    program = found(bins, "cuda", "", "cuda")
    deck = small(POSES)
    try:
        measured = measure([program, "--ppwi", "4"], deck, tmp_path, {})
    except Lacks as error:
        assert "cudaGetDeviceCount: " in str(error)
        assert not list(Path("/proc/driver/nvidia/gpus").glob("*"))
    else:
        assert right(measured.energies, deck)


@pytest.mark.env
@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("kill -SEGV $$", Died, "died by SIGSEGV"),
        ("echo 'it broke' >&2; exit 7", Died, "exit code 7: it broke"),
        ("exit 0", Died, "left 0 energies, expected 20"),
        ("echo 'lacks: no device' >&2; exit 3", Lacks, "no device"),
        ("echo 'error: --ppwi' >&2; exit 2", ValueError, "--ppwi"),
    ],
)
def test_a_program_that_ends_badly_is_told_apart(script, error, words, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(error, match=words):
        measure([str(program)], small(), tmp_path, {})


# where threads go


def _topology(folder: Path, cores: list[tuple[int, int]]) -> Path:
    for cpu, (package, core) in enumerate(cores):
        about = folder / f"cpu{cpu}" / "topology"
        about.mkdir(parents=True)
        (about / "physical_package_id").write_text(f"{package}\n")
        (about / "core_id").write_text(f"{core}\n")
    return folder


def test_threads_are_close_or_spread_on_cores_or_their_hardware_threads(tmp_path: Path) -> None:
    # Two packages of two cores with two hardware threads, numbered as Linux often does.
    sys = _topology(tmp_path, [(0, 0), (0, 1), (1, 0), (1, 1)] * 2)
    every = range(8)

    def of(threads: int, pin: str, kind: str = "cores") -> list[int]:
        return places(threads, pin, kind, allowed=every, sys=sys)

    assert of(2, "close") == of(2, "cores") == [0, 1]
    assert of(2, "spread") == [0, 2]
    assert of(4, "close") == of(4, "spread") == [0, 1, 2, 3]
    assert of(3, "close", "threads") == [0, 4, 1]
    assert of(4, "spread", "threads") == [0, 1, 2, 3]
    with pytest.raises(LacksCpus, match=r"5 threads .*\b4 CPUs"):
        of(5, "close")
    with pytest.raises(LacksCpus, match="each of the 2 cores"):
        places(2, "close", "threads", allowed=[0, 1], sys=sys)


def test_openmp_is_told_in_its_own_words() -> None:
    assert openmp_variables("none", "cores") == {"OMP_PROC_BIND": "false"}
    assert openmp_variables("cores", "cores") == {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    assert openmp_variables("spread", "threads") == {"OMP_PROC_BIND": "spread", "OMP_PLACES": "threads"}


# cells


def command(**options: object) -> list[str]:
    device = str(options.pop("device", "cpu"))
    cell = docking_cell(options=tuple(sorted(options.items())), device=device, threads=2)
    benchmark = BENCHMARKS.get("docking-probe")
    assert benchmark.supports(cell) is None
    return benchmark.command(cell, Path(), "python", [])


def test_a_cell_becomes_the_probes_arguments() -> None:
    argv = command(
        implementation="openmp", compiler="clang", schedule="guided", chunk=2, pin="spread", ppwi=32, deck="small"
    )
    text = shlex.join(argv)
    for part in (
        "--implementation openmp",
        "--deck small",
        "--ppwi 32",
        "--compiler clang",
        "--schedule guided",
        "--chunk 2",
        "--pin spread --places cores",
        "--pinning openmp",
        "--program transect-docking-openmp-clang",
        "--threads 2",
        "--device cpu",
    ):
        assert part in text
    assert "--program" not in command(implementation="opencl")
    assert "transect-docking-openmp-target-gcc-cuda" in command(implementation="openmp-target", device="cuda")
    assert "--work-group 64" in shlex.join(command(implementation="cuda", device="cuda"))


def test_a_cell_runs_in_its_models_environment_and_depends_on_its_file() -> None:
    stage = STAGES.get("bench")
    for name in PROGRAMMING_MODELS:
        cell = docking_cell(options=(("implementation", name),))
        assert stage.environment(cell) == PROGRAMMING_MODELS.get(name).environment
        assert (PROGRAMMING_MODELS, name) in stage.plugins(cell)
        for path in PROGRAMMING_MODELS.get(name).code_files():
            assert path.is_file()
    assert stage.environment(docking_cell(options=(("implementation", "fortran"),))) == "docking"


def test_the_end_of_the_probe_is_a_cause(tmp_path: Path) -> None:
    benchmark = BENCHMARKS.get("docking-probe")
    (tmp_path / "output.log").write_text("status: lacks: no device\nend of transect probe docking\n")
    assert benchmark.verdict(tmp_path, docking.LACKING) == (Cause.MISSING_DEPENDENCY, "no device")
    assert benchmark.verdict(tmp_path, 99) is None
    (tmp_path / "output.log").write_text("status: invalid: energies are wrong\n")
    assert benchmark.verdict(tmp_path, docking.WRONG) == (Cause.WRONG_RESULT, "energies are wrong")


def test_julia_is_one_command_of_the_machine() -> None:
    program = PROGRAMMING_MODELS.get("julia").program("", "cpu")
    assert program[0] == "julia" and Path(program[-1]).is_file()
    if shutil.which("julia") is None:
        with pytest.raises(Lacks, match=r"julia .*PATH"):
            find(program[0])
