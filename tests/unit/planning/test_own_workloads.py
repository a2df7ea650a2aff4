"""What a study says of its own workloads: all that is wrong with it at once, and a study of one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from factories import plan_study
from transect.cli.own_training import names_a_module, study_of_module
from transect.cli.plan import train
from transect.domain.errors import BadInput
from transect.planning.expand import reason_to_skip
from transect.planning.own_workloads import define
from transect.planning.study import load_study
from transect.training.datasets.arrays import samples_of
from transect.training.datasets.python import arrays_of
from transect.training.own_files import member_of
from transect.training.own_workload import definition_of

pytestmark = pytest.mark.fast

MODEL = "from torch import nn\n\nclass Net(nn.Module):\n    pass\n"
PARTS = {
    "x_train": np.zeros((2, 2), np.uint8),
    "y_train": np.zeros(2, int),
    "x_test": np.zeros((3, 2), np.uint8),
    "y_test": np.zeros(3, int),
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "studies"
    folder.mkdir()
    (folder / "my_model.py").write_text(MODEL)
    (folder / "broken.py").write_text("class Net(:\n")
    (folder / "made.py").write_text(MODEL + "for name in ('A', 'B'):\n    globals()[name] = Net\n")
    return folder / "study.yaml"


@pytest.mark.parametrize(
    ("keys", "complaints"),
    [
        (
            {"module": "my_model.py:Nett", "data": "my.npz", "target": 0.9},
            ["unknown member 'Nett': did you mean 'Net'?"],
        ),
        ({"module": "my_model.py", "data": "my.npz", "target": 0.9}, ["expected FILE.py:NAME, got 'my_model.py'"]),
        ({"module": "gone.py:Net", "data": "my.npz", "target": 0.9}, ["gone.py: no such file"]),
        ({"module": "broken.py:Net", "data": "my.npz", "target": 0.9}, ["broken.py: is no Python: "]),
        ({"module": "my_model.py:Net", "data": "my.txt", "target": 0.9}, ["expected FILE.npz, FILE.csv"]),
        ({"module": "my_model.py:Net", "target": 0.9}, ["workloads.mine.data"]),
        (
            {"module": "my_model.py:Nett", "data": "my.txt", "losses": "mse"},
            ["unknown member 'Nett'", "expected FILE.npz", "target': expected the score", "unknown key 'losses'"],
        ),
        (
            {"module": "my_model.py:Net", "data": "my.npz", "data_options": {"n": 1}, "target": 0.9},
            ["data_options': arrays take none"],
        ),
        (
            {"module": "my_model.py:Net", "data": "my.npz", "optimiser": "my_model.py:Nut", "target": 0.9},
            ["unknown member 'Nut'"],
        ),
        (
            {"module": "my_model.py:Net", "data": "my.npz", "optimiser": "Function", "target": 0.9},
            ["optimiser': expected FILE.py:NAME of the function"],
        ),
        ({"module": "my_model.py:Net", "data": "", "target": 0.9}, ["'' is the study's own folder"]),
        (
            {"module": "my_model.py:Net", "data": "my.csv", "data_options": {"path": "b.csv"}, "target": 0.9},
            ["has path: where the data lies is said by `data`"],
        ),
    ],
)
def test_all_that_is_wrong_is_told_at_once(study, keys, complaints):
    with pytest.raises(BadInput) as raised:
        define("mine", keys, study)
    lines = str(raised.value).split("\n")
    assert len(lines) == len(complaints)
    for complaint in complaints:
        assert sum(complaint in line for line in lines) == 1


def test_names_that_only_running_a_file_tells_are_left_to_the_stage_inspect(study):
    assert define("mine", {"module": "made.py:A", "data": "my.npz", "target": 0.9}, study)["quality_target"] == 0.9


def test_names_of_an_assignment_to_several_are_known(study):
    (study.parent / "made.py").write_text(MODEL + "A, (B, *C) = Net, (Net, Net)\n")
    for name in "ABC":
        define("mine", {"module": f"made.py:{name}", "data": "my.npz", "target": 0.9}, study)
    with pytest.raises(BadInput, match="unknown member 'D'"):
        define("mine", {"module": "made.py:D", "data": "my.npz", "target": 0.9}, study)


def test_files_that_the_data_s_code_names_count_also_in_what_it_imports_and_elsewhere(study):
    beside, linked = study.parent.parent / "beside.npz", study.parent / "linked"
    files = [beside, study.parent / "named.npz", study.parent / "parts" / "deep.npz"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
    linked.symlink_to(study.parent.parent, target_is_directory=True)
    (study.parent / "parts" / "load.py").write_text("FILE = 'deep.npz'\n")
    (study.parent / "my_data.py").write_text(
        f"import parts.load\n\ndef dataset():\n    return 'named.npz', 'linked', '../beside.npz', {str(beside)!r}, '..', '/'\n"
    )
    define("mine", {"module": "my_model.py:Net", "data": "my_data.py:dataset", "target": 0.9}, study)
    assert definition_of("mine")["own_workload"]["reads"] == sorted(map(str, [*files, linked]))


def test_a_broken_workload_leaves_no_complaint_of_the_grids_that_name_it(study):
    study.write_text(
        "name: s\nworkloads:\n  mine: {module: my_model.py:Nett, data: my.npz, target: 0.9}\n"
        "train: {grids: [{workloads: [mine], frameworks: [torch], strategies: [single]}]}\n"
    )
    with pytest.raises(BadInput) as raised:
        load_study(study)
    assert len(str(raised.value).split("\n")) == 1


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"x": np.zeros((4, 2))}, "holds x: expected x and y"),
        ({"x": np.zeros((4, 2)), "y": np.zeros(3, int)}, "4 samples x for 3 targets y"),
        ({"x": np.full((4, 2), np.nan), "y": np.zeros(4, int)}, "expected finite numbers"),
        ({"x": np.zeros((4, 2)), "y": np.array([0, 1, 2, 0]), "classes": np.array(["a", "b"])}, "2 names of classes"),
        ({"x": np.zeros((0, 2)), "y": np.zeros(0, int)}, "0 samples x"),
        ({"x": np.array(1.0), "y": np.array(1)}, "x, y is one number"),
        (PARTS | {"y_train": np.zeros(1, int), "y_test": np.zeros(4, int)}, "2 samples x_train for 1 targets y_train"),
        (PARTS | {"x_test": np.zeros((0, 2), np.uint8), "y_test": np.zeros(0, int)}, "0 samples x_test"),
        (PARTS | {"x_test": np.zeros((3, 2))}, r"x_train is uint8 \(2, 2\), x_test float64 \(3, 2\)"),
        (PARTS | {"x_test": np.zeros((3, 5), np.uint8)}, "the same shape of a sample"),
    ],
)
def test_arrays_that_cannot_be_used_are_named(arrays, complaint):
    with pytest.raises(BadInput, match=complaint):
        samples_of(arrays, Path("my.npz"), "my.npz")


def test_arrays_with_a_test_part_keep_it():
    x, y = np.arange(8, dtype=np.uint8).reshape(4, 2), np.array([0, 1, 0, 1])
    samples = samples_of({"x_train": x[:3], "y_train": y[:3], "x_test": x[3:], "y_test": y[3:]}, Path("a"), "a")
    assert samples.test is not None and samples.test.tolist() == [3]
    # Bytes are pixels.
    assert samples.x.max() == 7 / 255 and samples.classes == ("0", "1")


def test_arrays_of_a_function_may_be_two_pairs(tmp_path):
    x, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    found = arrays_of(((x[:3], y[:3]), (x[3:], y[3:])), "mine")
    assert {name: part.tolist() for name, part in found.items()} == {
        "x_train": x[:3].tolist(),
        "y_train": [0, 1, 0],
        "x_test": x[3:].tolist(),
        "y_test": [1],
    }


@pytest.mark.parametrize("name", ["net.v2.py", "json.py"])
def test_files_of_any_name_are_imported_once(tmp_path, name):
    (tmp_path / name).write_text("class Net:\n    pass\n\ndef mine(net):\n    return isinstance(net, Net)\n")
    assert member_of(tmp_path / name, "mine")(member_of(tmp_path / name, "Net")())


GRID = "train: {grids: [{workloads: [mine], frameworks: [torch, torchax], strategies: [single]}]}\n"


def with_environment(study, name):
    (study.parent / "my.npz").write_bytes(b"")
    own = f"{{module: my_model.py:Net, data: my.npz, target: 0.9, environment: {name}}}"
    return plan_study(study.parent, f"name: s\nworkloads:\n  mine: {own}\n{GRID}")


def test_an_environment_that_is_not_there_is_told_with_its_key(study):
    with pytest.raises(
        BadInput, match=r"study\.yaml: workloads\.mine\.environment: unknown environment 'torh': did you mean 'torch'"
    ):
        with_environment(study, "torh")


def test_a_module_with_an_environment_of_its_own_runs_in_no_other(study):
    cells = with_environment(study, "torch-scripts").stage("train").values()
    reasons = {planned.cell.framework: reason_to_skip(planned.cell) for planned in cells}
    assert "'torch-scripts', and this runs in 'torchax'" in reasons["torchax"]
    assert "environment" not in (reasons["torch"] or "")
    cells = with_environment(study, "torchax").stage("train").values()
    assert "environment" not in str({reason_to_skip(planned.cell) for planned in cells})


def test_one_call_is_a_study_of_a_module_alone_and_data_parallel(tmp_path):
    assert names_a_module("my_model.py:Net") and not names_a_module("iris-mlp")
    study = study_of_module("m.py:My_Net", "my.npz", 0.9, ranks=2, batch=None, repeats=None)
    assert [grid["strategies"] for grid in study["train"]["grids"]] == [["single"], ["ddp-gloo"]]
    assert study["workloads"]["my-net"]["data"] == str(Path("my.npz").resolve())
    with pytest.raises(BadInput, match="expected --data"):
        study_of_module("m.py:Net", None, 0.9, ranks=1, batch=None, repeats=None)


def test_the_one_call_refuses_options_that_it_would_not_follow():
    with pytest.raises(BadInput, match=r"^--threads, --precision: not of a module"):
        train("m.py:Net", data="my.npz", target=0.9, framework="PyTorch", threads=2, precision="amp-bf16")


def test_a_path_that_is_not_there_is_told_with_the_key_that_names_it(study):
    (study.parent / "pictures" / "a").mkdir(parents=True)
    own = "{module: my_model.py:Net, data: pictures, data_options: {size: 8, manifest: gone}, target: 0.9}"
    with pytest.raises(BadInput, match=r"workloads\.mine\.data_options\.manifest': .*gone: no such file or folder"):
        plan_study(study.parent, f"name: s\nworkloads:\n  mine: {own}\n{GRID}")
