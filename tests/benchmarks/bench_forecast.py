"""How far predictions are off: trainings of this machine, each predicted before it ran.

Run by hand, alone on the machine: `python tests/benchmarks/bench_forecast.py [--frameworks numpy torch] [--workload
digits-cnn] [--ranks 2] [--repeats 3] [--epochs 6] [--keep FOLDER]`, about four minutes. Goals: a mean error under 3 %, and
strategies in the right order. A study with a `forecast` section runs through the ordinary pipeline, in a temporary
copy of the repository, so that profile, probes, predictions and trainings are made as any study makes them.

Prints each training's predicted and measured step (median of its repeats' medians), the error, whether the prediction
is older than every repeat, and whether the guard saw others on the machine while it was made; the mean of absolute
errors; and which pairs of strategies of a framework, whose measured steps differ by more than a tenth, were put in the
wrong order. Asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from checkouts import Checkout

_EVERY = (
    "mpi-allreduce",
    "mpi-sendrecv",
    "mpi-bcast-reduce",
    "mpi-overlap-bcast",
    "mpi-overlap",
    "mpi-hierarchical",
    "mpi-pipeline",
)
_OF_TORCH = ("ddp-gloo", "fsdp", "torch-pipeline")
# Steps that are nearer than this have no order.
_APART = 0.1


def study_text(given: argparse.Namespace) -> str:
    grids = []
    for framework in given.frameworks:
        strategies = [*_EVERY, *(_OF_TORCH if framework == "torch" else ())]
        common = f"workloads: [{given.workload}], frameworks: [{framework}]"
        grids += [
            f"    - {{{common}, strategies: [single]}}",
            f"    - {{{common}, strategies: [{', '.join(strategies)}], ranks: [{given.ranks}]}}",
        ]
    return "\n".join(
        [
            "name: forecast",
            "limits: {seconds: 300, repeats_if_disturbed: 0}",
            f"workloads: {{{given.workload}: {{epochs: {given.epochs}}}}}",
            "profile: {samples: 40}",
            "forecast: {grids: [{}]}",
            "train:",
            f"  repeats: {given.repeats}",
            "  grids:",
            *grids,
            "",
        ]
    )


def number(record: dict[str, Any], name: str) -> float:
    return next(one["value"] for one in record["metrics"] if one["name"] == name)


def rows(checkout: Checkout) -> list[dict[str, Any]]:
    """Return what was predicted and measured, one row for each prediction."""
    trained = list(checkout.records("forecast", "train").values())
    found = []
    for told in checkout.records("forecast", "forecast").values():
        cell = {key: value for key, value in told["cell"].items() if key not in ("stage", "repeat")}
        same = [
            one for one in trained if {k: v for k, v in one["cell"].items() if k not in ("stage", "repeat")} == cell
        ]
        ok = [one for one in same if one["status"] == "ok"]
        if told["status"] != "ok" or not ok:
            why = told["message"] or (same[0]["message"] if same else "no training")
            print(f"  {told['cell_id']}: nothing to compare: {why}")
            continue
        found.append(
            {
                "framework": cell["framework"],
                "strategy": cell["strategy"],
                "predicted": number(told, "predicted_step_time"),
                "measured": statistics.median(number(one, "step_time") for one in ok),
                "before": all(told["ended"] <= one["started"] for one in ok),
                "disturbed": any(one["details"].get("disturbed") for one in ok),
            }
        )
    return sorted(found, key=lambda row: (row["framework"], row["measured"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", nargs="+", default=["numpy", "torch"])
    parser.add_argument("--workload", default="digits-cnn")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--keep", type=Path, help="an empty folder for the copy and its results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        checkout = Checkout((given.keep or Path(temporary)) / "transect")
        (checkout.folder / "forecast.yaml").write_text(study_text(given))
        run = checkout.snakemake("--config", "study=forecast.yaml", timeout=3600)
        if run.returncode:
            raise SystemExit(run.stderr[-2000:])
        found = rows(checkout)
        notes = checkout.records("forecast", "profile").values()
        disturbed = sum(bool(one["details"].get("disturbed")) for one in notes)
    print(json.dumps({"profiles": len(notes), "of them disturbed": disturbed}))
    for row in found:
        error = row["predicted"] / row["measured"] - 1
        marks = [name for name in ("disturbed",) if row[name]]
        marks += [] if row["before"] else ["NOT OLDER than its training"]
        print(
            f"  {row['framework']:8} {row['strategy']:18} predicted {1e3 * row['predicted']:9.3f} ms, measured "
            f"{1e3 * row['measured']:9.3f} ms, {error:+7.1%} {' '.join(marks)}"
        )
    if found:
        errors = [abs(row["predicted"] / row["measured"] - 1) for row in found]
        print(f"mean error {statistics.mean(errors):.1%}, worst {max(errors):.1%}")
    wrong = [
        f"{a['strategy']} / {b['strategy']} ({a['framework']})"
        for a, b in combinations(found, 2)
        if a["framework"] == b["framework"]
        and abs(a["measured"] / b["measured"] - 1) > _APART
        and (a["predicted"] < b["predicted"]) != (a["measured"] < b["measured"])
    ]
    print(f"pairs in the wrong order: {len(wrong)}", *wrong, sep="\n  ")


if __name__ == "__main__":
    main()
