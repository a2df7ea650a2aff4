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
    "negative rate": (
        study("workloads: {iris-mlp: {learning_rate: -0.1}}"),
        ["bad.yaml", "workloads.iris-mlp.learning_rate", "greater than 0", "-0.1"],
    ),
    "duplicate key": (study("seed: 1\nseed: 2\n"), ["bad.yaml:4", "'seed'", "twice"]),
    "unknown key": (study("seeds: 1\n"), ["bad.yaml", "'seeds'", "did you mean 'seed'"]),
    "unknown key in a list": (
        study(extra=", rank: [1]"),
        ["bad.yaml", "train.grids.0.rank", "did you mean 'ranks'"],
    ),
    "unknown hyper-parameter": (
        study("workloads: {iris-mlp: {learning_rat: 1}}"),
        ["bad.yaml", "workloads.iris-mlp", "did you mean 'learning_rate'"],
    ),
    "missing data file": (study("ingest: {paths: [no/such/logs]}"), ["bad.yaml", "no/such/logs"]),
    "missing plug-in folder": (study("plugins: [nowhere]"), ["bad.yaml", "plugins", "nowhere"]),
    "empty file": ("", ["bad.yaml", "empty"]),
    "not a mapping": ("- a\n- b\n", ["bad.yaml", "mapping", "list"]),
    "not YAML": ("name: [\n", ["bad.yaml", "not YAML"]),
    "no cells": ("name: bad\n", ["bad.yaml", "no cells"]),
    "name that leaves the folder": (
        study().replace("name: bad", "name: ../bad"),
        ["bad.yaml", "'name'", "../bad"],
    ),
    "export of what nobody trains": (
        study("export: {workloads: [iris-mlp], exporters: [dynamo]}"),
        ["bad.yaml", "export.workloads", "iris-mlp", "torch"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_check_and_run_give_the_same_clear_message(checkout, name):
    text, expected = CASES[name]
    (checkout.folder / "bad.yaml").write_text(text)
    checked = checkout.transect("check", "bad.yaml")
    ran = checkout.snakemake("--config", "study=bad.yaml")
    assert (checked.returncode, ran.returncode) == (2, 2)
    # Without what Snakemake says of its own profile.
    lines = ran.stderr.splitlines()
    ours = [line for line in lines if line.startswith("transect:") or "profile" not in line]
    assert checked.stderr.splitlines() == ours
    for part in expected:
        assert part in checked.stderr
    assert "Traceback" not in checked.stderr + ran.stderr
    assert not (checkout.folder / "results" / "bad").exists()


def test_missing_study_is_named(checkout):
    run = checkout.snakemake("--config", "study=nosuch")
    assert run.returncode == 2
    assert "nosuch.yaml: no such file" in run.stderr


def test_unknown_config_key_is_named(checkout):
    run = checkout.snakemake("--config", "studdy=quick")
    assert run.returncode == 2
    assert "unknown key 'studdy'" in run.stderr


UNUSABLE = {
    "braces": ("re{s}ults", "braces"),
    "a file": ("bad.yaml", "not a folder"),
    "no place for a folder": ("/proc/results", "cannot be written"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_results_that_cannot_be_used_are_told_although_snakemake_is_quiet(checkout, name):
    results, expected = UNUSABLE[name]
    (checkout.folder / "bad.yaml").write_text(study())
    run = checkout.snakemake("--config", "study=bad.yaml", f"results='{results}'")
    assert run.returncode == 2, run.stderr
    assert expected in run.stderr and results in run.stderr
    assert "Traceback" not in run.stderr


def test_unreadable_log_is_an_error_that_names_it(checkout):
    told = checkout.transect("ingest", "no-such.log")
    assert told.returncode == 2
    assert "no-such.log" in told.stderr
