"""`python -m transect.stages.toy.worker --spec FILE --weights FILE --out DIR`: a norm."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from transect.domain.files import write_atomic


def main() -> int:
    """Write the norm into `result.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("spec", "weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args()
    spec = json.loads(given.spec.read_text())
    with np.load(given.weights) as file:
        flat = np.concatenate([file[name].ravel() for name in sorted(file.files)])
    norm = float(np.linalg.norm(flat, spec["cell"].get("order", 2))) + spec["offset"]
    result = {"status": "ok", "metrics": [{"name": "toy_norm", "value": norm}], "details": {"weights": flat.size}}
    write_atomic(given.out / "result.json", json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
