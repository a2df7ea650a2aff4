"""A runner of level `cases` that stumbles where the name of a case says so; else it writes `ok`.

Its outputs are those that lie in `expected` beside the inputs; where the name ends in `expanded` they
are the inputs, which are wrong. What a name may begin with: abort, late, half, hang, linger, quit,
stop, twice, other, babble, refuse, lack.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from transect.runtimes.plan_file import DTYPE_CODES, Entry, Plan, Role, read_plan


def stay(record: Path) -> None:
    """Hang, and leave a file that says so: the test's clock looks at it."""
    number = len(list(record.parent.glob("hangs-*")))
    (record.parent / f"hangs-{number}").touch()
    while True:
        signal.pause()


def main() -> int:
    plan = read_plan(Path(sys.argv[1]))
    path = Path(plan.text(Role.OUT)) / "result.jsonl"
    cases = list(plan.of(Role.MODEL))
    with path.open("a") as record:
        for case in cases:
            run(case, plan, record, path)
    if cases[-1].name.startswith("linger"):
        stay(path)
    return 7 if cases[-1].name.startswith("tumble") else 0


def run(case: Entry, plan: Plan, record: Any, path: Path) -> None:
    kind, line = case.name.partition("-")[0], {"case": case.group}
    if kind in ("refuse", "lack", "stop"):
        print(f"stumbling: {kind}: said so", file=sys.stderr)
        sys.exit({"refuse": 2, "lack": 3, "stop": 0}[kind])
    say(record, line | {"status": "started"})
    if kind == "abort":
        print("stumbling: the kernel gave way", file=sys.stderr, flush=True)
        os.abort()
    if kind == "hang":
        stay(path)
    if kind == "quit":
        sys.exit(0)
    if kind == "half":
        record.write(json.dumps(line | {"status": "ok"})[:-9])
        record.flush()
        os.abort()
    if kind == "babble":
        record.write("Segmentation\n")
    if kind == "other":
        line = {"case": 99}
    if kind == "failed":
        say(record, line | {"status": "failed", "message": "no kernel"})
        return
    outputs = write_outputs(case, plan) if plan.text(Role.OUTPUTS, case.group) else []
    for _ in range(2 if kind == "twice" else 1):
        say(record, line | {"status": "ok", "outputs": outputs})
    if kind == "late":
        os.abort()


def write_outputs(case: Entry, plan: Plan) -> list[Any]:
    """Copy what is expected, or the inputs; return what the last line says of it."""
    right = not case.name.endswith("expanded")
    source = Path(case.text).with_name("expected" if right else "inputs")
    found = []
    entries = json.loads((source / "header.json").read_text())["tensors"]
    for index, entry in enumerate(entries[: len(list(plan.of(Role.OUTPUT, case.group)))]):
        shutil.copy(source / entry["file"], Path(plan.text(Role.OUTPUTS, case.group)) / f"output-{index}.bin")
        found.append([DTYPE_CODES[entry["dtype"]], entry["shape"]])
    return found


def say(record: Any, line: dict[str, Any]) -> None:
    record.write(json.dumps(line) + "\n")
    record.flush()


if __name__ == "__main__":
    sys.exit(main())
