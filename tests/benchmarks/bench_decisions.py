"""How many asked comparisons of a study end decided, and what share of these is wrong: `bench_decisions.py [STUDY …]`.

Simulates studies of which the truth is known (`tests/support/verdict_studies.py`), with the pairs that the studies in
`config/studies` plan. Exits with 1 where more than 5 % of the decided ones are wrong by more than chance explains. What is not
comparable, such as one rank beside two where somebody else has the second core, cannot be decided and is counted apart.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from transect.planning.plan import make_plan
from verdict_studies import SHAPES, TRUTHS, Design, Tally, study

CONFIG = Path(__file__).parents[2] / "config"
_STUDIES = ("quick", "frameworks", "runtimes", "docking", "go-mpi")


def planned(name: str, margin: float, most: int) -> Design:
    """Return what a study plans on this project's example of a laptop."""
    with tempfile.TemporaryDirectory() as results:
        file, system = CONFIG / "studies" / f"{name}.yaml", CONFIG / "systems" / "laptop.yaml"
        plan = make_plan(file, system, Path(results))
    cells = [p.cell.without_repeat() for p in plan]
    least = Counter((p.cell.stage, p.cell.without_repeat().id) for p in plan if not p.optional)
    pairs = [pair for pair in plan.analysis_plan.pairs if pair.asked]
    return Design(pairs=pairs, points={(c.stage, c.id): c for c in cells}, repeats=least, margin=margin, most=most)


def _row(name: str, shape: str, truth: str, tally: Tally) -> str:
    barred, sure, decided = (f"{share / tally.asked:.0%}" for share in (tally.barred, tally.sure, tally.decided))
    comparable = tally.asked - tally.barred
    of_comparable = f"{tally.decided / comparable:.0%}" if comparable else "none is"
    return (
        f"| {name} | {shape} | {truth} | {tally.asked // tally.studies} | {barred} | {tally.repeats / tally.studies:.1f} "
        f"| {sure} | {decided} | {of_comparable} | {tally.wrong_share:.1%} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=_STUDIES)
    parser.add_argument("--studies", type=int, default=200, help="of each row")
    parser.add_argument("--margin", type=float, default=0.10)
    parser.add_argument("--most", type=int, default=6, help="repeats, while intervals are wide")
    parser.add_argument("--shapes", nargs="*", default=[*SHAPES])
    parser.add_argument("--truths", nargs="*", default=[*TRUTHS])
    parser.add_argument("--seed", type=int, default=20261126)
    given = parser.parse_args()
    worst = 0
    print(
        "| study | noise | true difference | asked | not comparable | repeats | sure | sure or likely | of the comparable "
        "| of these wrong |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in given.names:
        design = planned(name, given.margin, given.most)
        for shape in given.shapes:
            of_shape = Tally()
            for truth in given.truths:
                rng, tally = np.random.default_rng(given.seed), Tally()
                for _ in range(given.studies):
                    study(tally, rng, design, SHAPES[shape], TRUTHS[truth])
                print(_row(name, shape, truth, tally), flush=True)
                of_shape.add(tally)
            print(_row(name, shape, "all", of_shape), flush=True)
            # Three standard errors above the bound are no chance; comparisons of one study are not independent.
            effective = max(1, min(of_shape.decided, 4 * of_shape.studies))
            worst += of_shape.wrong_share > 0.05 + 3 * math.sqrt(0.05 * 0.95 / effective)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
