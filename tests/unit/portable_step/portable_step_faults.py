"""What cannot be exported, and what every exported graph must be: runs in the environment `torch`.

    python portable_step_faults.py FOLDER [graphs]

Prints JSON: `errors`, the message by case, and `graphs`, facts of the files; or these alone.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from portable_step_kept_faults import kept_faults
from torch import nn

from transect import portable_step
from transect.domain.errors import BadInput

FAULTS: dict[str, Callable[[], dict[str, Any]]] = {}


def fault(make: Any) -> Any:
    FAULTS[make.__name__] = make
    return make


class Body(nn.Module):
    """A part whose forward pass is given; the line that is to be named stands in the lambda."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def arguments(*more: nn.Module, optimiser: Any = None, **options: Any) -> dict[str, Any]:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(4, 3), nn.Sequential(*more))
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    return {
        "module": module,
        "loss": nn.functional.cross_entropy,
        "optimiser": sgd,
        "example": (torch.zeros(8, 4), torch.zeros(8, dtype=torch.int64)),
        **options,
    }


def body(function: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
    return arguments(Body(function))


def optimised(make: Callable[..., Any]) -> dict[str, Any]:
    given = arguments()
    return given | {"optimiser": make(list(given["module"].parameters()))}


# A lambda stands in the line of its name.
FAULTS |= {
    "no_derivative": lambda: body(lambda x: torch.special.zeta(x.abs() + 2, torch.ones_like(x))),
    "cut_gradient": lambda: body(lambda x: nn.functional.one_hot(x.argmax(1), 3).float()),
    "branch_on_values": lambda: body(lambda x: x if x.sum() > 0 else -x),
    "fixed_batch": lambda: body(lambda x: x.reshape(8, -1)),
    "branch_on_batch": lambda: body(lambda x: x * 2 if x.shape[0] > 4 else x),
    "own_random_numbers": lambda: body(lambda x: x + torch.randn_like(x)),
    "dropout_in_evaluation": lambda: body(lambda x: nn.functional.dropout(x, 0.5)),
    "vector_loss": lambda: arguments(loss=lambda outputs, y: outputs.sum(1)),
    "taken_name": lambda: arguments(names=("lr", "y")),
    "unknown_metric": lambda: arguments(metrics=["f1"]),
    "other_optimiser": lambda: optimised(lambda p: torch.optim.Adadelta(p)),
    "dampening": lambda: optimised(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5)),
    "parameter_missing": lambda: optimised(lambda p: torch.optim.SGD(p[:1], lr=0.1)),
    "pythons_random_numbers": lambda: body(lambda x: x if random.random() < 0.01 else 2 * x),
    "numpys_random_numbers": lambda: body(lambda x: x * np.random.rand()),
}


@fault
def other_while_traced() -> Any:
    # What no list of causes knows of: the check against PyTorch finds it.
    return body(lambda x: x * 2 if type(x) is torch.Tensor else x * 3)


class Wrong(torch.autograd.Function):
    """Its gradient is off by a hundredth where it is traced."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient if type(gradient) is torch.Tensor else gradient * 1.01


@fault
def small_gradient() -> Any:
    # The weights do not hide it.
    return arguments(Body(Wrong.apply), loss=lambda outputs, y: 1e-6 * nn.functional.cross_entropy(outputs, y))


@fault
def gradient_beside_an_overflow() -> Any:
    # Noise makes the root of a negative number of it: that is no reason to let any gradient pass.
    def loss(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        sine = (1 - (1 - 1e-6 + 0 * outputs).square()).sqrt()
        return sine.mean() + nn.functional.cross_entropy(outputs, y)

    return arguments(Body(Wrong.apply), loss=loss)


@fault
def gradient_of_half_floats() -> Any:
    # 256 of float16's roundings are a quarter of a result: too much to add to each.
    part = Body(lambda x: x if type(x) is torch.Tensor else x + 0.5 * (x - x.detach()))
    torch.manual_seed(0)
    layers = [nn.Linear(64, 32), part, nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)]
    module = nn.Sequential(*layers).half()
    torch.manual_seed(1)
    example = (torch.randn(2, 64).half(), torch.arange(2))
    sgd = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    return arguments() | {"module": module, "optimiser": sgd, "example": example}


@fault
def output_that_is_no_tensor() -> Any:
    given = body(lambda x: {"logits": x, "attention": None})
    return given | {"loss": lambda outputs, y: nn.functional.cross_entropy(outputs["logits"], y)}


@fault
def evaluation_mode() -> Any:
    given = arguments()
    given["module"].eval()
    return given


@fault
def brain_floats() -> Any:
    given = arguments()
    given["module"].to(torch.bfloat16)
    return given | {"example": (torch.zeros(8, 4).bfloat16(), given["example"][1])}


@fault
def all_frozen() -> Any:
    given = arguments()
    given["module"].requires_grad_(False)
    return given


@fault
def steps_differ() -> Any:
    given = optimised(lambda p: torch.optim.AdamW(p))
    first = next(given["module"].parameters())
    first.grad = torch.zeros_like(first)
    given["optimiser"].step()
    return given


FAULTS |= kept_faults(arguments)


def message(name: str, make: Callable[[], dict[str, Any]], folder: Path) -> str:
    try:
        portable_step.export_step(folder=folder, **make())
    except BadInput as error:
        assert not folder.exists(), "half a folder"
        return str(error)
    raise AssertionError(f"{name}: exported")


def graphs(folder: Path) -> dict[str, Any]:
    """Export a step with all options, and tell what is in its files."""
    given = arguments(
        nn.BatchNorm1d(3), nn.Dropout(0.5), metrics=["accuracy"], accumulation=True, clip="norm", proximal=True
    )
    before = remembered(given)
    manifest = portable_step.export_step(folder=folder, **given)
    assert remembered(given) == before, "the check left something in the module or the optimiser"
    assert portable_step.read_manifest(folder) == manifest
    found = {}
    for name, graph in manifest.graphs.items():
        raw = (folder / graph.file).read_bytes()
        onnx.checker.check_model(str(folder / graph.file), full_check=True)
        model = onnx.load_from_string(raw)
        parts = (model.graph, *model.graph.node, *model.graph.input, *model.graph.output)
        found[name] = {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "domains": sorted({n.domain for n in model.graph.node} | {o.domain for o in model.opset_import}),
            "functions": len(model.functions),
            "notes": sum(bool(part.doc_string) + len(part.metadata_props) for part in parts)
            + bool(model.doc_string)
            + len(model.metadata_props),
            "paths": [
                str(p) for p in (Path(torch.__file__).parents[1], Path(__file__).parent) if str(p).encode() in raw
            ],
            "constants_bytes": sum(i.ByteSize() for i in model.graph.initializer),
            "inputs": [i.name for i in model.graph.input],
            "declared_inputs": graph.inputs,
            "outputs": [o.name for o in model.graph.output],
            "declared_outputs": graph.outputs,
            "lengths": sorted(
                {axis.dim_param for o in model.graph.output for axis in o.type.tensor_type.shape.dim} - {""}
            ),
            "random": [
                n.op_type
                for n in model.graph.node
                if "Random" in n.op_type or n.op_type in ("Dropout", "Bernoulli", "Multinomial")
            ],
        }
    found["step"]["manifest"] = manifest.step_graph
    return found


def checked(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())["checked"]


def without_runtime(folder: Path) -> Any:
    """Export where onnxruntime cannot be imported; tell what the manifest says of the check."""
    there = sys.modules["onnxruntime"]
    sys.modules["onnxruntime"] = None  # type: ignore[assignment]
    try:
        portable_step.export_step(folder=folder, **arguments())
    finally:
        sys.modules["onnxruntime"] = there
    return checked(folder)


def ill_conditioned(folder: Path) -> Any:
    """Export what loses nearly all of its digits; tell what the manifest says of the check."""
    portable_step.export_step(folder=folder, **body(lambda x: (x + 1e5) - 1e5))
    return checked(folder)


class Jumping(nn.Module):
    """Chooses between weights by a difference that 256 roundings turn and one does not; their gradients are small."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 4, bias=False), nn.Linear(8, 4, bias=False)
        self.choice, self.bias = nn.Linear(8, 2), nn.Parameter(torch.rand(4))
        nn.init.normal_(self.choice.weight, std=1e-6)
        nn.init.zeros_(self.choice.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shares = self.choice(x).softmax(1)
        chosen = 1e-7 * torch.where(shares[:, :1] > shares[:, 1:], self.first(x), self.second(x))
        return self.bias + Wrong.apply(chosen) + shares.square().sum(1, keepdim=True) * torch.arange(4)


def jumping(folder: Path) -> Any:
    """Export a gradient off by a hundredth that jumps hide; tell what the manifest says of the check."""
    module = Jumping()
    torch.manual_seed(1)
    example = (torch.randn(3, 8), torch.arange(3))
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    portable_step.export_step(module, nn.functional.cross_entropy, sgd, example, folder)
    return checked(folder)


def outputs_written(folder: Path) -> Any:
    """Export a loss that writes into the outputs, of which one is a weight, one constant; tell what the manifest says."""

    class Two(nn.Linear):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return super().forward(x), self.bias, torch.arange(3.0)

    module = Two(4, 3)
    sgd = torch.optim.SGD(module.parameters(), lr=0.1)
    portable_step.export_step(
        module,
        lambda outputs, y: nn.functional.cross_entropy(outputs[0].mul_(2.0), y),
        sgd,
        arguments()["example"],
        folder,
        metrics={"one": lambda outputs, y: torch.ones(())},
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    return manifest["checked"] | {"names": [part["name"] for part in manifest["metrics"] + manifest["outputs"]]}


def remembered(given: dict[str, Any]) -> list[Any]:
    """Return the values of all that an export is given and runs."""
    module, optimiser = given["module"], given["optimiser"]
    tensors = [tensor.tolist() for tensor in module.state_dict().values()]
    gradients = [parameter.grad for parameter in module.parameters()]
    return [tensors, gradients, optimiser.state_dict(), module.training]


def main(folder: str, *only: str) -> None:
    torch.set_num_threads(1)
    root = Path(folder)
    if only:
        print(json.dumps(graphs(root / "step")))
        return
    (root / "other").mkdir(parents=True)
    (root / "other" / "diary.txt").write_text("mine")
    errors = {name: message(name, make, root / name) for name, make in FAULTS.items()}
    try:
        portable_step.export_step(folder=root / "other", **arguments())
    except BadInput as error:
        errors["other_folder"] = str(error)
    first = graphs(root / "step")
    second = graphs(root / "step")  # replaces the first
    unchecked = without_runtime(root / "unchecked")
    vague = ill_conditioned(root / "vague")
    jumps, written = jumping(root / "jumps"), outputs_written(root / "written")
    left = sorted(path.name for path in root.iterdir())
    facts = {"errors": errors, "graphs": first, "again": second, "left": left}
    print(json.dumps(facts | {"checks": [checked(root / "step"), unchecked, vague, jumps, written]}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
