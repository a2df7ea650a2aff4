"""What becomes of activations: to the last bit as plain training, within a budget, and told where it fails."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from factories import plan_study
from transect.domain.errors import BadInput, MissingDependency
from transect.training.layers import BatchNorm2d, Conv2d, Flatten, Linear, ReLU, Residual
from transect.training.memory._managed_allocator import compile_allocator
from transect.training.memory._runs import Run, check_runs
from transect.training.memory._swap_file import file_system
from transect.training.memory.recompute import segments
from transect.training.saved_tensors import largest_layer, saved_tensors
from warm import warm


def run(python: str, *checks: str) -> dict[str, Any]:
    script = Path(__file__).with_name("memory_cases.py")
    done = warm(python).run(script, *checks)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def found(torch_python: str) -> dict[str, Any]:
    return run(torch_python, "equality", "counted", "faults")


@pytest.fixture(scope="module")
def held(torch_python: str) -> dict[str, Any]:
    """In a process of its own: what others freed would count as room."""
    budgets: dict[str, Any] = run(torch_python, "budget")["budget"]
    return budgets


def test_a_peak_is_that_of_the_whole_process(torch_python):
    """Steps that are watched count anew; what was held before them is no less a peak."""
    found = run(torch_python, "peak")["peak"]
    # The kernel adds up what threads hold now and then only.
    assert found["left"] + (1 << 26) < found["held"] <= found["peak"] + (1 << 24)


@pytest.mark.parametrize("precision", ["fp32", "fp64", "amp-bf16"])
@pytest.mark.parametrize("memory", ["recompute", "offload-file", "planned", "host"])
def test_every_bit_is_that_of_plain_training(found, precision, memory):
    plain, changed = (found["equality"][f"{precision} {name}"] for name in ("plain", memory))
    facts = changed.pop("told")
    assert changed == {key: plain[key] for key in changed}
    # It did something, and so is not equal for want of a difference.
    assert ("file_system" in facts) == (memory in ("offload-file", "planned"))
    if memory == "recompute":
        assert sum(action == "recompute" for action, _, _ in facts["runs"]) == 2
    else:
        assert facts["offloaded_bytes"] > 200_000


@pytest.mark.parametrize("memory", ["recompute", "offload-file"])
def test_layers_of_an_encoder_too(found, memory):
    plain, changed = (found["equality"][f"encoder {name}"] for name in ("plain", memory))
    facts = changed.pop("told")
    assert changed == {key: plain[key] for key in changed}
    assert facts.get("offloaded_bytes", 0) > 10_000 or len(facts["runs"]) == 3


def test_what_is_counted_of_a_layer_is_what_autograd_saves(found):
    counted = found["counted"]
    assert counted["counted"] == counted["measured"]
    assert min(counted["seconds"]) > 0


def test_a_budget_holds_plain_training_and_lets_others_train_more(held):
    assert held["plain 16"] == held["recompute 64"] == held["offload-file 64"] == "trained"
    assert held["plain 128"].startswith(f"BudgetUsedUp: the memory_budget of {96 << 20:,} bytes does not suffice")
    assert max(value for name, value in held.items() if name.endswith("most")) < 96 << 20
    # Outside of the passes nothing is held to it.
    assert held["limit after"] == -1


def test_a_file_system_is_known_by_its_type(tmp_path):
    """As what is written into tmpfs is in memory all the same, and no budget counts it."""
    assert file_system("/proc") == "proc" != file_system(str(tmp_path))


def test_faults_are_told_and_lose_nothing(found):
    faults = found["faults"]
    assert faults["full"].startswith("no room for activations in ")
    assert "1,048,576 bytes are written" in faults["full"] and "scratch" in faults["full"]
    assert faults["after"] == faults["plain"]
    assert "changed in place" in faults["changed"]
    assert faults["once"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert "asked for again" in faults["twice"]
    assert "65536 bytes of activations are missing" in faults["short"]


CUDA = """
#include <stdlib.h>
int cudaMallocManaged(void **to, size_t size, unsigned how) { return (*to = malloc(size)) == NULL; }
int cudaFree(void *given) { free(given); return 0; }
"""


@pytest.mark.env
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_managed_memory_is_never_more_than_its_limit(tmp_path):
    (tmp_path / "cuda.c").write_text(CUDA)
    runtime = tmp_path / "libcudart.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", runtime, tmp_path / "cuda.c"], check=True)
    path, library = compile_allocator(str(runtime), 1000)
    shutil.rmtree(path.parent)
    given = library.transect_managed_malloc(600, 0, None)
    assert given and library.transect_managed_malloc(401, 0, None) is None
    assert library.transect_managed_used() == 600
    library.transect_managed_free(given, 600, 0, None)
    assert library.transect_managed_used() == 0
    with pytest.raises(MissingDependency, match="is no CUDA runtime"):
        compile_allocator("/no/such/libcudart.so", 1)


LAYERS = (
    Conv2d(1, 4, 3, 1),
    ReLU(),
    Conv2d(4, 4, 3, 1),
    ReLU(),
    Residual((Conv2d(4, 4, 3, 1), BatchNorm2d(4))),
    ReLU(),
    Flatten(),
    Linear(256, 10),
)


def test_a_tensor_that_two_layers_save_is_counted_once():
    saved = saved_tensors(LAYERS, (1, 8, 8), 2, 4)
    image = 2 * 4 * 64 * 4
    # Three ReLU outputs, and of the residual its convolution's output and two numbers a channel; its
    # input is the ReLU's, and the linear map saves the flattened one.
    assert saved.kept_bytes() == 4 * image + 2 * 4 * 4
    assert saved.layers[7].before == saved.layers[5].after
    # Its weights' gradients outweigh all images of two samples, but not of sixteen.
    assert largest_layer(LAYERS, (1, 8, 8), 2, 4) == ("7", 4 * (2 * 2 * 256 + 2 * 10 + 2570))
    assert largest_layer(LAYERS, (1, 8, 8), 16, 4) == ("2", 3 * 8 * image + 4 * (4 * 4 * 9 + 4))


def test_segments_cover_all_layers_and_the_last_is_kept():
    runs = segments(saved_tensors(LAYERS, (1, 8, 8), 64, 4))
    check_runs(runs, len(LAYERS))
    assert len(runs) > 1
    assert [run.action for run in runs] == ["recompute"] * (len(runs) - 1) + ["keep"]
    with pytest.raises(ValueError, match="do not cover 8 layers"):
        check_runs([Run("keep", 0, 3), Run("keep", 4, 8)], 8)


GRID = """
name: small
train:
  repeats: 2
  grids:
    - {{workloads: [digits-cnn], frameworks: [torch], strategies: [{strategies}],
       ranks: [1], memories: [{memories}], memory_budgets: [{budgets}]}}
"""


def memory_plan(tmp_path: Path, memories: str, budgets: str, strategies: str = "single, mpi-allreduce") -> Any:
    grid = GRID.format(memories=memories, budgets=budgets, strategies=strategies)
    return plan_study(tmp_path, grid)


def test_planned_cells_share_a_decision(tmp_path):
    made = memory_plan(tmp_path, "plain, planned", "50000000")
    decisions = made.stage("memory-plan")
    assert len(decisions) == 1
    taking = [cell for cell in made.stage("train").values() if "memory" in cell.inputs]
    assert len(taking) == 4 and {cell.cell.memory for cell in taking} == {"planned"}
    # Nothing to plan for, or nobody who follows it: the training says so, and nothing is measured for it.
    assert memory_plan(tmp_path, "planned", "null").stage("memory-plan") == {}
    assert memory_plan(tmp_path, "planned", "50000000", "mpi-overlap, fsdp").stage("memory-plan") == {}
    assert memory_plan(tmp_path, "planned", "1000").stage("memory-plan") == {}


def test_an_unknown_memory_is_an_error_of_the_study(tmp_path):
    with pytest.raises(BadInput, match=r"'recomptue'.*'recompute'"):
        memory_plan(tmp_path, "recomptue", "null")
