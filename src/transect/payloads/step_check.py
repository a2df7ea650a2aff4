"""Whether an exported step computes what PyTorch does: its first updates, by ONNX Runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from transect.payloads.step_path import Course
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state

# The second loss sees the first update, the third what momentum does.
_STEPS = 4


def exported_fault(step: Path, state: Path, course: Course, problem: Path) -> str:
    """Say where the exported step leaves the path of a problem, or nothing."""
    manifest = read_manifest(step)
    rates = json.loads((problem / "schedule.json").read_text())["lr"]
    with np.load(problem / "path.npz") as path:
        expected, tolerance = path["loss"][:_STEPS], path["tolerance"][:_STEPS]
    every = rates if isinstance(rates, list) else [rates] * len(course.rows)
    found = _losses(step, manifest, read_state(state, manifest), course, every)
    for number, (loss, right, most) in enumerate(zip(found, expected, tolerance, strict=True)):
        # Where the path itself ends there is nothing to be held to.
        if np.isfinite(right) and not abs(loss - right) <= most:
            return (
                f"the exported step's loss is {loss:.9g} at step {number} of {problem.name}, "
                f"PyTorch's in float64 {right:.9g}, and the tolerance is {most:.3g}"
            )
    return ""


def _losses(
    folder: Path, manifest: Manifest, state: dict[str, np.ndarray], course: Course, rates: list[float]
) -> list[float]:
    """Return the losses of the first steps, each the mean of its micro-batches'."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    sessions = {
        name: onnxruntime.InferenceSession(
            str(folder / manifest.graphs[name].file), options, providers=["CPUExecutionProvider"]
        )
        for name in ("step", "accumulate")
        if name in manifest.graphs
    }
    hyper = {one.name: np.float64(one.default) for one in manifest.hyper}
    following = {one.next: one.name for one in manifest.state if one.next}
    losses = []
    for batches, rate in zip(course.rows[:_STEPS], rates, strict=False):
        of_step = []
        for turn, rows in enumerate(batches, 1):
            name = "step" if turn == len(batches) else "accumulate"
            graph = manifest.graphs[name]
            known = state | hyper | {"lr": np.float64(rate), "x": course.x[rows], "y": course.y[rows]}
            feed = {one: np.asarray(known[one]) for one in graph.inputs}
            made = dict(zip(graph.outputs, sessions[name].run([*graph.outputs], feed), strict=True))
            state = state | {following[one]: made[one] for one in graph.outputs if one in following}
            of_step.append(float(made["loss"]))
        losses.append(float(np.mean(of_step)))
    return losses
