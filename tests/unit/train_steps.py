"""Writes the training steps of test_runner_train.py: run by the environment of torch.

`python train_steps.py FOLDER`: a step's folder, the data, and what PyTorch computes of them.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch
from onnx import TensorProto, helper, numpy_helper, save

ROWS, BATCH, STEPS = 40, 4, 24
SHAPES = {"0.weight": (6, 128), "0.bias": (128,), "1.weight": (128, 3), "1.bias": (3,)}
KINDS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64}


def _state():
    """Return (name, role, dtype, shape, has a next) of each tensor."""
    yield "step", "counter", "int64", (), True
    yield from ((f"model.{n}", "parameter", "float32", s, True) for n, s in SHAPES.items())
    yield "model.scale", "frozen", "float32", (6,), False
    for prefix, role in (("optimiser.momentum", "optimiser"), ("accumulated", "accumulator")):
        yield from ((f"{prefix}.{n}", role, "float32", s, True) for n, s in SHAPES.items())
    yield "accumulated.count", "accumulator", "int64", (), True


class _Nodes(list):
    """Nodes, made by `nodes(OP, inputs, output)`; constants by value."""

    def __call__(self, op, inputs, output, **attributes):
        self.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def constant(self, value, name):
        return self("Constant", [], name, value=numpy_helper.from_array(np.array(value), name))


def _gradients(n):
    """Forward and backward of a classifier of two layers; returns the gradients by name."""
    one = n.constant(np.float32(1), "one")
    axes = n.constant([0], "axes")
    scaled = n("Mul", ["x", "model.scale"], "scaled")
    sums = n("Add", [n("MatMul", [scaled, "model.0.weight"], "p0"), "model.0.bias"], "sums")
    hidden = n("Relu", [sums], "hidden")
    logits = n("Add", [n("MatMul", [hidden, "model.1.weight"], "p1"), "model.1.bias"], "logits")
    logs = n("LogSoftmax", [logits], "logs", axis=1)
    pair = n.constant(np.float32([0, 1]), "pair")
    target = n("OneHot", ["y", n.constant(3, "classes"), pair], "target")
    rows = n("Cast", [n("Size", ["y"], "size")], "rows", to=TensorProto.FLOAT)
    total = n("ReduceSum", [n("Mul", [logs, target], "picked")], "total", keepdims=0)
    n("Neg", [n("Div", [total, rows], "mean")], "loss")
    best = n("ArgMax", [logits], "best", axis=1, keepdims=0)
    hits = n("Cast", [n("Equal", [best, "y"], "equal")], "hits", to=TensorProto.FLOAT)
    n("ReduceMean", [hits], "accuracy", keepdims=0)
    off = n("Sub", [n("Exp", [logs], "softmax"), target], "off")
    d1 = n("Div", [off, rows], "d1")
    back = n("MatMul", [d1, n("Transpose", ["model.1.weight"], "w1t")], "back")
    d0 = n("Where", [n("Greater", [sums, n("Sub", [one, one], "nil")], "on"), back, "nil"], "d0")
    return {
        "0.weight": n("MatMul", [n("Transpose", [scaled], "xt"), d0], "g0w"),
        "0.bias": n("ReduceSum", [d0, axes], "g0b", keepdims=0),
        "1.weight": n("MatMul", [n("Transpose", [hidden], "ht"), d1], "g1w"),
        "1.bias": n("ReduceSum", [d1, axes], "g1b", keepdims=0),
    }


def _step_nodes():
    n = _Nodes()
    gradients = _gradients(n)
    one = n.constant(1, "one64")
    n("Add", ["step", one], "next.step")
    count = n("Cast", [n("Add", ["accumulated.count", one], "many")], "count", to=TensorProto.FLOAT)
    n("Sub", [one, one], "next.accumulated.count")
    rate, mu = (n("Cast", [x], f"{x}32", to=TensorProto.FLOAT) for x in ("lr", "momentum"))
    for name, gradient in gradients.items():
        added = n("Add", [f"accumulated.{name}", gradient], f"added.{name}")
        mean = n("Div", [added, count], f"mean.{name}")
        n.constant(np.zeros(SHAPES[name], np.float32), f"next.accumulated.{name}")
        kept = n("Mul", [mu, f"optimiser.momentum.{name}"], f"kept.{name}")
        moved = n("Add", [kept, mean], f"next.optimiser.momentum.{name}")
        n("Sub", [f"model.{name}", n("Mul", [rate, moved], f"by.{name}")], f"next.model.{name}")
    return n


def _accumulate_nodes():
    n = _Nodes()
    for name, gradient in _gradients(n).items():
        n("Add", [f"accumulated.{name}", gradient], f"next.accumulated.{name}")
    n("Add", ["accumulated.count", n.constant(1, "one64")], "next.accumulated.count")
    return n


def _write_graph(path, nodes):
    """Write a graph with the names that its nodes use and make; return the manifest's entry."""
    kinds = {"x": ("float32", ("batch", 6)), "y": ("int64", ("batch",)),
             "lr": ("float64", ()), "momentum": ("float64", ()),
             "loss": ("float32", ()), "accuracy": ("float32", ())}  # fmt: skip
    for name, _, dtype, shape, _ in _state():
        kinds[name] = kinds[f"next.{name}"] = (dtype, shape)
    used, made = ({x for node in nodes for x in getattr(node, end)} for end in ("input", "output"))
    names = (
        [name for name in kinds if name in used - made],
        [name for name in kinds if name in made],
    )
    ends = [
        [helper.make_tensor_value_info(x, KINDS[kinds[x][0]], kinds[x][1]) for x in some]
        for some in names
    ]
    graph = helper.make_graph(nodes, path.stem, *ends)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    return {"file": path.name, "inputs": names[0], "outputs": names[1]}


def _write_step(folder):
    folder.mkdir(parents=True)
    graphs = {
        "step": _write_graph(folder / "step.onnx", _step_nodes()),
        "accumulate": _write_graph(folder / "accumulate.onnx", _accumulate_nodes()),
    }
    generator = np.random.default_rng(3)
    state, header, raw = {}, {}, b""
    step_graph = hashlib.sha256((folder / "step.onnx").read_bytes()).hexdigest()
    for name, _, dtype, shape, _ in _state():
        fresh = name.startswith("model.")
        begun = generator.normal(0, 0.3, shape) if fresh else np.zeros(shape)
        state[name] = begun.astype(dtype)
        code = {"int64": "I64", "float32": "F32"}[dtype]
        offsets = [len(raw), len(raw) + state[name].nbytes]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": offsets}
        raw += state[name].tobytes()
    text = json.dumps({"__metadata__": {"step_graph": step_graph}} | header, separators=(",", ":"))
    text += " " * (-len(text) % 8)
    (folder / "state.safetensors").write_bytes(struct.pack("<Q", len(text)) + text.encode() + raw)
    manifest = {
        "format": "transect-portable-step", "version": 1, "step_graph": step_graph,
        "state_file": "state.safetensors",
        "data": [{"name": "x", "dtype": "float32", "shape": ["batch", 6], "target": False},
                 {"name": "y", "dtype": "int64", "shape": ["batch"], "target": True}],
        "hyper": [{"name": "lr", "dtype": "float64", "default": 0.05},
                  {"name": "momentum", "dtype": "float64", "default": 0.9}],
        "seed": None,
        "state": [{"name": name, "role": role, "dtype": dtype, "shape": shape,
                   "next": f"next.{name}" if moves else None}
                  for name, role, dtype, shape, moves in _state()],
        "metrics": [{"name": "loss", "dtype": "float32"}, {"name": "accuracy", "dtype": "float32"}],
        "outputs": [], "graphs": graphs,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return state


def _write_data(folder):
    """Write rows that can be told apart, with some noise."""
    folder.mkdir()
    generator = np.random.default_rng(5)
    y = generator.integers(0, 3, ROWS)
    x = generator.normal(size=(ROWS, 6)).astype(np.float32) + 2 * np.eye(3, 6, dtype=np.float32)[y]
    tensors = []
    for name, array in (("x", x), ("y", y)):
        array.tofile(folder / f"{name}.bin")
        entry = {"name": name, "dtype": array.dtype.name, "shape": array.shape}
        tensors.append(entry | {"file": f"{name}.bin"})
    (folder / "header.json").write_text(json.dumps({"tensors": tensors}))
    return torch.tensor(x, dtype=torch.float64), torch.tensor(y)


def _losses(state, x, y, order, rates):
    """Return the losses of PyTorch in float64; `order` is (steps, micro-batches, rows)."""
    double = {k: torch.tensor(v, dtype=torch.float64) for k, v in state.items()}
    model = {k: double[f"model.{k}"].requires_grad_() for k in SHAPES}
    optimiser = torch.optim.SGD(model.values(), lr=1, momentum=0.9)
    losses = []
    for step, rate in zip(order, rates, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        found = []
        for rows in step:
            hidden = x[rows] * double["model.scale"] @ model["0.weight"] + model["0.bias"]
            logits = hidden.relu() @ model["1.weight"] + model["1.bias"]
            loss = torch.nn.functional.cross_entropy(logits, y[rows])
            (loss / len(step)).backward()
            found.append(loss.item())
        optimiser.step()
        losses.append(sum(found) / len(found))
    return losses


def main(folder):
    """Write `step`, `data`, `order.bin` and `expected.json`."""
    state = _write_step(folder / "step")
    x, y = _write_data(folder / "data")
    order = np.random.default_rng(7).integers(0, ROWS, STEPS * 3 * BATCH)
    order.astype("<i8").tofile(folder / "order.bin")
    rates = [0.1 / (1 + i) for i in range(STEPS)]
    expected = {
        "plain": _losses(state, x, y, order[: STEPS * BATCH].reshape(STEPS, 1, -1), [0.05] * STEPS),
        "schedule": _losses(state, x, y, order[: STEPS * BATCH].reshape(STEPS, 1, -1), rates),
        "accumulate": _losses(state, x, y, order.reshape(STEPS, 3, -1), [0.05] * STEPS),
    }
    (folder / "expected.json").write_text(json.dumps(expected | {"rates": rates}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
