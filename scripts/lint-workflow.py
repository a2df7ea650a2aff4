"""Run `snakemake --lint` and fail on everything but what is meant here, each with its reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ACCEPTED = {
    # The runner keeps the payload's output beside the record and prints progress to the terminal.
    "No log directive defined",
    # Environments are virtual environments by lock hash: the rule make_environment.
    "Specify a conda environment or container for each rule.",
    # FLOW holds paths of this checkout; what a result depends on is in its fingerprint.
    "Shell command directly uses variable FLOW from outside of the rule",
    # The plan is made in src/transect, so the Snakefile puts that on the path.
    "Do not access path components of sys.path",
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
