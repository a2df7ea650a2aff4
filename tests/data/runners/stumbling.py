"""A runner of mode `cases` that stumbles where the name of a case says so; else it writes `ok`.

Its outputs are those that lie in `expected` beside the inputs; where the name ends in `expanded` they
are the inputs, which are wrong. What a name may begin with: abort, late, half, hang, linger, quit,
stop, twice, other, babble, refuse, lack. Kept to the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any


def stay(record: Path) -> None:
    """Hang, and leave a file that says so: the test's clock looks at it."""
    number = len(list(record.parent.glob("hangs-*")))
    (record.parent / f"hangs-{number}").touch()
    while True:
        signal.pause()


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("mode", "provider", "options"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--skip", type=int, default=0)
    given = parser.parse_args()
    cases = json.loads(given.cases.read_text())
    with given.record.open("a") as record:
        for index, case in enumerate(cases[given.skip :], given.skip):
            run(case, {"case": index, "name": case["name"]}, record, given.record)
    if cases[-1]["name"].startswith("linger"):
        stay(given.record)
    return 7 if cases[-1]["name"].startswith("tumble") else 0


def run(case: dict[str, Any], line: dict[str, Any], record: Any, path: Path) -> None:
    kind = case["name"].partition("-")[0]
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
        line = line | {"name": "somebody else"}
    if kind == "failed":
        say(record, line | {"status": "failed", "message": "no kernel"})
        return
    if "outputs" in case:
        source = Path(case["inputs"])
        right = not case["name"].endswith("expanded")
        shutil.copytree(source.parent / "expected" if right else source, case["outputs"])
    for _ in range(2 if kind == "twice" else 1):
        say(record, line | {"status": "ok"})
    if kind == "late":
        os.abort()


def say(record: Any, line: dict[str, Any]) -> None:
    record.write(json.dumps(line) + "\n")
    record.flush()


if __name__ == "__main__":
    sys.exit(main())
