"""Run `snakemake --lint` and fail on everything but what is meant here, each with its reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ACCEPTED = {
    # Environments are virtual environments by lock hash: the rule make_environment.
    "Specify a conda environment or container for each rule."
}


def main() -> int:
    """Return 1 and print the lints that are not accepted."""
    snakemake = Path(sys.executable).parent / "snakemake"
    run = subprocess.run([str(snakemake), "--lint", "text", "--config", "study=quick"], capture_output=True, text=True)
    place, left, seen = "", [], 0
    for line in (run.stdout + run.stderr).splitlines():
        if line.startswith("Lints for "):
            place, seen = line.removeprefix("Lints for "), seen + 1
        elif line.startswith("    * ") and line[6:].rstrip(":") not in ACCEPTED:
            left.append(f"{place} {line[6:]}")
    if not seen and "any problems" not in run.stdout + run.stderr:
        left.append(run.stderr)
    print("\n".join(left), file=sys.stderr, end="\n" if left else "")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
