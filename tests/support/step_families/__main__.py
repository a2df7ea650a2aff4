"""Export every case, each in a process of its own, and count: `PYTHONPATH=src:tests/support python -m step_families [WORD …]`.

In an environment with torch, onnxruntime, and timm, torchvision and transformers for their cases. A WORD picks the
cases whose names begin with it. Exits 1 where a case does otherwise than it says.
"""

from __future__ import annotations

import json
import subprocess
import sys

from step_families import CASES


def main() -> int:
    """Run the cases that the arguments name; return the exit code."""
    words = tuple(sys.argv[1:]) or ("",)
    passed: dict[str, list[bool]] = {}
    strange = False
    for name, case in CASES.items():
        if not name.startswith(words):
            continue
        done = subprocess.run(
            [sys.executable, "-m", "step_families.run", name], capture_output=True, text=True, check=False
        )
        last = (done.stdout if done.returncode == 0 else done.stderr).strip().rpartition("\n")[2]
        found = json.loads(last) if done.returncode == 0 else {"ok": False, "message": last, "cpu_s": 0}
        passed.setdefault(case.library, []).append(found["ok"])
        strange = strange or found["ok"] == bool(case.refused)
        print(f"{'ok     ' if found['ok'] else 'REFUSED'} {name} ({found['cpu_s']} s): {found['message']}", flush=True)
    for library, results in passed.items():
        print(f"{library}: {sum(results)} of {len(results)}")
    return int(strange)


if __name__ == "__main__":
    sys.exit(main())
