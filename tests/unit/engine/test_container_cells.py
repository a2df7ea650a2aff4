"""The container as an axis of cells and as a system's fact: ids, environments, fingerprints, refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from factories import plan_study
from transect.domain.errors import BadInput
from transect.domain.record import Cause, Status
from transect.domain.system import EnvironmentChoice
from transect.engine import build_image
from transect.engine.build_image import image_changed
from transect.engine.job import Job, load_job
from transect.engine.payload import refuse
from transect.launch.images import parts_of
from transect.launch.wrapping import wrapped
from transect.planning.environments import lock_hash
from transect.planning.images import definition_of, image_folder, image_lock
from transect.planning.plan import StudyPlan

STUDY = """
name: boxes
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp], frameworks: [numpy], strategies: [single], containers: [null, charliecloud]}
bench:
  grids: [{benchmarks: [network-probe], ranks: [2], containers: [podman]}]
"""


def boxes_plan(folder: Path, study: str = STUDY, system: str = "name: here\n") -> StudyPlan:
    return plan_study(folder, study, system=system)


def test_a_cell_in_a_container_stands_on_the_image(tmp_path):
    made = boxes_plan(tmp_path)
    train = {p.cell.container: p for p in made.stage("train").values()}
    (bench,) = made.stage("bench").values()
    assert train[None].environments == {"base": lock_hash("base")}
    assert train["charliecloud"].environments == {"base@charliecloud": image_lock("base")}
    assert bench.environment == "base@podman"
    # The reference and the data are one for both.
    assert train[None].inputs == train["charliecloud"].inputs
    assert {p.environment for p in made.stage("dataset").values()} == {"base"}


def test_a_systems_container_is_that_of_every_environment_that_it_does_not_choose(tmp_path):
    system = "name: here\ncontainer: enroot\nenvironments: {torch: {modules: [torch/2]}}\n"
    made = boxes_plan(tmp_path, system=system)
    assert {parts_of(p.environment) for p in made.stage("dataset").values()} == {("base", "enroot")}
    train = {p.cell.container: p.environment for p in made.stage("train").values()}
    assert train == {None: "base@enroot", "charliecloud": "base@charliecloud"}
    made = boxes_plan(tmp_path, STUDY.replace("[numpy]", "[torch]"), system=system)
    assert {p.environment for p in made.stage("train").values()} == {"torch"}


@pytest.mark.parametrize(
    ("study", "system"),
    [
        (STUDY.replace("charliecloud", "charlycloud"), "name: here\n"),
        (STUDY, "name: here\ncontainer: charlycloud\n"),
        (STUDY, "name: here\nenvironments: {base: {image: /x, wrapper: charlycloud}}\n"),
    ],
)
def test_a_wrapper_that_is_not_there_ends_the_plan(tmp_path, study, system):
    with pytest.raises(BadInput, match=r"'charlycloud'.*charliecloud"):
        boxes_plan(tmp_path, study, system)


def test_an_image_lock_follows_environment_and_definition(tmp_path, monkeypatch):
    source = tmp_path / "envs" / "small"
    source.mkdir(parents=True)
    (source / "requirements.txt").write_text("")
    (source / "image.yaml").write_text("base: host\n")
    monkeypatch.setenv("TRANSECT_PLUGINS", str(tmp_path))
    first, environment_lock = image_lock("small"), lock_hash("small")
    (source / "image.yaml").write_text("base: host\nprograms: [sh]\n")
    assert image_lock("small") != first and lock_hash.__globals__["lock_hash_now"]("small") == environment_lock
    assert image_folder("small").name == f"small-{image_lock('small')}"
    (source / "image.yaml").unlink()
    with pytest.raises(BadInput, match="'small' has no image"):
        definition_of("small")


def job(folder: Path, facts: dict[str, object]) -> Job:
    made = boxes_plan(folder)
    (planned,) = (p for p in made.stage("train").values() if p.cell.container)
    stamp = made.paths.environment("base@charliecloud")
    stamp.parent.mkdir(parents=True, exist_ok=True)
    usual = {
        "name": "base@charliecloud",
        "lock_hash": "0",
        "python": "/env/bin/python",
        "bin": "/env/bin",
        "wrap": True,
        "wrapper": "charliecloud",
        "status": "ok",
        "message": "",
    }
    stamp.write_text(json.dumps(usual | facts))
    return load_job(planned.spec, made.paths)


def test_the_rank_is_told_its_image_its_folders_and_its_working_folder(tmp_path):
    image = tmp_path / "image"
    (image / "root").mkdir(parents=True)
    (image / "transect-image.json").write_text("{}")
    made = job(tmp_path, {"image": str(image)})
    wrap, variables = made.wrap()
    assert wrap[0] == "ch-run" and wrap[-2:] == [f"{image}/root", "--"]
    assert f"--cd={made.folder}" in wrap and "--bind=/tmp" in wrap
    assert variables["PMIX_MCA_gds"] == "hash" and variables["USER"]
    assert refuse(made) is None
    # mpiexec is that of the environment from which the image was made.
    assert made.bin == Path("/env/bin")


@pytest.mark.parametrize(
    ("facts", "status"),
    [({}, Status.FAILED), ({"status": "failed", "message": "ch-run is not on PATH", "skips": True}, Status.SKIPPED)],
)
def test_an_image_or_a_program_that_is_not_here_is_told_in_one_sentence(tmp_path, facts, status):
    result = refuse(job(tmp_path, {"image": f"{tmp_path}/gone"} | facts))
    assert result is not None and (result.status, result.cause) == (status, Cause.MISSING_DEPENDENCY)
    expected = facts.get("message", f"image {tmp_path}/gone ")
    assert result.message.startswith(f"environment 'base@charliecloud': {expected}")


def test_a_folder_as_image_counts_by_its_files_and_not_by_what_is_bound_in_it(tmp_path):
    root = tmp_path / "root é"
    (root / "usr/lib").mkdir(parents=True)
    library = root / "usr/lib/libz.so.1"
    library.write_text("one")
    os.symlink("nowhere", root / os.fsdecode(b"no text \xff"))
    choice = EnvironmentChoice(image=str(root), wrapper="podman")
    before = lock_hash("base", choice)
    wrapped(str(root), wrapper="podman", binds=["/elsewhere/results"])
    assert (root / "elsewhere/results").is_dir() and lock_hash("base", choice) == before
    library.write_text("other")
    assert lock_hash("base", choice) != before


def test_a_stamp_is_made_again_when_its_image_has_gone_or_its_program_has_come(tmp_path, monkeypatch):
    ok = {"status": "ok", "image": f"{tmp_path}/gone"}
    assert image_changed("base@podman", ok)
    (tmp_path / "gone").mkdir()
    assert not image_changed("base@podman", ok)
    assert not image_changed("base", {"status": "ok"})
    skips = {"status": "failed", "skips": True, "image": f"{tmp_path}/x"}
    monkeypatch.setattr(build_image, "program_says", lambda name: None)
    assert not image_changed("base@podman", skips)
    monkeypatch.setattr(build_image, "program_says", lambda name: ("podman", "5"))
    assert image_changed("base@podman", skips)
