"""The RO-Crate of a study's folder, and what `transect verify` finds of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factories import bare_record, train_cell, write_records
from transect.cli.crate import check_crate, write_crate
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.files import sha256_file
from transect.domain.inventory import name_of, take_inventory
from transect.domain.paths import StudyPaths
from transect.domain.record import Cause, Status
from transect.report.engine.crate import METADATA

HOSTILE = "</script><img src=x onerror=1> \x1b[31m ../../etc"


def write_cell(folder: Path, workload: str, status: Status = Status.OK, inputs: tuple[str, ...] = ()) -> Path:
    why = {} if status is Status.OK else {"cause": Cause.CRASH, "message": HOSTILE}
    made = bare_record(train_cell(workload=workload), status=status, study=folder.name, inputs=list(inputs), **why)
    place = write_records(folder, made) / "train" / made.cell_id
    (place / "output.log").write_text("log\n")
    (place / "spec.json").write_text("{}")
    return place


@pytest.fixture
def study(tmp_path: Path) -> StudyPaths:
    """A folder of three cells: ok, failed, and skipped; the first took a file of the second."""
    folder = tmp_path / "results" / "small"
    failed = write_cell(folder, "digits-cnn", Status.FAILED)
    (failed / "data.npz").write_bytes(b"data")
    checksum = hashlib.sha256(b"data").hexdigest()
    write_cell(folder, "iris-mlp", inputs=(f"data.npz {checksum}",))
    write_cell(folder, "iris-mlp-ce", Status.SKIPPED)
    (folder / "report.html").write_text("page")
    (folder / ".checksums.sqlite").write_text("{}")
    return StudyPaths(results=tmp_path / "results", study="small")


def graph(paths: StudyPaths) -> dict[str, dict[str, Any]]:
    content = json.loads((paths.folder / METADATA).read_text())
    assert content["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(entities) == len(content["@graph"]), "no id is there twice"
    return entities


def refs(value: Any) -> list[str]:
    return [reference["@id"] for reference in (value if isinstance(value, list) else [value])]


def verify(paths: StudyPaths) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(paths.folder)])
    return done.exit_code, done.output


def test_every_file_is_in_it_with_its_checksum(study: StudyPaths) -> None:
    write_crate(study)
    entities = graph(study)
    files = {uri: entity for uri, entity in entities.items() if "File" in entity["@type"]}
    there = {path.relative_to(study.folder).as_posix(): path for path in study.folder.rglob("*") if path.is_file()}
    assert set(there) - {name_of(uri) for uri in files} == {METADATA, ".checksums.sqlite"}
    for uri, entity in files.items():
        path = there[name_of(uri)]
        assert entity["sha256"] == sha256_file(path) and entity["contentSize"] == str(path.stat().st_size)
    assert sorted(refs(entities["./"]["hasPart"])) == sorted(files)
    assert entities["./"]["datePublished"] == "2026-01-01"


def test_cells_that_ran_are_actions_with_what_they_took_and_made(study: StudyPaths) -> None:
    write_crate(study)
    entities = graph(study)
    for entity in entities.values():
        for value in (v for key, v in entity.items() if key not in ("about", "conformsTo", "identifier", "url")):
            for uri in refs(value) if isinstance(value, (dict, list)) and value and "@id" in str(value) else ():
                assert uri in entities or uri.startswith("https://spdx.org"), f"{entity['@id']}: {uri} is nowhere"
    actions = {uri: entity for uri, entity in entities.items() if entity["@type"] == "CreateAction"}
    assert len(actions) == 3, "the run and two cells; one was skipped"
    ok = next(action for uri, action in actions.items() if "iris-mlp." in uri)
    failed = next(action for uri, action in actions.items() if "digits-cnn" in uri)
    assert ok["actionStatus"].endswith("CompletedActionStatus") and "error" not in ok
    assert failed["actionStatus"].endswith("FailedActionStatus")
    assert failed["error"].startswith("crash: ") and "\x1b" not in failed["error"]
    assert any(uri.endswith("/data.npz") for uri in refs(ok["object"])), "the file that its record names by checksum"
    assert any(uri.endswith("/record.json") for uri in refs(ok["result"]))
    assert refs(actions["#run"]["instrument"]) == ["workflow/Snakefile"] == refs(entities["./"]["mainEntity"])


def test_it_is_the_same_twice_and_verifies(study: StudyPaths) -> None:
    write_crate(study)
    before = (study.folder / METADATA).read_bytes()
    write_crate(study)
    assert (study.folder / METADATA).read_bytes() == before
    for name in (".checksums.sqlite", ".checksums.json"):
        (study.folder / name).write_text('{"new": []}')
    code, output = verify(study)
    assert code == 0, output
    assert "0 missing, 0 changed, 0 added" in output


@pytest.mark.parametrize("name", ["a b:#?", "caf\u00e9", "a%20b", "new\nline", "\udcff", "<b>", "\\"])
def test_files_of_any_name_are_found_again(study: StudyPaths, name: str) -> None:
    place = study.folder / "train" / "strange"
    place.mkdir()
    (place / name).write_text("1")
    write_crate(study)
    assert check_crate(study.folder).holds
    (place / name).write_text("2")
    assert check_crate(study.folder).changed == [f"train/strange/{name}"]
    (place / name).unlink()
    assert check_crate(study.folder).missing == [f"train/strange/{name}"]
    code, output = verify(study)
    assert code == 1 and "missing" in output and "\x1b" not in output


def test_missing_changed_and_added_files_are_each_named(study: StudyPaths) -> None:
    write_crate(study)
    (study.folder / "report.html").write_text("another")
    (study.folder / "workflow/Snakefile").unlink()
    (study.folder / ".hidden").write_text("new")
    (study.folder / "train/new").mkdir()
    (study.folder / "train/new/[red]file").write_text("new")
    code, output = verify(study)
    assert code == 1
    lines = {" ".join(line.split()) for line in output.splitlines()}
    assert {"report.html changed", "workflow/Snakefile missing", ".hidden added", "train/new/[red]file added"} <= lines
    assert any(line.endswith("1 missing, 1 changed, 2 added") for line in lines)
    output = json.loads(CliRunner().invoke(app, ["verify", str(study.folder), "--json"]).stdout)
    assert output["crate"]["added"] == [".hidden", "train/new/[red]file"]


def test_links_are_named_and_not_followed(study: StudyPaths) -> None:
    outside = study.results / "outside"
    outside.write_text("secret")
    link = study.folder / "link"
    link.symlink_to(outside)
    os.mkfifo(study.folder / "pipe")
    _, inventory = write_crate(study)
    assert sorted(inventory.others) == ["link", "pipe"] and "link" not in inventory.files
    assert check_crate(study.folder).holds
    link.unlink()
    assert check_crate(study.folder).missing == ["link"]
    link.symlink_to(study.folder)
    assert check_crate(study.folder).changed == ["link"]
    report = study.folder / "report.html"
    report.unlink()
    report.symlink_to(outside)
    assert any(f"link to {outside}" in change for change in check_crate(study.folder).changed)


def test_a_damaged_record_is_a_file_as_any_other(study: StudyPaths) -> None:
    (path,) = study.folder.glob("train/iris-mlp.*/record.json")
    path.write_text("{")
    write_crate(study)
    assert check_crate(study.folder).holds
    assert len([uri for uri in graph(study) if uri.startswith("#train/")]) == 1
    code, output = verify(study)
    assert code == 1 and "no JSON" in output, "the crate holds, the record does not"


THEIRS = json.dumps({"@graph": [{"@id": "./", "@type": "Dataset", "description": "My pictures"}]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (METADATA, ""),
        (METADATA, "[]"),
        (METADATA, '{"@graph": [{"@id": "a"}, {"@id": "a"}]}'),
        (METADATA, '{"@graph": [{"@id": 3, "@type": "File"}]}'),
        (METADATA, "[" * 10**5),
        (METADATA, THEIRS),
        ("README.md", "mine"),
    ],
)
def test_what_is_not_ours_or_damaged_is_never_overwritten(study: StudyPaths, name: str, text: str) -> None:
    (study.folder / name).write_text(text)
    if text not in (THEIRS, "mine"):
        assert verify(study)[0] != 0
    with pytest.raises(BadInput, match=re.escape(name)):
        write_crate(study)
    assert (study.folder / name).read_text() == text


@pytest.mark.parametrize("uri", ["../outside", "/etc/passwd", "a/../../b", "%2e%2e/x", "report%2Ehtml"])
def test_a_crate_that_names_a_file_outside_or_twice_is_refused(study: StudyPaths, uri: str) -> None:
    write_crate(study)
    content = json.loads((study.folder / METADATA).read_text())
    content["@graph"].append({"@id": uri, "@type": "File", "sha256": "0" * 64})
    (study.folder / METADATA).write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"outside the folder|in it twice"):
        check_crate(study.folder)


def test_metadata_that_are_gone_are_missed(study: StudyPaths) -> None:
    assert check_crate(study.folder) is None
    write_crate(study)
    (study.folder / METADATA).unlink()
    verdict = check_crate(study.folder)
    assert verdict is not None and verdict.missing == [METADATA] and not verdict.holds
    assert verify(study)[0] == 1
    write_crate(study)
    assert check_crate(study.folder).holds


def test_a_crate_made_again_says_what_changed(study: StudyPaths) -> None:
    command = ["crate", str(study.folder)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0 and "since" not in first.output
    assert "since" not in CliRunner().invoke(app, command).output
    (study.folder / "report.html").write_text("cut off")
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0 and "since" in again.output
    assert "report.html" in again.output and "1 changed" in again.output


def test_a_file_without_a_checksum_does_not_pass(study: StudyPaths) -> None:
    write_crate(study)
    path = study.folder / METADATA
    content = json.loads(path.read_text())
    next(entity for entity in content["@graph"] if entity["@id"] == "report.html").pop("sha256")
    path.write_text(json.dumps(content))
    verdict = check_crate(study.folder)
    assert verdict.unsealed == ["report.html"] and not verdict.holds


def test_a_study_that_is_half_done_says_so(study: StudyPaths) -> None:
    cells = {f"train/{path.parent.name}": "f" for path in study.folder.glob("train/*/record.json")}
    plan = {"study": {"name": "small"}, "cells": {**cells, "train/x~00000000": "f"}}
    study.plan.write_text(json.dumps(plan))
    write_crate(study)
    run = graph(study)["#run"]
    assert run["actionStatus"].endswith("FailedActionStatus") and run["error"].startswith("1 more")


def test_the_python_in_its_page_finds_a_change(
    study: StudyPaths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_crate(study)
    code = (study.folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(study.folder)
    exec(code, {})
    assert capsys.readouterr().out == ""
    (study.folder / "report.html").write_text("another")
    exec(code, {})
    assert capsys.readouterr().out == "changed: report.html\n"


def test_a_copy_without_environments_is_held_to_its_files(study: StudyPaths, tmp_path: Path) -> None:
    write_crate(study)
    shutil.copytree(study.folder, tmp_path / "elsewhere/small")
    code, output = verify(StudyPaths(results=tmp_path / "elsewhere", study="small"))
    assert code == 0, output


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transect.domain import inventory

    (tmp_path / "a").write_text("1")

    def read(path: Path) -> str:
        checksum = sha256_file(path)
        path.write_text("grown")
        return checksum

    monkeypatch.setattr(inventory, "sha256_file", read)
    with pytest.raises(BadInput, match="changed while"):
        take_inventory(tmp_path)
