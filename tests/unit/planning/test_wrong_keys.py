"""What a study or a system says and nobody reads is refused, with the nearest name, and all of it at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factories import plan_study
from transect.cli.main import app
from transect.domain.errors import BadInput
from transect.domain.paths import ROOT
from transect.domain.strict_yaml import load_yaml
from transect.planning.plan import make_plan
from transect.planning.study import find_system

STUDIES = sorted((ROOT / "config" / "studies").glob("*.yaml"))


def mappings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every mapping."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from mappings(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from mappings(inner, (*path, place))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def spoil(content: Any) -> dict[str, tuple[Any, ...]]:
    """Put a key that nobody knows at each kind of place, in the first entry of a list; return where."""
    kinds: dict[Any, tuple[Any, ...]] = {}
    for path in mappings(content):
        kinds.setdefault(tuple("#" if isinstance(part, int) else part for part in path), path)
    wrong = {f"wrong_{number:03}": path for number, path in enumerate(kinds.values())}
    for name, path in wrong.items():
        at(content, path)[name] = 1
    return wrong


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_wrong_key_is_refused_wherever_it_stands(tmp_path: Path, file: Path) -> None:
    # Without the aliases of YAML: one mapping at several places.
    content = json.loads(json.dumps(load_yaml(file)))
    for corpus in content.get("tickets", {}).get("corpora", {}).values():
        if "path" in corpus:
            corpus["path"] = "tickets.csv"
    (tmp_path / "tickets.csv").write_text("Document,Topic_group\nno ink,Hardware\n")
    wrong = spoil(content)
    system = find_system("virtual-cluster-8" if "cluster" in file.stem else "laptop")
    rounds = 0
    while wrong:
        (tmp_path / "study.yaml").write_text(json.dumps(content))
        with pytest.raises(BadInput) as error:
            make_plan(tmp_path / "study.yaml", system, tmp_path / "results")
        # What is told is mended; a name is looked for once the section in which it stands is whole.
        named = [name for name in wrong if name in str(error.value)]
        assert named, (str(error.value), wrong)
        for name in named:
            del at(content, wrong.pop(name))[name]
        rounds += 1
    assert rounds <= 3


def test_a_wrong_key_of_a_system_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    content = load_yaml(find_system("example-cpu-cluster"))
    wrong = spoil(content)
    (tmp_path / "system.yaml").write_text(json.dumps(content))
    with pytest.raises(BadInput) as error:
        make_plan(STUDIES[0], tmp_path / "system.yaml", tmp_path / "results")
    assert [name for name in wrong if name not in str(error.value)] == []


STUDY = """
name: s
workloads:
  {workloads}
train:
  grids:
    - {{workloads: [iris-mlp, digits-cnn], frameworks: [numpy], strategies: [single]{grid}}}
claims: [{claims}]
{more}
"""


WORK = """
title: A work
short: A
cite: A
hardware: laptop
conditions: {{}}
claims:
  - key: c
    says: c
    where: abstract
    kind: ratio
    published: 2
    rule: {{test: within, factor: 1.25}}
    measured: [{{{measured}}}]
"""
# What a claim is held beside, and the words that say what was meant.
MEASURED = {
    "stage": ("stage: trian, metric: step_time, over: {threads: 1}", "stage 'trian': did you mean 'train'"),
    "metric": ("metric: sample_per_second, over: {threads: 1}", "did you mean 'samples_per_second'"),
    "axis of cells": (
        "stage: corpus, metric: step_time, cells: {corpsu: a}, over: {corpus: b}",
        "did you mean 'corpus'",
    ),
    "axis of over": ("stage: corpus, metric: step_time, over: {corpsu: b}", "did you mean 'corpus'"),
    "axis of equal": ("stage: corpus, metric: step_time, over: {corpus: b}, equal: [corpsu]", "did you mean 'corpus'"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_a_claim_is_held_beside_what_is_there(tmp_path: Path, name: str) -> None:
    measured, words = MEASURED[name]
    (tmp_path / "work.yaml").write_text(WORK.format(measured=f"study: s, {measured}"))
    message = refused(tmp_path, claims="work.yaml")
    assert words in message and "work: claim c" in message and len(message.splitlines()) == 1


def refused(folder: Path, **parts: str) -> str:
    usual = {"workloads": "{}", "grid": "", "claims": "", "more": ""}
    with pytest.raises(BadInput) as error:
        plan_study(folder, STUDY.format(**usual | parts))
    return str(error.value)


# What is given, and the words that say what is wrong and what was meant.
MISTAKES = {
    "no enlarging": ({"workloads": "digits-cnn: {dataset_options: {enlarge: 0}}"}, "from 1 to 64, given 0"),
    "digits too large": (
        {"workloads": "digits-cnn: {dataset_options: {enlarge: 4}}"},
        "(1, 32, 32), the workload takes (1, 8, 8)",
    ),
    "a dataset's option": ({"workloads": "iris-mlp: {dataset_options: {per_clas: 3}}"}, "iris 'per_clas'"),
    "momentum for adamw": (
        {"workloads": "iris-mlp: {optimiser: adamw, momentum: 0.8}"},
        "hyper-parameter of adamw 'momentum'",
    ),
    "a workload that no grid has": ({"workloads": "digits-mlp: {epochs: 2}"}, "of this study's grids 'digits-mlp'"),
    "a device": ({"grid": ", device: gpu"}, "'cpu' or 'cuda', found 'gpu'"),
    "a work": ({"claims": "go-mpii"}, "work 'go-mpii': did you mean 'go-mpi'"),
    "a work named twice": ({"claims": "go-mpi, go-mpi"}, "claims: go-mpi stands there twice"),
    "a file of claims": ({"claims": "mine.yaml"}, "mine.yaml: no such file"),
    "a device of bench": (
        {"more": "bench: {grids: [{benchmarks: [network-probe], device: gpu}]}"},
        "bench.grids.0.device",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_nobody_reads_is_refused(tmp_path: Path, name: str) -> None:
    parts, words = MISTAKES[name]
    message = refused(tmp_path, **parts)
    assert words in message


def test_what_any_cell_reads_is_taken(tmp_path: Path) -> None:
    parts = {"grid": "", "claims": "go-mpi"}
    # A retraining with another optimiser than the workload's own reads what that one takes.
    more = "retrain: {grids: [{workloads: [digits-cnn], runtimes: [python], optimisers: [sgd, adamw], steps: [4]}]}"
    study = STUDY.format(**parts, workloads="digits-cnn: {beta1: 0.8, momentum: 0.5}", more=more)
    study = study.replace("frameworks: [numpy]", "frameworks: [torch]")
    assert plan_study(tmp_path, study).stage("retrain")
    without = study.replace("[sgd, adamw]", "[sgd]")
    with pytest.raises(BadInput, match="hyper-parameter of sgd 'beta1'"):
        plan_study(tmp_path, without)


def test_check_tells_all_at_once(tmp_path: Path) -> None:
    study = STUDY.format(
        workloads="iris-mlp: {dataset_options: {x: 1}, epochs: 0}\n  digits-cnn: {momentum: 2}",
        grid=", precisions: [fp31], memories: [plian]",
        claims="go-mpii, s-cafe",
        more="questions: [{ask: who, answered_by: [training.fastets], shown_in: [spede]}]\nseeds: 1\nlimits: {second: 1}",
    ).replace("[numpy]", "[numpi, troch]")
    (tmp_path / "study.yaml").write_text(study)
    (tmp_path / "system.yaml").write_text("{name: x, node: 3}")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml"), "--system", str(tmp_path / "system.yaml")])
    assert done.exit_code == 2 or isinstance(done.exception, BadInput)
    lines = str(done.exception).splitlines()
    for word in (
        "iris-mlp.epochs",
        "digits-cnn.momentum",
        "'fp31'",
        "'plian'",
        "'numpi'",
        "'troch'",
        "'go-mpii'",
        "'training.fastets'",
        "'spede'",
        "'seeds'",
        "'limits.second'",
        "'node'",
    ):
        assert sum(word in line for line in lines) == 1, (word, lines)
    assert len(lines) == 13


EVERYWHERE = """
name: everywhere
train:
  grids:
    - {workloads: [digits-cn], frameworks: [troch], strategies: [singel], precisions: [fp31, fp30]}
export: {workloads: [digits-cnn], exporters: [dynmo], framework: Keras}
convert: {workloads: [digits-cm], exporters: [dynamoo]}
infer:
  grids:
    - {workloads: [digits-cnm], runtimes: [pythn, cpp], precisions: [int8, fp12], providers: [cpuu]}
retrain:
  rates: {"a b": {factor: 1.0}}
  grids:
    - {workloads: [digits-cnl], runtimes: [rusty, "rust>jss", torch-compile], optimisers: [lion]}
conformance: {runtimes: [rustt, gos], providers: [zz]}
classify:
  models: {m: {kind: foo}}
  grids: [{corpora: [a], splits: [r], embeddings: [q], models: [m], optimisers: [adamx]}]
"""


@pytest.mark.parametrize(
    "more", ["", "tickets: {splits: {r: {train: 2.0}}}"], ids=["read", "another section is unread"]
)
def test_names_are_told_though_what_they_need_is_wrong(tmp_path: Path, more: str) -> None:
    with pytest.raises(BadInput) as caught:
        plan_study(tmp_path, EVERYWHERE + more)
    told = [str(line).split(": ", 1)[1].split(" Known:")[0] for line in caught.value.args]
    for name in (
        *("digits-cn", "troch", "singel", "fp31", "fp30", "dynmo", "Keras", "digits-cm", "dynamoo"),
        *(
            "digits-cnm",
            "pythn",
            "int8",
            "fp12",
            "cpuu",
            "digits-cnl",
            "rusty",
            "jss",
            "lion",
            "rustt",
            "gos",
            "zz",
            "adamx",
        ),
    ):
        assert sum(f"'{name}'" in line for line in told) == 1, (name, told)
    # Nothing is said of what only follows: that nobody trains what they name.
    assert not [line for line in told if "no train grid" in line or "not among" in line]


def test_a_workload_whose_cells_need_a_larger_system_may_be_changed(tmp_path: Path) -> None:
    grid = "}\n    - {workloads: [digits-mlp], frameworks: [numpy], strategies: [single], threads: [4000], where_it_fits: true"
    usual = {"claims": "", "more": "", "workloads": "digits-mlp: {epochs: 2}"}
    assert plan_study(tmp_path, STUDY.format(grid=grid, **usual)).left_out
