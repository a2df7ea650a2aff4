"""A study's own workload: a module of torch and data from the user's files, held to the reference, exported, served."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from checkouts import Place, edited
from warm import warm

pytestmark = [pytest.mark.study, pytest.mark.timeout(3600)]

MODEL = """
import torch
from torch import nn

from parts.block import Block


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3)
        self.block = Block(width)
        self.head = nn.Linear(width * 16, 3)

    def forward(self, x):
        return self.head(self.block(self.stem(x)).flatten(1))


class Rows(nn.Sequential):
    def __init__(self, features, classes):
        super().__init__(nn.Flatten(), nn.Linear(features, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, classes))


def focal(outputs, y):
    right = outputs.log_softmax(1).gather(1, y[:, None])
    return -((1 - right.exp()).square() * right).mean()


class Noisy(Net):
    def forward(self, x):
        return super().forward(x + torch.randn_like(x) if self.training else x)
"""
BLOCK = """
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.batch_norm, self.dropout = nn.GroupNorm(2, width), nn.BatchNorm2d(width), nn.Dropout(0.25)

    def forward(self, x):
        return x + self.dropout(nn.functional.gelu(self.batch_norm(self.norm(x))))
"""
DATA = """
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader


class Pairs:
    def __init__(self, first, last, flipped):
        with np.load(Path(__file__).with_name("my.npz")) as file:
            self.x, self.y = file["x"][first:last], file["y"][first:last]
        self.flipped = flipped

    def __len__(self):
        return len(self.y)

    def __getitem__(self, number):
        return self.x[number, :, ::-1].copy() if self.flipped else self.x[number], self.y[number]


def dataset(flipped=False):
    return Pairs(0, 96, flipped), Pairs(96, 144, flipped)


class Augmented(Pairs):
    def __getitem__(self, number):
        x, y = super().__getitem__(number)
        return x + 0.3 * torch.randn(x.shape).numpy() + 0.3 * np.random.rand(), y


def loader():
    return DataLoader(Augmented(0, 96, False), num_workers=2, shuffle=True), Pairs(96, 144, False)
"""
OPTIMISER = """
from torch import optim


def slower(module, rate):
    groups = {True: [], False: []}
    for parameter in module.parameters():
        groups[parameter.ndim > 1].append(parameter)
    return optim.NAdam([{"params": groups[True], "weight_decay": 0.01}, {"params": groups[False], "lr": rate / 2}], lr=rate)
"""
COMMON = {"batch": 16, "epochs": 2, "learning_rate": 0.003, "target": 0.5}
STUDY = {
    "name": "own",
    "workloads": {
        "mine": {"module": "my_model.py:Net", "data": "my.npz", **COMMON},
        "noisy": {"module": "my_model.py:Noisy", "data": "my.npz", **COMMON},
        "wide": {
            "module": "my_model.py:Net",
            "module_options": {"width": 6},
            "data": "my_data.py:dataset",
            "data_options": {"flipped": True},
            "optimiser": "sgd",
            **COMMON,
        },
        "augmented": {
            "module": "my_model.py:Net",
            "data": "my_data.py:loader",
            "loss_function": "my_model.py:focal",
            "optimiser": "my_optimiser.py:slower",
            **COMMON,
        },
        "rows": {
            "module": "my_model.py:Rows",
            "module_options": {"features": 2, "classes": 3},
            "data": "rows.csv",
            "data_options": {"target": "kind", "features": ["a", "b"]},
            "label_smoothing": 0.1,
            "weight_decay": 0.1,
            "decay": "matrices",
            "ema": 0.9,
            **COMMON,
        },
        "photos": {
            "module": "my_model.py:Rows",
            "module_options": {"features": 192, "classes": 2},
            "data": "photos/",
            "data_options": {"size": 8},
            "loss_function": "my_model.py:focal",
            "accumulation": 2,
            **COMMON,
        },
    },
    "train": {
        "repeats": 1,
        "grids": [
            {"workloads": ["mine", "noisy", "wide", "rows"], "frameworks": ["torch"], "strategies": ["single"]},
            {
                "workloads": ["augmented", "photos"],
                "frameworks": ["torch"],
                "strategies": ["single"],
                "inputs": ["files"],
            },
            {
                "workloads": ["augmented"],
                "frameworks": ["torch"],
                "strategies": ["ddp-gloo"],
                "ranks": [2],
                "inputs": ["files"],
            },
            {"workloads": ["mine"], "frameworks": ["torch"], "strategies": ["ddp-gloo"], "ranks": [2]},
            {"workloads": ["mine"], "frameworks": ["tensorflow"], "strategies": ["single"]},
            {"workloads": ["mine", "rows"], "frameworks": ["torchax"], "strategies": ["single"]},
            {"workloads": ["rows"], "frameworks": ["torchax"], "strategies": ["mpi-allreduce"], "ranks": [2]},
        ],
    },
    "export": {"workloads": ["mine"], "exporters": ["dynamo"]},
    "infer": {
        "max_seconds": 1,
        "repeats": 1,
        "grids": [{"workloads": ["mine"], "runtimes": ["python", "torch-eager"], "batches": [2]}],
    },
    "retrain": {
        "grids": [
            {"workloads": ["rows"], "runtimes": ["python", "rust", "torch-eager"], "steps": [10]},
            {"workloads": ["wide"], "runtimes": ["python"], "steps": [10]},
            # By a function of the study's own, which ONNX Runtime computes as a part of the step.
            {"workloads": ["photos"], "runtimes": ["python"], "steps": [10], "base_epochs": [1]},
        ]
    },
}


EVERY = set(STUDY["workloads"])


def workload_of(name: str) -> str:
    """Return the workload of `STAGE/ID`."""
    return name.split("/")[1].split(".")[0].split("~")[0]


@pytest.fixture(scope="module")
def own(place: Place, base_python: str) -> Place:
    """The study, made once."""
    generator = np.random.default_rng(7)
    y = np.arange(144) % 3
    x = generator.standard_normal((144, 1, 6, 6)) + y[:, None, None, None]
    np.savez(place.folder / "my.npz", x=x.astype(np.float32), y=y)
    (place.folder / "parts").mkdir()
    lines = (
        f"{a:.3f},{b:.3f},n{number},{'xyz'[label]}"
        for number, (label, (a, b)) in enumerate(zip(y, x[:, 0, 0, :2], strict=True))
    )
    (place.folder / "rows.csv").write_text("a,b,note,kind\n" + "\n".join(lines) + "\n")
    make = "import sys, pathlib; from transect.training.datasets.images import generate as g; g(pathlib.Path(sys.argv[1]), classes=2, per_class=40)"
    warm(base_python).check("-c", make, str(place.folder / "photos"))
    for name, text in {
        "my_model.py": MODEL,
        "my_data.py": DATA,
        "my_optimiser.py": OPTIMISER,
        "parts/__init__.py": "",
        "parts/block.py": BLOCK,
    }.items():
        (place.folder / name).write_text(text)
    (place.folder / "own.yaml").write_text(yaml.safe_dump(STUDY))
    made = place.make("own.yaml")
    assert made.returncode == 0, made.stdout + made.stderr
    return place


def test_module_and_data_are_trained_exported_and_served(own):
    records = own.records("own")
    lost = {name: record["message"] for name, record in records.items() if record["status"] != "ok"}
    reasons = {
        "mine.tensorflow": "it builds transect's own layers, not a module of torch in a file of the study's own",
        "mine.torchax": "Net draws random numbers in its forward pass",
        "rows.torch-eager": "is retrained as an exported step",
        "wide.sgd": "an exported step has masks of its own",
        "wide.python": "an exported step has masks of its own",
    }
    assert {".".join(name.split("/")[1].split(".")[:2]) for name in lost} == set(reasons)
    for name, message in lost.items():
        assert records[name]["status"] == "skipped" and reasons[".".join(name.split("/")[1].split(".")[:2])] in message
    (facts,) = (r["details"] for name, r in records.items() if name.startswith("inspect/mine"))
    assert facts["draws"] and facts["not_checkable"] is None
    assert {"aten.native_group_norm", "aten.gelu"} <= facts["operations"].keys()
    assert len([name for name in records if name.startswith("infer/")]) == 2


def test_single_and_data_parallel_runs_are_held_to_autograd_in_float64(own):
    trained = {name: r for name, r in own.records("own", "train").items() if r["status"] == "ok"}
    held = {name: r for name, r in trained.items() if "/noisy" not in name}
    assert len(held) == 9
    for record in held.values():
        values = {metric["name"]: metric["value"] for metric in record["metrics"]}
        assert values["equality_ratio"] <= 1 and values["weights_equality_ratio"] <= 1
        assert "not_checkable" not in record["details"]
    (detects,) = (
        r["details"]["detects_learning_rate_error_fp32"]
        for name, r in own.records("own", "reference").items()
        if "/wide" in name
    )
    # Dropout's masks are the reference's own, so the check is as sharp as without.
    assert detects < 0.01
    (noisy,) = (record for name, record in trained.items() if "/noisy" in name)
    assert "depends on the precision" in noisy["details"]["not_checkable"]


def test_a_module_is_retrained_in_other_languages_as_an_exported_step(own):
    ended = [record for record in own.records("own", "retrain").values() if record["status"] == "ok"]
    assert {record["cell"]["runtime"] for record in ended} == {"python", "rust"}
    for record in ended:
        values = {metric["name"]: metric["value"] for metric in record["metrics"]}
        assert values["equality_ratio"] <= 1 and values["weights_equality_ratio"] <= 1


@pytest.mark.parametrize(
    ("file", "old", "new", "workloads"),
    [
        ("my_model.py", "width * 16, 3", "width * 16, 3, True", EVERY),
        ("parts/block.py", "0.25", "0.26", EVERY),
        ("my_data.py", "96, 144", "96, 143", {"wide", "augmented"}),
        ("my_optimiser.py", "rate / 2", "rate / 3", {"augmented"}),
        ("own.yaml", "width: 6", "width: 8", {"wide"}),
        ("rows.csv", "n7", "n8", {"rows"}),
    ],
)
def test_an_edit_of_what_a_workload_is_made_of_runs_its_cells_again(own, file, old, new, workloads):
    assert own.why("own.yaml") == {}
    with edited(own.folder / file, old, new):
        again = own.why("own.yaml")
    assert {workload_of(name) for name in again} == workloads
    assert {"inspect", "dataset", "reference", "train"} <= {name.split("/")[0] for name in again}


def test_zeroed_samples_are_seen(own):
    path = own.folder / "my.npz"
    before = path.read_bytes()
    with np.load(path) as file:
        x, y = file["x"].copy(), file["y"]
    x[:20] = 0
    np.savez(path, x=x, y=y)
    try:
        again, verified = own.why("own.yaml"), own.transect("verify", "own.yaml")
    finally:
        path.write_bytes(before)
    # The function's file names it.
    assert {workload_of(name) for name in again} == {"mine", "noisy", "wide", "augmented"}
    assert verified.returncode == 1 and "my.npz" in verified.stdout
