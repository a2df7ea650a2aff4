"""`python -m transect.execution.strict --summary FILE --out STAMP`: fail when a cell failed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transect.domain.terminal import complain, say

__all__ = ["main"]


def main() -> int:
    """Exit 1 and name the failed cells, or write the stamp."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    failures = [
        one
        for one in json.loads(given.summary.read_text())["failures"]
        if one["status"] == "failed"
    ]
    if failures:
        complain(f"strict: {len(failures)} cells failed:")
        for one in failures:
            say(f"  {one['stage']}/{one['cell']}: {one['cause']}: {one['message']}")
        return 1
    given.out.write_text("no cell failed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
