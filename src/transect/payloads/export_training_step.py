"""One portable training step, its base models, its data, and what retraining it must compute.

Writes into its folder:

| | |
|---|---|
| `step/` | the portable step's own files, and `workload.json` |
| `states/state-R.safetensors` | the state to begin with: the base model of repeat R, the optimiser at rest |
| `data/`, `test/` | the rows to retrain on and all test rows as raw tensors with `header.json` |
| `problems/NAME/order.bin` | the rows of each batch, int64: permutations of all rows, one behind the other |
| `problems/NAME/schedule.json` | the learning rate: a number, or a list with one for each step |
| `problems/NAME/path.npz` | PyTorch's float64 path, see below |
| `facts.json` | base scores, and how far the verdicts reach: nothing that differs from run to run |

A step that no retraining takes has no problems, and the base of repeat 0 alone: federated learning brings weights and
rows of its own, and holds what comes of them to a reference of its own.

**The rows to retrain on** are those that the dataset keeps for devices, else those that train.

`workload.json` is for runtimes that train without ONNX or with graphs of their own: `workload`
(a name among `training/workloads`), `parameters` (its hyper-parameters, as `Parameters` holds them,
`optimiser` being that of the step, so that `momentum`, `beta1` … are its own), `optimiser` (the same
name, for those that look at nothing else), `own_loss` (whether the loss is a function of the study's own), `clip` (the largest norm of all gradients together, or
null) and `accumulates` (whether `accumulate.onnx` is there). The module's weights are the tensors
`model.NAME` of a state file, NAME the neutral name of the workload's layers.

**The base model** is that of a train cell (the role `weights`), or it is trained here by torch, float32, from
the data stage's start of repeat R, through the first `base_epochs` epochs of that start's order. A
model that stopped too early is one of few epochs.

**The path** is PyTorch's: its module, its autograd and its own optimiser in float64, on the same rows
and rates. `path.npz` has `loss` (of each step, before its update), `tolerance` (of each loss),
`weights_tolerance`, `score` (of the test rows in the end) and `weights/NAME`.

The tolerance is derived as the reference's is (`payloads/reference.py`: Monte Carlo arithmetic):
four more float64 runs err in every step as float32 does, in stored weights by u z, in what they compute
with and in gradients by u sqrt(K) z, z standard normal, u = 2^-24 and K the longest sum of the model. The
gradient of each weight, where it is not 0, errs also by what float32 was measured to err by at the start. The
loss's gradient at the model's outputs errs by u z over the batch as well, as it is a difference of numbers
up to 1: where a class is certain, its rounding is all there is of it, and AdamW divides by its size. At
step t it is 16 times the largest deviation of any of them up to t, plus 16 u sqrt(K) |loss|, and 16 u of a
cross-entropy; that of the final weights, all in one vector, is the same of their relative distance without 16 u. How sharp that is stands beside
it: `detects_rate_error` is the error of the learning rate that would just be seen, to first order, from a
run whose rate is wrong by 0.1 %. A step that is exported wrongly is noticed here: its first updates, run by
ONNX Runtime, must follow the path, or the cell is `wrong-result`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from transect.domain.axes.retrain import StepCell
from transect.domain.errors import BadInput
from transect.domain.files import write_atomic
from transect.onnx_models.results import result, versions
from transect.onnx_models.running import open_session
from transect.onnx_models.tensors import write_tensors
from transect.payloads.step_base import Bases, export
from transect.payloads.step_path import Course, follow, rate_error_seen, retraining_rates, score, tolerance, trainer_of
from transect.portable_step.manifest import Manifest, read_manifest
from transect.portable_step.state import read_state, write_state
from transect.training.inputs import load_arrays
from transect.training.models import Model
from transect.training.module_model import ModuleModel
from transect.training.sharpness import blind_from
from transect.training.tolerance import rule
from transect.training.workloads import WORKLOADS, Parameters, model_of, with_optimiser


def row_order(rows: int, needed: int, seed: int, repeat: int) -> np.ndarray:
    """Return int64 (needed,): permutations of all rows, one behind the other.

    The last number keeps it apart from the order in which the base was trained.
    """
    generator = np.random.default_rng([seed, repeat, 1])
    epochs = -(-needed // rows)
    whole = np.concatenate([generator.permutation(rows) for _ in range(epochs)])
    return whole[:needed].astype("<i8")


def _problem(
    problem: dict[str, Any],
    seed: int,
    model: Model,
    parameters: Parameters,
    weights: dict[str, np.ndarray],
    data: dict[str, Any],
    clip: float | None,
    out: Path,
) -> tuple[Course, dict[str, Any]]:
    """Write the input of a retraining and the path it is checked against; return its course and facts of it."""
    shape = problem["steps"], problem["accumulate"], problem["batch"]
    order = row_order(len(data["y_train"]), int(np.prod(shape)), seed, problem["repeat"])
    rates = retraining_rates(parameters.learning_rate, problem["rate"], problem["steps"])
    course = Course(
        model=model,
        parameters=parameters,
        weights=weights,
        x=data["x_train"],
        y=data["y_train"],
        rows=order.reshape(shape),
        rates=rates,
        clip=clip,
    )
    exact = follow(course)
    allowed = tolerance(course, exact)
    trained = trainer_of(model, parameters, exact.weights, "fp64")
    reached = score(model, trained, data["x_test"], data["y_test"])
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "order.bin", order.tobytes())
    rate = rates.tolist() if len(set(rates.tolist())) > 1 else float(rates[0])
    write_atomic(out / "schedule.json", json.dumps({"lr": rate}) + "\n")
    np.savez(
        out / "path.npz",
        loss=exact.loss,
        tolerance=allowed.loss,
        score=reached,
        weights_tolerance=allowed.weights,
        **{f"weights/{name}": array for name, array in exact.weights.items()},  # type: ignore[arg-type]
    )
    return course, {
        "score": reached,
        "not_checkable_from": blind_from(exact.loss, allowed.loss),
        "detects_rate_error": rate_error_seen(course, exact, allowed),
    }


def make_step(spec: dict[str, Any], folders: dict[str, Path], out: Path) -> dict[str, Any]:
    """Make one cell into `out`; return its result.

    Raises BadInput, naming module and operator, for what cannot be exported.
    """
    cell = StepCell.of(**spec["cell"])
    data_folder = folders["data"]
    weights = folders["weights"] / "weights.npz" if "weights" in folders else None
    model = model_of(WORKLOADS.get(cell.workload), data_folder)
    if isinstance(model, ModuleModel) and model.draws:
        return result(
            skipped=f"{model.name} draws random numbers in its forward pass: an exported step has masks of its own, and "
            "the path in float64 that retraining is held to has torch's"
        )
    original = Parameters.model_validate(spec["parameters"])
    # How gradients are clipped and added up is said by the grid; a step averages no weights.
    parameters = with_optimiser(original, cell.optimiser).model_copy(
        update={"clip_norm": None, "accumulation": 1, "ema": None}
    )
    data = load_arrays(data_folder, np.float32)
    part = "device" if "x_device" in data else "train"
    train, test = ({"x": np.asarray(data[f"x_{name}"][:]), "y": data[f"y_{name}"]} for name in (part, "test"))
    write_tensors(out / "data", train)
    write_tensors(out / "test", test)
    bases = Bases(cell=cell, model=model, parameters=original, data=data_folder, weights=weights)
    # Who poses no problem needs the graphs alone, whatever they are exported with.
    repeats = sorted({problem["repeat"] for problem in spec["problems"]}) or [0]
    base = {repeat: bases.weights_of(repeat) for repeat in repeats}
    begin = time.perf_counter()
    export(cell, model, parameters, base[repeats[0]], train, out / "step")
    export_time_s = time.perf_counter() - begin
    _write_states(out, base)
    scores = {
        repeat: score(model, trainer_of(model, parameters, arrays, "fp64"), test["x"], test["y"])
        for repeat, arrays in base.items()
    }
    # Float64 from the rounded rows, which are all that a runtime gets.
    exact = {f"{k}_{name}": v for name, rows in (("train", train), ("test", test)) for k, v in rows.items()}
    known, fault = {}, ""
    for problem in spec["problems"]:
        folder, repeat = out / "problems" / problem["name"], problem["repeat"]
        course, known[problem["name"]] = _problem(
            problem, spec["seed"], model, parameters, base[repeat], exact, cell.clip, folder
        )
        state = out / "states" / f"state-{repeat}.safetensors"
        fault = fault or exported_fault(out / "step", state, course, folder)
    facts = {"base_scores": scores, "problems": known, "score": model.score}
    facts |= {"trained_on": part, "rows": len(train["y"])}
    if spec["problems"]:
        longest = max(model.longest_sum(problem["batch"]) for problem in spec["problems"])
        words = f"{rule('fp32', longest)}; that of the loss at the outputs also by u over the batch"
        facts["tolerance_rule"] = words
    write_atomic(out / "facts.json", json.dumps(facts, indent=1, sort_keys=True) + "\n")
    return _result(cell, out, export_time_s, facts, fault)


def _write_states(out: Path, bases: dict[int, dict[str, np.ndarray]]) -> None:
    """Write the state of each repeat's base: what was exported with, but for the model's weights."""
    manifest = read_manifest(out / "step")
    state = read_state(out / "step" / manifest.state_file, manifest)
    for repeat, weights in bases.items():
        named = {f"model.{name}": np.asarray(array, np.float32) for name, array in weights.items()}
        if strange := named.keys() - state.keys():
            raise BadInput(f"{out / 'step'}: the step has no tensor {sorted(strange)[0]}")
        path = out / "states" / f"state-{repeat}.safetensors"
        write_state(path, state | named, manifest)


def _result(cell: StepCell, out: Path, export_time_s: float, facts: dict[str, Any], fault: str) -> dict[str, Any]:
    import onnx

    graph = onnx.load(str(out / "step" / "step.onnx"))
    values = {
        "model_bytes": (out / "step" / "step.onnx").stat().st_size,
        "opset": graph.opset_import[0].version,
        "ir_version": graph.ir_version,
        "operators": len(graph.graph.node),
        "export_time": export_time_s,
    }
    return result(
        wrong=fault,
        metrics=values,
        details=facts,
        libraries=versions("python", "torch", "onnx", "onnxscript", "onnxruntime-gpu", "onnxruntime", "numpy"),
    )


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
    sessions = {
        name: open_session(folder / manifest.graphs[name].file)
        for name in ("step", "accumulate")
        if name in manifest.graphs
    }
    hyper = {parameter.name: np.float64(parameter.default) for parameter in manifest.hyper}
    following = {tensor.next: tensor.name for tensor in manifest.state if tensor.next}
    losses = []
    for batches, rate in zip(course.rows[:_STEPS], rates, strict=False):
        of_step = []
        for turn, rows in enumerate(batches, 1):
            name = "step" if turn == len(batches) else "accumulate"
            graph = manifest.graphs[name]
            known = state | hyper | {"lr": np.float64(rate), "x": course.x[rows], "y": course.y[rows]}
            feed = {name: np.asarray(known[name]) for name in graph.inputs}
            made = dict(zip(graph.outputs, sessions[name].run([*graph.outputs], feed), strict=True))
            state = state | {following[name]: made[name] for name in graph.outputs if name in following}
            of_step.append(float(made["loss"]))
        losses.append(float(np.mean(of_step)))
    return losses
