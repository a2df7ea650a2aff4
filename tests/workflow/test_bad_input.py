"""Bad input: one clear message naming file, key, value and expectation; exit 2; nothing written."""

from __future__ import annotations

import pytest

GRID = "{workloads: [iris-mlp], frameworks: [numpy], strategies: [single]%s}"


def study(body: str = "", extra: str = "") -> str:
    return f"name: bad\ntrain: {{repeats: 1, grids: [{GRID % extra}]}}\n{body}"


CASES = {
    "unknown framework, nearest named": (
        study().replace("numpy", "nunpy"),
        ["bad.yaml", "train.grids.0.frameworks", "nunpy", "did you mean 'numpy'"],
    ),
    "ranks of 0": (
        study(extra=", ranks: [0]"),
        ["bad.yaml", "train.grids.0.ranks.0", "greater than or equal to 1", "0"],
    ),
    "missing data file": (study("ingest: {paths: [no/such/logs]}"), ["bad.yaml", "no/such/logs"]),
    "missing plug-in folder": (study("plugins: [nowhere]"), ["bad.yaml", "plugins", "nowhere"]),
    "empty file": ("", ["bad.yaml", "empty"]),
    "not a mapping": ("- a\n- b\n", ["bad.yaml", "mapping", "list"]),
    "not YAML": ("name: [\n", ["bad.yaml:2"]),
    "a NUL byte": ("name: odd\n\0", ["bad.yaml: cannot be read as YAML"]),
    "no cells": ("name: bad\n", ["bad.yaml", "no cells"]),
    "name that leaves the folder": (study().replace("name: bad", "name: ../bad"), ["bad.yaml", "'name'", "../bad"]),
    "export of what nobody trains": (
        study("export: {workloads: [iris-mlp], exporters: [dynamo]}"),
        ["bad.yaml", "export.workloads", "iris-mlp", "torch"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_check_and_run_give_the_same_clear_message(place, name):
    text, expected = CASES[name]
    (place.folder / "bad.yaml").write_text(text)
    checked, ran = place.transect("check", "bad.yaml"), place.make("bad.yaml")
    assert (checked.returncode, ran.returncode) == (2, 2)
    assert checked.stderr == ran.stderr
    for part in expected:
        assert part in checked.stderr
    assert "Traceback" not in checked.stderr
    assert not (place.folder / "results" / "bad").exists()


@pytest.mark.parametrize(
    ("study", "more", "message"),
    [
        ("qiuck", {}, "unknown study 'qiuck': did you mean 'quick'? Known: "),
        ("qiuck.yaml", {}, "qiuck.yaml: no such file"),
        ("quick", {"studdy": "quick"}, "unknown key 'studdy'"),
    ],
)
def test_a_missing_study_or_an_unknown_key_is_named(place, study, more, message):
    run = place.make(study, **more)
    assert run.returncode == 2 and message in run.stderr


UNUSABLE = {
    "a number": (17, "'results': expected one line of text, found"),
    "an escape": ("a\x1b[31m", "expected one line of text"),
    "braces": ("re{s}ults", "braces"),
    "a file": ("bad.yaml", "Not a directory"),
    "a study's folder that is a file": ("taken", "Not a directory: 'taken/bad'"),
    "no place for a folder": ("/proc/results", "cannot be written"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_results_that_cannot_be_used_are_told(place, name):
    results, expected = UNUSABLE[name]
    (place.folder / "taken").mkdir(exist_ok=True)
    (place.folder / "taken/bad").write_text("a file")
    (place.folder / "bad.yaml").write_text(study())
    run = place.make("bad.yaml", results=results)
    assert run.returncode == 2, run.stderr
    assert expected in run.stderr and "Traceback" not in run.stderr and "\x1b" not in run.stderr
