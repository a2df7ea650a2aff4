#!/usr/bin/env python3
"""Score the parsers on a folder of real logs with hand-read truth: `make corpus`.

TRANSECT_CORPUS names the folder, or several as PATH does; the INDEX.csv of each has the columns path,
benchmark and hand_read_truth. Exit code 1 when anything was missed, 2 when there is no such folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from corpus import CORPORA, Score, benchmarks, score

COLUMNS = "{:24} {:>12} {:>12} {:>12}"


def _row(name: str, one: Score) -> str:
    return COLUMNS.format(
        name,
        f"{one.recognised}/{one.files}",
        f"{one.values_right}/{one.values}",
        f"{one.statuses_right}/{one.statuses}",
    )


def main() -> int:
    """Print a row for each benchmark, the sums, and what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", nargs="*", help="as the index spells them; none: all")
    given = parser.parse_args()
    if not CORPORA:
        print("score-corpus: no folder of logs: set TRANSECT_CORPUS", file=sys.stderr)
        return 2
    try:
        known = benchmarks()
    except OSError as error:
        print(f"score-corpus: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    unknown = [name for name in given.benchmarks if name not in known]
    if unknown:
        print(f"score-corpus: {unknown[0]!r}: expected one of {', '.join(known)}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    total = Score()
    print(COLUMNS.format("benchmark", "recognised", "values", "statuses"))
    for name in given.benchmarks or known:
        one = score(name)
        print(_row(name, one))
        for field in ("files", "recognised", "values", "values_right", "statuses", "statuses_right"):
            setattr(total, field, getattr(total, field) + getattr(one, field))
        total.misses += one.misses
    print(_row("all", total))
    for miss in total.misses:
        print(f"missed: {miss}")
    print(f"{time.monotonic() - begin:.1f} s")
    return 1 if total.misses else 0


if __name__ == "__main__":
    sys.exit(main())
