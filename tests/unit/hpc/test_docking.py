"""The docking kernel: its decks, and its energies against two references."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from log_scan import scan
from probe_runs import Result, start

from checkouts import ROOT, environment_python
from docking_parts import docking_cell, small, write_deck
from transect.hpc.benchmarks import docking_probe
from transect.hpc.benchmarks.base import BENCHMARKS
from transect.hpc.docking.base import PROGRAMMING_MODELS
from transect.hpc.ingest import ingest
from transect.hpc.probes import _docking_deck as decks
from transect.hpc.probes import docking
from transect.hpc.probes._docking_arguments import IMPLEMENTATIONS
from transect.hpc.probes._docking_energy import BLOCK, constants, definition, largest_difference, operations
from transect.hpc.probes._docking_numpy import NumpyKernel
from transect.hpc.probes._docking_places import PINS
from transect.planning.code_hash import closure
from transect.stages.ingest.result import result_of


@pytest.fixture(scope="session")
def docking_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return environment_python("docking", tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def published() -> Path:
    """The deck `bm1` of miniBUDE, which is not part of this repository."""
    given = os.environ.get("TRANSECT_DECK")
    # Else a folder beside the checkout, as data too large for it may lie.
    folders = [Path(given)] if given else sorted(ROOT.parent.glob("*/data/minibude-bm1"))
    for folder in folders:
        if (folder / "poses.in").is_file():
            return folder
    pytest.skip("no deck of miniBUDE: set TRANSECT_DECK to its data/bm1")


def probe(python: str, *options: str) -> Result:
    return start([python, "-m", "transect.hpc.probes.docking", *options])


# decks


def test_a_deck_survives_its_files(tmp_path: Path) -> None:
    deck = small()
    write_deck(deck, tmp_path)
    again = decks.read_deck(tmp_path)
    for name in ("ligand", "protein", "kinds", "poses"):
        assert np.array_equal(getattr(again, name), getattr(deck, name))
    assert again.energies is None and re.fullmatch(r"[0-9a-f]{16}", again.checksum)


def test_a_larger_synthetic_deck_begins_with_the_smaller_one() -> None:
    large, little = small(50), small(20)
    assert np.array_equal(large.first(20).poses, little.poses)
    assert np.array_equal(large.protein, little.protein)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _put(path: Path, key: str, value: float, dtype: np.dtype) -> None:
    records = np.fromfile(path, dtype)
    records[key][0] = value
    path.write_bytes(records.tobytes())


DECK_ERRORS = [
    (lambda d: (d / "protein.in").unlink(), "lacks protein.in"),
    (lambda d: _cut(d / "ligand.in"), "ligand.in has 77 bytes, expected a multiple of 16"),
    (lambda d: (d / "protein.in").write_bytes(b""), "protein.in has 0 bytes"),
    (lambda d: (d / "poses.in").write_bytes(bytes(28)), "poses.in holds 7 numbers"),
    (lambda d: _put(d / "ligand.in", "kind", 9, decks.ATOM), "forcefield.in has 9"),
    (lambda d: _put(d / "protein.in", "kind", -1, decks.ATOM), "protein.in names the kinds -1"),
    (lambda d: _put(d / "protein.in", "x", np.nan, decks.ATOM), "position that is not finite"),
    (lambda d: _put(d / "forcefield.in", "charge", np.inf, decks.KIND), "a charge that is not"),
    (lambda d: _put(d / "forcefield.in", "radius", 0, decks.KIND), "a radius that is not positive"),
    (lambda d: (d / "ref_energies.out").write_text("1.0\n2.0\n"), "2 energies for 20 poses"),
    (lambda d: (d / "ref_energies.out").write_text("1.0\nnone\n"), "has to be one number"),
    (lambda d: (d / "ref_energies.out").write_text("nan\n" * 20), "energy that is not finite"),
]


@pytest.mark.parametrize(("change", "words"), DECK_ERRORS)
def test_a_bad_deck_is_refused_in_words(change, words: str, tmp_path: Path) -> None:
    write_deck(small(), tmp_path)
    change(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(words)):
        decks.read_deck(tmp_path)


# energies


def test_the_published_formula_counts_the_published_deck() -> None:
    # 26 ligand and 938 protein atoms, 65536 poses, 128 of them per work-item.
    by_hand = (128 * 27 + 26 * (2 + 18 * 128 + 938 * (10 + 30 * 128)) + 128) * 65536 / 128
    assert operations(65536, 26, 938, 128) == by_hand
    assert operations(1, 1, 1, 1) == 27 + 2 + 18 + 10 + 30 + 1


def test_one_pair_by_hand() -> None:
    kinds = np.zeros(2, decks.KIND)
    kinds["bond"], kinds["radius"] = [70, 70], [1.5, 1.0]
    kinds["hydrophobic"], kinds["charge"] = [-0.5, 2.0], [0.5, -1.0]
    ligand, protein = np.zeros(1, decks.ATOM), np.zeros(1, decks.ATOM)
    protein["kind"] = 1
    poses = np.zeros((6, 3), np.float32)
    poses[3] = [1.0, 3.0, 8.0]  # touching; within reach of both terms; beyond both
    deck = decks.Deck(name="pair", ligand=ligand, protein=protein, kinds=kinds, poses=poses, energies=None, checksum="")
    steric, charge, solvation = 76 * (1 - 1 / 2.5), 45 * -0.5, 2.5
    expected = [0.5 * (steric + charge + solvation), 0.5 * (charge * (1 - 0.5 / 4) + solvation * (1 - 0.5 / 1)), 0.0]
    assert definition(deck, np.arange(3)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_constants_without_cases_equal_the_definition(seed: int) -> None:
    deck = small(CHUNKS, seed)
    kernel = NumpyKernel(deck, 2, None, np.float64)
    kernel.run()
    kernel.close()
    expected = definition(deck, np.arange(CHUNKS))
    assert kernel.energies == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert constants(deck.kinds).shape == (9, 9, 7)


CHUNKS = 70  # one whole chunk of the numpy kernel, and a part of one


def test_energies_that_are_wrong_or_missing_differ() -> None:
    right = np.array([100.0, -50.0, 0.2])
    assert largest_difference(right.copy(), right) == 0
    # The sign of the reference must not hide a difference.
    assert largest_difference(np.array([100.0, -51.0, 0.2]), right) == pytest.approx(0.02)
    assert largest_difference(np.array([100.0, -50.0, 0.9]), right) == 0, "both below one"
    assert largest_difference(np.array([100.0, -50.0, np.nan]), right) == np.inf
    assert largest_difference(np.array([5.0]), np.array([0.0])) == np.inf


@pytest.mark.parametrize("implementation", ["numpy", "numba"])
def test_the_published_energies_are_reached(implementation: str, docking_python: str, published: Path) -> None:
    options = ("--implementation", implementation, "--deck", str(published), "--poses", "256")
    done = probe(docking_python, *options, "--iterations", "2", "--threads", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = scan(done.stdout)
    assert (run.status, run.reason, run.variant) == ("ok", "", implementation)
    checked = str(run.parameters["checked_against"])
    assert checked.startswith("the deck's") and "256 of 256" in checked
    assert (run.parameters["ligand_atoms"], run.parameters["protein_atoms"]) == (26, 938)
    assert float(str(run.parameters["largest_difference"])) < 5e-5
    assert str(published) not in done.stdout.replace(published.name, "")


def test_the_definition_reaches_the_published_energies(published: Path) -> None:
    deck = decks.read_deck(published)
    assert deck.energies is not None and deck.poses.shape == (6, 65536)
    which = np.linspace(0, 65535, 256).astype(int)
    assert largest_difference(definition(deck, which), deck.energies[which]) < 5e-5


# the program and its log


def test_numba_agrees_with_numpy_and_the_log_becomes_metrics(docking_python: str, tmp_path: Path) -> None:
    options = (("iterations", 3), ("pin", "cores"), ("poses", BLOCK + 44))
    benchmark = BENCHMARKS.get("docking-probe")
    argv = benchmark.command(docking_cell(options=options), tmp_path, docking_python, [])
    done = probe(*argv[:1], *argv[3:])
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "output.log").write_text(done.stdout)
    (run,) = ingest(benchmark.logs(tmp_path))
    assert (run.status, run.reason) == ("ok", "")
    assert run.parameters["verified"] == "yes"
    checked = str(run.parameters["checked_against"])
    assert "numpy, float64" in checked and "256 of 300" in checked
    assert float(str(run.parameters["largest_difference"])) < 1e-5
    assert re.search(r"alone on CPU \d+$", str(run.parameters["pin"]))
    assert len(run.samples["kernel"].values) == 3
    metrics = {metric.label: metric for metric in result_of([run], must_have=True).metrics}
    assert {name: metric.name for name, metric in metrics.items()} == {
        "kernel_best": "kernel_flops",
        "kernel_median": "kernel_flops",
        "kernel-time_best": "benchmark_time",
        "kernel-time_median": "benchmark_time",
        "pose-time_best": "pose_time",
        "pose-time_median": "pose_time",
        "interactions_best": "interaction_rate",
        "interactions_median": "interaction_rate",
        "warm-up_first": "warm_up_time",
    }
    work = operations(300, 26, 938, BLOCK)
    expected = work / metrics["kernel-time_best"].value
    assert metrics["kernel_best"].value == pytest.approx(expected, rel=1e-5)


def test_wrong_energies_are_no_result(docking_python: str, tmp_path: Path) -> None:
    deck = small(40)
    energies = definition(deck, np.arange(40))
    energies[17] += 0.01 * abs(energies[17]) + 2
    wrong = decks.Deck(
        name="wrong",
        ligand=deck.ligand,
        protein=deck.protein,
        kinds=deck.kinds,
        poses=deck.poses,
        energies=energies,
        checksum="",
    )
    write_deck(wrong, tmp_path)
    options = ("--implementation", "numpy", "--iterations", "1", "--poses", "40")
    done = probe(docking_python, "--deck", str(tmp_path), *options)
    assert done.returncode == 1
    (run,) = scan(done.stdout)
    assert (run.status, run.parameters["verified"]) == ("invalid", "no")
    assert "energies are wrong" in run.reason
    assert not result_of([run], must_have=True).metrics


def test_more_poses_than_a_deck_has_end_in_words(docking_python: str, tmp_path: Path) -> None:
    write_deck(small(), tmp_path)
    done = probe(docking_python, "--deck", str(tmp_path), "--poses", "21")
    assert done.returncode == docking.BAD_INPUT
    (run,) = scan(done.stdout)
    assert run.status == "invalid" and "21 poses" in run.reason


def test_more_threads_than_cpus_cannot_be_pinned(docking_python: str) -> None:
    done = probe(docking_python, "--threads", "4096", "--pin", "close", "--poses", "1")
    assert done.returncode == docking.LACKING
    assert "4096 threads" in done.stdout


def test_it_sweeps_threads_and_fills_in_the_deck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deck(small(), tmp_path)
    monkeypatch.setenv("SOME_DECK", str(tmp_path))
    options = (("deck", "$SOME_DECK"), ("implementation", "numpy"))
    for threads in (1, 2, 4):
        cell = docking_cell(threads=threads, options=options)
        benchmark = BENCHMARKS.get("docking-probe")
        assert benchmark.supports(cell) is None
        argv = benchmark.command(cell, tmp_path, "python", [])
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
