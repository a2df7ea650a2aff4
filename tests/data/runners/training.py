"""A runner of level `train` for w -= lr w, whose loss is |w|^2 / 2; and what may go wrong with one.

The second argument says what: `right`; `wrong` (another loss from step 3 on), `weights` (right losses, another
state), `diverge` (at step 3), `killed` (by itself, after each checkpoint but the last), `stuck` (killed before any
checkpoint), `refuse` (exit code 3), `short` (tells a loss too few), `lie` (says another provider).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transect.runtimes.plan_file import Plan, Role, read_plan


def say(plan: Plan, **line: Any) -> None:
    with (Path(plan.text(Role.OUT)) / "result.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def main(plan: Plan, behave: str) -> int:
    out, (counter, weights) = Path(plan.text(Role.OUT)), plan.of(Role.STATE)
    block = bytearray(Path(weights.text).read_bytes())
    weight = np.frombuffer(block, np.float32, 2, weights.offset)
    (rate,) = plan.of(Role.HYPER)
    rates = np.fromfile(rate.text, np.float64)
    if behave == "refuse":
        say(plan, status="skipped", reason="no such provider here")
        return 3
    if behave == "stuck":
        os.kill(os.getpid(), signal.SIGKILL)
    losses, slot = [], 0
    for index in range(plan.steps):
        step = plan.first_step + index
        if behave == "diverge" and step == 3:
            losses.append(np.inf)
            break
        losses.append(float(weight @ weight / 2) + (step > 2 and behave == "wrong"))
        weight = weight * np.float32(1 - rates[index])
        last = index + 1 == plan.steps
        if last or (plan.checkpoint_every and (step + 1) % plan.checkpoint_every == 0):
            made = weight * np.float32(2 if behave == "weights" else 1)
            for entry, value in ((counter, np.array(step + 1)), (weights, made)):
                block[entry.offset : entry.offset + entry.size] = value.tobytes()
            (out / f"state-{slot}.bin").write_bytes(block)
            say(plan, checkpoint=step + 1, slot=slot, ns=7000)
            slot = 1 - slot
            if behave == "killed" and not last:
                os.kill(os.getpid(), signal.SIGKILL)
    told = losses[behave == "short" :]
    np.array(told).tofile(out / "metrics.bin")
    np.full((len(told), 4), 1000).tofile(out / "times.bin")
    used = "cuda" if behave == "lie" else plan.text(Role.PROVIDER)
    say(plan, status="ok", provider_used=used, session_ns=5000, peak_memory_bytes=1 << 20, runtime_version="1.2.3")
    return 0


if __name__ == "__main__":
    sys.exit(main(read_plan(Path(sys.argv[1])), sys.argv[2]))
