"""`python -m transect.adapters.snakemake.strict --summary FILE --out STAMP`: fail unless no cell failed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transect.domain.terminal import complain, say


def main() -> int:
    """Exit 1 and name cells that failed or have no record that can be read, or write the stamp."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    summary = json.loads(given.summary.read_text(encoding="utf-8"))
    lines = [
        f"{failure['stage']}/{failure['cell']}: {failure['cause']}: {failure['message']}"
        for failure in summary["failures"]
        if failure["status"] == "failed"
    ]
    lines += [*summary["unreadable"], *(f"{name}: no record" for name in summary["without_record"])]
    if lines:
        complain(f"strict: {len(lines)} cells failed, or have no record to go by:")
        say(*(f"  {line}" for line in lines))
        return 1
    given.out.write_text("no cell failed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
