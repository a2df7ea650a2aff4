"""Profiles: what each layer takes, keeps and passes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from payload_calls import payload_arguments
from transect.domain.axes.train import ProfileCell
from transect.payloads.__main__ import main
from transect.payloads.profile import profile
from transect.planner.costs import Rates, counted_costs, measured_costs
from transect.planning.expand import reason_to_skip
from transect.training.workloads import WORKLOADS, model_of
from warm import warm


def profiled(workload: str, batch: int, precision: str = "fp32", samples: int = 3) -> dict:
    cell = ProfileCell(workload=workload, framework="numpy", batch=batch, precision=precision)
    return profile(cell, WORKLOADS.get(workload).defaults, samples, seed=1)[0]


def test_every_layer_has_its_times_and_sizes():
    found = profiled("digits-cnn", 8, "fp64")
    model = model_of(WORKLOADS.get("digits-cnn"))
    counted = counted_costs(model, WORKLOADS.get("digits-cnn").defaults, 8, "fp64", Rates(1, 1))
    assert [layer["name"] for layer in found["layers"]] == [costs.name for costs in counted]
    for layer in [*found["layers"], found["whole"]]:
        for key in ("forward_s", "backward_s", "update_s"):
            assert len(layer[key]) == 3 and min(layer[key]) > 0
    assert [layer["weight_bytes"] for layer in found["layers"]] == [costs.weight_bytes for costs in counted]
    # The last layer passes nothing on: there the loss is.
    assert [layer["out_bytes"] for layer in found["layers"][:-1]] == [costs.out_bytes for costs in counted[:-1]]
    assert found["layers"][-1]["out_bytes"] == 0


def test_what_numpy_keeps_grows_with_the_batch_and_is_counted_once():
    # Linear, ReLU, …: numpy keeps the input of each, and a Linear finds the ReLU's output elsewhere.
    small, large = (profiled("digits-mlp", batch, samples=1) for batch in (4, 8))
    kept = [[layer["kept_bytes"] for layer in found["layers"]] for found in (small, large)]
    assert small["kept"] == "measured" and sum(kept[0]) > 0
    assert kept[1] == [2 * size for size in kept[0]]
    inputs = 4 * int(np.prod(WORKLOADS.get("digits-mlp").sample))
    assert kept[0][0] == 4 * inputs
    costs = measured_costs([small, large], 6)
    assert sum(layer.kept_bytes for layer in costs) == sum(kept[0]) * 3 // 2


_TORCH = """
import json, sys
import torch
from transect.domain.axes.train import ProfileCell
from transect.payloads.profile import profile
from transect.training.frameworks import FRAMEWORKS, ModelPart, ModelPlan
from transect.training.parts import layer_count
from transect.training.workloads import WORKLOADS, model_of
import numpy as np

workload = sys.argv[1]
plugin = WORKLOADS.get(workload)
model = model_of(plugin)
cell = ProfileCell(workload=workload, framework="torch", batch=4)
found = profile(cell, plugin.defaults, 2, 1)[0]
plan = ModelPlan(model=model, parameters=plugin.defaults, weights=model.initial_weights(1), batch=4,
                 precision="fp32", device="cpu", threads=1)
count = layer_count(model)
part = FRAMEWORKS.get("torch").part_trainer(plan, ModelPart(0, count, count))
own = {t.untyped_storage().data_ptr() for t in (*part.trainer.model.parameters(), *part.trainer.model.buffers())}
saved = {}
def pack(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in own and storage.nbytes():
        saved[storage.data_ptr()] = storage.nbytes()
    return tensor
x = np.random.default_rng(0).standard_normal((4, *model.sample), np.float32)
x, y = part.batch(x, np.zeros(4, np.int64))
part.begin_step()
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
    part.loss(0, x, y, 1.0)
hooked = sum(saved.values())
part.loss(1, x, y, 1.0)
print(json.dumps({"hooked": hooked, "whole": sum(part.kept(1).values()),
                  "layers": sum(layer["kept_bytes"] for layer in found["layers"]), "kept": found["kept"]}))
"""


@pytest.mark.parametrize("workload", ["digits-cnn", "images-resnet20"])
def test_what_torch_keeps_is_what_its_hooks_see(workload, torch_python):
    done = warm(torch_python).run("-c", _TORCH, workload)
    assert done.returncode == 0, done.stderr
    sizes = json.loads(done.stdout.splitlines()[-1])
    assert sizes["kept"] == "measured"
    assert sizes["whole"] == sizes["hooked"] > 0
    # Cut into layers, nothing counts twice: at most the logits, their copies and a scalar more.
    assert sizes["layers"] == pytest.approx(sizes["whole"], rel=0.01)


@pytest.mark.parametrize(("workload", "framework", "reason"), [("tickets-transformer", "torch", "lists of layers")])
def test_what_cannot_be_cut_is_skipped_with_a_reason(workload, framework, reason):
    cell = ProfileCell(workload=workload, framework=framework, batch=4)
    assert reason in str(reason_to_skip(cell))


def test_a_worker_leaves_both_files_and_says_what_failed(tmp_path: Path):
    spec = {
        "cell": {"stage": "profile", "workload": "iris-mlp", "framework": "numpy", "batch": 4},
        "parameters": WORKLOADS.get("iris-mlp").defaults.model_dump(),
        "seed": 1,
        "samples": 2,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    given = payload_arguments("profile", tmp_path)
    assert main(given) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["status"] == "ok"
    assert {metric["name"] for metric in result["metrics"]} == {"forward_time", "backward_time"}
    assert len(json.loads((tmp_path / "profile.json").read_text())["layers"]) == result["details"]["layers"]
    spec["parameters"]["batch"] = 0
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    assert main(given) == 1
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "failed"


def test_a_rank_beside_rank_0_works_until_that_has_told_and_tells_nothing(tmp_path, monkeypatch):
    spec = {
        "cell": ProfileCell(workload="digits-mlp", framework="numpy", batch=8, ranks_per_node=2).axes(),
        "parameters": WORKLOADS.get("digits-mlp").defaults.model_dump(),
        "samples": 2,
        "seed": 1,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    arguments = payload_arguments("profile", tmp_path)
    assert main(arguments) == 0
    written = (tmp_path / "profile.json").read_text()
    (tmp_path / "result.json").unlink()
    monkeypatch.setenv("RANK", "1")
    assert main(arguments) == 0
    assert not (tmp_path / "result.json").exists()
    assert (tmp_path / "profile.json").read_text() == written
