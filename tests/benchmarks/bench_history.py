"""How often a history tells a change where there is none, and finds one: `python tests/benchmarks/bench_history.py`.

Simulates histories of a stage of cells whose truth is known: no change, or a step in one cell or in all of them
at once. Runs have noise of their own that all cells share, beside that of each cell. Where runs are exchangeable at
most 5 % of histories may have a false alarm; it exits with 1 where more have than chance explains. The last
shapes are not exchangeable: their rows say what the method cannot know.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from transect.analysis.history import LEVEL
from transect.stats.change_points import change_points

# Draws logarithms of cells by runs.
Noise = Callable[[np.random.Generator, int, int], np.ndarray]


def _lognormal(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.02 * rng.standard_normal((cells, runs))


def _shared(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Most of a run's noise is that of its day, and the same for all cells."""
    return _lognormal(rng, cells, runs) + 0.04 * rng.standard_normal(runs)


def _heavy(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    return 0.015 * rng.standard_t(2, (cells, runs))


def _outliers(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """One run in seven is disturbed as a whole and takes up to three times as long."""
    hit = (rng.random(runs) < 0.15) * rng.uniform(0.1, 1.1, runs)
    return _lognormal(rng, cells, runs) + hit


def _two_states(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """Each cell of each run is in one of two states, 15 % apart."""
    return 0.15 * (rng.random((cells, runs)) < 0.5) + 0.25 * _lognormal(rng, cells, runs)


def _missing(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """A fifth of all cells have no result, whichever."""
    told = _shared(rng, cells, runs)
    told[rng.random((cells, runs)) < 0.2] = np.nan
    return told


def _autocorrelated(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """An AR(1) path over days, shared by all cells: half of a day is that of the day before."""
    path, value = np.empty(runs), 0.0
    for run in range(runs):
        value = 0.5 * value + 0.03 * rng.standard_normal()
        path[run] = value
    return _lognormal(rng, cells, runs) + path


def _drift(rng: np.random.Generator, cells: int, runs: int) -> np.ndarray:
    """The machine slows down by 15 % over all runs, little by little."""
    return _lognormal(rng, cells, runs) + 0.15 * np.arange(runs) / runs


EXCHANGEABLE: dict[str, Noise] = {
    "lognormal": _lognormal,
    "shared by a run": _shared,
    "heavy tail": _heavy,
    "disturbed runs": _outliers,
    "two states": _two_states,
    "missing results": _missing,
}
OTHERS: dict[str, Noise] = {"autocorrelated": _autocorrelated, "drift": _drift}


def alarms(logs: np.ndarray) -> set[tuple[int, int]]:
    """Return (series, run) of each change, tested as `transect.analysis.history` does; -1 is the stage."""
    whole = np.nanmedian(logs - np.nanmedian(logs, axis=1, keepdims=True), axis=0)
    found = change_points({-1: whole}, level=LEVEL / 2)
    found += change_points(dict(enumerate(logs)), level=LEVEL / 2)
    return {(one.series, one.at) for one in found}


def row(noise: Noise, cells: int, runs: int, studies: int, seed: int) -> tuple[float, float, float, float]:
    """Return the shares of histories with a false alarm, with a step found in one cell, in its stage, and extra."""
    rng = np.random.default_rng(seed)
    at = runs // 2
    false = single = whole = extra = 0
    for _ in range(studies):
        logs = noise(rng, cells, runs)
        false += bool(alarms(logs))
        step = logs.copy()
        step[0, at:] += math.log(1.2)
        seen = alarms(step)
        single += any(series == 0 and abs(run - at) <= 1 for series, run in seen)
        extra += any(series > 0 for series, _ in seen)
        together = logs.copy()
        together[:, at:] += math.log(1.1)
        whole += any(series == -1 and abs(run - at) <= 1 for series, run in alarms(together))
    return false / studies, single / studies, whole / studies, extra / studies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200, help="histories of each row")
    parser.add_argument("--cells", type=int, nargs="*", default=[10, 40])
    parser.add_argument("--runs", type=int, nargs="*", default=[10, 12, 20, 40])
    parser.add_argument("--seed", type=int, default=20261123)
    given = parser.parse_args()
    wrong = 0
    # Three standard errors above the level are no chance.
    most = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / given.studies)
    began = time.perf_counter()
    print(f"{'noise':18} {'cells':>6} {'runs':>5} {'false':>7} {'cell':>6} {'stage':>6} {'others':>7}")
    for name, noise in (EXCHANGEABLE | OTHERS).items():
        for cells in given.cells:
            for runs in given.runs:
                false, single, whole, extra = row(noise, cells, runs, given.studies, given.seed)
                wrong += name in EXCHANGEABLE and false > most
                print(f"{name:18} {cells:6} {runs:5} {false:7.1%} {single:6.0%} {whole:6.0%} {extra:7.1%}", flush=True)
    print(
        f"false: histories without a change in which one is told (at most {LEVEL:.0%} where runs are exchangeable); "
        "cell: a step of 20 % in one cell is found, within a run; stage: one of 10 % in all cells; others: with a step in one "
        f"cell, one is told in another; {given.studies} histories a row, {time.perf_counter() - began:.0f} s"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
