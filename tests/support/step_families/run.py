"""Export one case in a process of its own: `python -m step_families.run NAME`; a line of JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from step_families import CASES


def run(name: str) -> dict[str, Any]:
    """Return `ok`, `message` (what was said, or what was not compared) and the processor seconds of the export."""
    import torch

    from transect.domain.errors import BadInput
    from transect.portable_step import export_step

    torch.manual_seed(0)
    torch.set_num_threads(1)
    example = CASES[name].build()
    optimiser = (
        example.optimiser(example.module)
        if example.optimiser
        else torch.optim.SGD(example.module.parameters(), lr=0.1, momentum=0.9)
    )
    begin = time.process_time()
    try:
        with tempfile.TemporaryDirectory() as folder:
            manifest = export_step(
                example.module, example.loss, optimiser, example.data, Path(folder) / "step", dynamic=example.dynamic
            )
        checked = manifest.checked
        ok, message = checked is not None and bool(checked.lengths), (checked and checked.unchecked) or ""
    except BadInput as error:
        ok, message = False, str(error)
    except Exception:
        ok, message = False, traceback.format_exc()
    return {"ok": ok, "message": message, "cpu_s": round(time.process_time() - begin, 1)}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
