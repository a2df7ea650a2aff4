"""What test_ort_training.py looks at: run by the environment of ONNX Runtime training.

`python ort_training_checks.py FOLDER` prints one JSON object.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
from artifacts_of import generate, repair
from moments import read_moments, write_moments
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(sys.argv[1])
X, Y = np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), np.array([0, 1, 2, 0, 1])


def _model(path):
    """Dropout of nothing, a layer norm, a cast and a linear layer, as exporters write them."""
    rng = np.random.default_rng(0)
    weights = {"scale": np.ones(4), "shift": np.zeros(4), "w": rng.normal(size=(3, 4)), "b": np.zeros(3)}
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    constants = {"ratio": np.float32(0), "training": np.bool_(True)}
    nodes = [
        helper.make_node("Dropout", ["x", "ratio", "training"], ["kept"]),
        helper.make_node("LayerNormalization", ["kept", "scale", "shift"], ["normal"]),
        helper.make_node("CastLike", ["normal", "x"], ["cast"]),
        helper.make_node("Gemm", ["cast", "w", "b"], ["output"], transB=1),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", k]) for n, k in (("x", 4), ("output", 3))]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights | constants).items()]
    graph = helper.make_graph(nodes, "model", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return weights


def _fault(action, *given):
    try:
        action(*given)
    except Exception as error:
        return str(error)
    return None


def _folder(name):
    (FOLDER / name).mkdir()
    return FOLDER / name


def _trained(folder, steps):
    """Train with the artefacts of a folder; return the losses and a checkpoint."""
    from onnxruntime.training.api import CheckpointState, Module, Optimizer

    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
    optimizer = Optimizer(folder / "optimizer_model.onnx", module)
    module.train()
    losses = []
    for _ in range(steps):
        losses.append(float(module(X, Y)[0]))
        optimizer.set_learning_rate(0.05)
        optimizer.step()
        module.lazy_reset_grad()
    CheckpointState.save_checkpoint(state, folder / "after", include_optimizer_state=True)
    return losses, folder / "after"


def main():
    """Look at everything."""
    source = FOLDER / "model.onnx"
    weights, adamw = _model(source), {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
    found = {"repaired": repair(onnx.load(source))}
    folder = _folder("whole")
    generate(source, folder, adamw, weights, {})
    found["losses"], checkpoint = _trained(folder, 8)
    node = onnx.load(folder / "optimizer_model.onnx").graph.node[0]
    found["adam_mode"] = {a.name: a.i for a in node.attribute}["adam_mode"]
    moments = read_moments(checkpoint)
    found["moments"] = sorted(map(list, moments))
    shifted = {key: array + 1 for key, array in moments.items()}
    write_moments(checkpoint, shifted, 41)
    again = read_moments(checkpoint)
    found["written"] = all(np.array_equal(again[key], array) for key, array in shifted.items())
    found["foreign"] = _fault(write_moments, checkpoint, {("exp_avg", "else"): np.zeros(1)}, 1)
    found["unstepped"] = _fault(write_moments, folder / "checkpoint", {}, 1)
    wrong = weights | {"gone": np.zeros(2, np.float32)}
    found["lacking"] = _fault(generate, source, _folder("lacking"), adamw, wrong, {})
    frozen = {"shift": weights.pop("shift")}
    folder = _folder("frozen")
    generate(source, folder, adamw, weights, frozen)
    _trained(folder, 2)
    found["trained"] = sorted({name for _, name in read_moments(folder / "after")})
    import artifacts_of

    artifacts_of.repair = lambda model: {}
    found["unrepaired"] = _fault(generate, source, _folder("unrepaired"), adamw, weights | frozen, {})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
