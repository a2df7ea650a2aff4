"""Lines of torchtitan, and of the FSDP example that clusters are tried with (`train.py` of AWS's samples)."""

from __future__ import annotations

import re

from transect.hpc.parsers._dl_training import HIGHER, LOWER, NEUTRAL, Training
from transect.hpc.values import NUMBER

# torchrun's label, and the logger's words in the ways that it is set up.
_LOGGER = (
    r"(?:\[rank\d{1,6}\]:)?(?:\[titan\][ \t])?(?:[\d\- :,.]{19,30}[ \t])?(?:-[ \t]root[ \t]-[ \t]INFO[ \t]-[ \t])?"
    r"(?:\[[^\]\n]{10,40}\]\[I\]\[[^\]\n]{1,60}\][ \t])?"
)
_STEP = (
    rf"step:\s*(\d{{1,12}})\s+loss:\s*({NUMBER})\s+(?:grad_norm:\s*({NUMBER})\s+)?memory:\s*({NUMBER})GiB\({NUMBER}%\)\s+"
    rf"tps:\s*([\d,]{{1,20}})(?:\s+tflops:\s*({NUMBER}))?(?:\s+mfu:\s*({NUMBER})%)?"
)
_TITAN = re.compile(_LOGGER + _STEP)
_STARTS = re.compile(_LOGGER + r"Training starts at step \d{1,12}[^\n]{0,200}?total steps (\d{1,12})")
_SIZES = re.compile(r"((?:local|global) batch size|sequence length|gradient accumulation steps) (\d{1,12})")
_ENDED = re.compile(_LOGGER + r"Training completed\s*$")
_FSDP = re.compile(
    rf"I \[train\.py:\d{{1,6}}\] Batch (\d{{1,12}}) Loss: ({NUMBER}), Speed: ({NUMBER}) samples/sec, lr: ({NUMBER})"
)
# What a job's script is told, as `set -x` prints it.
_ARGUMENTS = re.compile(r"\+ TRAINING_ARGS=\([^\n]{0,8000}?'--max_steps=(\d{1,12})'")

TITAN = (_TITAN, _STARTS, _ENDED, _FSDP, _ARGUMENTS)


def planned_steps(text: str) -> int | None:
    """Return the steps that a job's script asks its training for, or None."""
    match = _ARGUMENTS.match(text)
    return int(match[1]) if match is not None else None


def titan_step(text: str) -> tuple[int, ...] | None:
    match = _TITAN.match(text) or _FSDP.match(text)
    return (int(match[1]),) if match is not None else None


def read_titan(training: Training, text: str) -> bool:
    if (match := _FSDP.match(text)) is not None:
        training.variants.add("fsdp-example")
        # Batches count from zero.
        training.at((int(match[1]),))
        training.point("loss", match[2], "1", LOWER)
        training.point("speed", match[3], "samples/sec", HIGHER, "samples_per_second")
        training.point("lr", match[4], "1", NEUTRAL)
    elif (match := _TITAN.match(text)) is not None:
        training.variants.add("torchtitan")
        training.at((int(match[1]),), training.planned)
        training.point("loss", match[2], "1", LOWER)
        training.point("memory", match[4], "GiB", NEUTRAL)
        # Of one device, as torchtitan counts.
        training.point("tps", match[5].replace(",", ""), "tokens/s", HIGHER, "tokens_per_second")
        for name, printed, unit in (
            ("grad_norm", match[3], "1"),
            ("tflops", match[6], "TFLOP/s"),
            ("mfu", match[7], "%"),
        ):
            if printed is not None:
                training.point(name, printed, unit, NEUTRAL if name == "grad_norm" else HIGHER)
    elif (match := _STARTS.match(text)) is not None:
        training.variants.add("torchtitan")
        training.planned = int(match[1])
        for name, value in _SIZES.findall(text):
            training.parameter(name.replace(" ", "_"), int(value))
    elif _ENDED.match(text):
        training.ended = "Training completed"
    else:
        return False
    return True
