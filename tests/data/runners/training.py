"""A runner of mode `train` for w -= lr w, whose loss is |w|^2 / 2; and what may go wrong with one.

`--behave` says what: `right`; `wrong` (another loss from step 3 on), `weights` (right losses, another state),
`diverge` (at step 3), `killed` (by itself, after each checkpoint but the last), `stuck` (killed before any
checkpoint), `refuse` (exit code 3), `short` (tells a loss too few), `lie` (says another provider).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transect.portable_step.manifest import read_manifest
from transect.portable_step.state import read_state, write_state


def told(given: argparse.Namespace, code: int, **facts: Any) -> int:
    given.record.write_text(json.dumps({"runner": "training", "mode": "train"} | facts))
    return code


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("mode", "provider", "accumulate", "seed", "batch", "inputs", "order", "options"):
        parser.add_argument(f"--{name}")
    for name in ("step", "state", "checkpoint", "schedule", "record"):
        parser.add_argument(f"--{name}", type=Path)
    for name in ("until", "checkpoint-every"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--behave", default="right")
    given = parser.parse_args()
    manifest = read_manifest(given.step)
    begin = given.checkpoint if given.checkpoint.exists() else given.state
    state = read_state(begin, manifest)
    first, rate = int(state["step"]), json.loads(given.schedule.read_text())["lr"]
    if given.behave == "refuse":
        return told(given, 3, status="skipped", reason="no such provider here")
    if given.behave == "stuck":
        os.kill(os.getpid(), signal.SIGKILL)
    losses, weight = [], state["model.w"]
    for step in range(first, given.until):
        if given.behave == "diverge" and step == 3:
            return told(
                given,
                1,
                status="failed",
                cause="diverged",
                losses=losses,
                first_step=first,
                message="the loss is not finite at step 3",
            )
        losses.append(float(weight @ weight / 2) + (step > 2 and given.behave == "wrong"))
        weight = weight * np.float32(1 - rate)
        every = given.checkpoint_every
        if step + 1 == given.until or (every and (step + 1) % every == 0):
            factor = 2 if given.behave == "weights" else 1
            made = {"step": np.array(step + 1), "model.w": weight * np.float32(factor)}
            write_state(given.checkpoint, made, manifest)
            if given.behave == "killed" and step + 1 < given.until:
                os.kill(os.getpid(), signal.SIGKILL)
    times = {f"{name}_ns": [1000] * len(losses) for name in ("gather", "bind", "run", "read")}
    return told(
        given,
        0,
        status="ok",
        first_step=first,
        losses=losses[given.behave == "short" :],
        **times,
        provider_used="cuda" if given.behave == "lie" else given.provider,
        session_ns=5000,
        checkpoints=[{"step": given.until, "ns": 7000}],
        peak_memory_bytes=1 << 20,
        runtime_version="1.2.3",
    )


if __name__ == "__main__":
    sys.exit(main())
