"""How often a confirmed verdict is wrong, and how many comparisons end confirmed: `python tests/benchmarks/bench_verdicts.py`.

Simulates studies whose truth is known, for each shape of noise and number of repeats; with
`--results FOLDER` instead with the noise of the repeats recorded there. Exits with 1 where more than
5 % of confirmed verdicts are wrong by more than chance explains.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from transect.analysis.groups import group_records
from transect.analysis.load import load_records
from verdict_studies import SHAPES, Noise, Tally, adaptive_study, fixed_study, moved_study, of_residuals, watched_study

_METRICS = {"train": "step_time", "infer": "latency", "retrain": "step_time"}
_REPEATS = (3, 4, 5, 6, 8, 10)
_CAP = 10


def recorded(results: Path) -> dict[str, Noise]:
    """Return the noise of each stage and workload of a results folder that has repeats."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    for group in group_records(load_records(results).records):
        name = _METRICS.get(group.cell.stage)
        if name and len(values := group.values(name)) > 1:
            found[f"{group.cell.stage} {group.cell.workload}"].append(values)
    return {f"recorded {name}": of_residuals(groups) for name, groups in sorted(found.items())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000, help="of each row")
    parser.add_argument("--results", type=Path, help="a folder results/STUDY with repeats")
    parser.add_argument("--seed", type=int, default=20261123)
    given = parser.parse_args()
    shapes = recorded(given.results) if given.results else SHAPES
    worst = 0
    print(
        f"{'noise':32} {'repeats':>9} {'pairs':>6} {'confirmed':>6} {'wrong':>7} {'studies':>8}"
        f" {'equal':>6} {'10 %':>6} {'35 %':>6} {'2.5 x':>6} {'runs':>6}"
    )
    special = {"slower in a week": moved_study, "disturbed runs are seen": watched_study}
    studies = {f"{name}, {how}": (noise, study) for how, study in special.items() for name, noise in shapes.items()}
    every = {name: (noise, None) for name, noise in shapes.items()} | studies
    for name, (noise, study) in every.items():
        for paired in (False, True):
            for runs in (*_REPEATS, *(() if study else (0,))):
                rng, tally = np.random.default_rng(given.seed), Tally()
                for _ in range(given.studies):
                    if study is not None:
                        study(tally, rng, noise, runs, paired=paired)
                    elif runs:
                        fixed_study(tally, rng, noise, runs, paired=paired)
                    else:
                        adaptive_study(tally, rng, noise, 3, _CAP, paired=paired)
                confirmed = sum(tally.confirmed.values())
                # Three standard errors above the bound are no chance.
                most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / max(1, confirmed))
                worst += tally.wrong_share > most
                told = str(runs) if runs else f"3 to {_CAP}"
                powers = " ".join(f"{tally.power(kind):6.0%}" for kind in tally.chances)
                print(
                    f"{name:32} {told:>9} {'yes' if paired else 'no':>6} {confirmed:6} "
                    f"{tally.wrong_share:7.2%} {tally.studies_wrong / tally.studies:8.1%} {powers} "
                    f"{tally.repeats / tally.studies / 8:6.1f}",
                    flush=True,
                )
    print(
        "wrong: share of confirmed verdicts; studies: with any wrong verdict; equal to 2.5 x: share of "
        "comparisons of that truth that end confirmed and right; runs: of each cell"
    )
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
