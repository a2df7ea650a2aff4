"""`python -m transect.stages.ingest.worker --path LOGS --out DIR`: parse, leave a result."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from transect.domain.files import write_atomic
from transect.hpc.ingest import ingest
from transect.stages.ingest.result import result_of

__all__ = ["main"]


def main() -> int:
    """Ingest one source of a study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    result = result_of(ingest([given.path]), must_have=False)
    raw = {
        "status": "ok",
        "metrics": [m.model_dump(include={"name", "value", "label"}) for m in result.metrics],
        "details": result.details,
    }
    write_atomic(given.out / "result.json", json.dumps(raw))
    return 0


if __name__ == "__main__":
    sys.exit(main())
