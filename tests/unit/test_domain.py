"""Cells, records, metrics, strict YAML: the words of the project."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from checkouts import ROOT
from transect.domain.cell import CELL_PATTERN, Axis, Cell, OpenCell, axes_of, class_of
from transect.domain.errors import BadInput
from transect.domain.files import digest, write_atomic, write_if_changed
from transect.domain.metrics import METRICS, Direction, Mean, register_metric
from transect.domain.record import (
    Cause,
    MetricValue,
    Record,
    Samples,
    Status,
    raw_record,
    read_record,
    write_record,
)
from transect.domain.study import Section
from transect.planning.stage import STAGES
from transect.stages.train.cell import TrainCell

NAMES = st.text(min_size=1, max_size=20)
TRAIN = {"stage": "train", "workload": "w", "framework": "f", "strategy": "s", "batch": 16}


@given(NAMES, NAMES, NAMES, st.integers(1, 64), st.integers(1, 64), st.integers(0, 9))
def test_any_cell_has_a_safe_id(workload, framework, strategy, nodes, ranks, repeat):
    import re

    cell = Cell.of(
        stage="train",
        workload=workload,
        framework=framework,
        strategy=strategy,
        batch=16,
        nodes=nodes,
        ranks_per_node=ranks,
        repeat=repeat,
    )
    assert re.fullmatch(CELL_PATTERN, cell.id)
    assert cell.id == Cell.of(**cell.axes()).id
    assert cell.ranks == nodes * ranks


def test_a_new_axis_with_a_default_keeps_old_ids():
    class Wider(TrainCell):
        compression: Annotated[str, Axis(place=170)] = "none"

    old = Cell.of(**TRAIN)
    assert Wider(**TRAIN).id == old.id
    wider = Wider(**TRAIN, compression="topk")
    assert wider.id != old.id and ".topk~" in wider.id


def test_a_long_name_still_names_a_folder(tmp_path):
    ids = {TrainCell(workload="w" * length, framework="f", strategy="s", batch=1).id
           for length in (300, 301)}  # fmt: skip
    assert len(ids) == 2
    for cell_id in ids:
        (tmp_path / cell_id).mkdir()


def test_cells_that_differ_have_different_ids():
    ids = {Cell.of(**TRAIN, repeat=r, threads=t).id for r in range(9) for t in (1, 2)}
    assert len(ids) == 18


# Ids from before cells were typed by stage: records that lie in results keep theirs.
OLD_IDS = {
    "iris-mlp.numpy.single.n1x1.b16.fp32~e84b7a6c": {
        "stage": "train", "workload": "iris-mlp", "framework": "numpy", "strategy": "single",
        "batch": 16,
    },
    "digits-cnn.torch.ddp-gloo.n2x3.t2.b64.fp64.sum.linear.synthetic.ib.r2~7d73fc8c": {
        "stage": "train", "workload": "digits-cnn", "framework": "torch", "strategy": "ddp-gloo",
        "batch": 64, "nodes": 2, "ranks_per_node": 3, "threads": 2, "precision": "fp64",
        "network": "ib", "reduce": "sum", "learning_rate_rule": "linear", "input": "synthetic",
        "device": "cuda", "repeat": 2,
    },
    "iris-mlp.numpy.single.n1x1.b16.fp64.s2.sum.r1~ac25b612": {
        "stage": "reference", "workload": "iris-mlp", "framework": "numpy", "strategy": "single",
        "batch": 16, "precision": "fp64", "shards": 2, "reduce": "sum", "repeat": 1,
    },
    "iris-mlp.torch.dynamo.fp32~96cc80f2": {
        "stage": "export", "workload": "iris-mlp", "framework": "torch", "exporter": "dynamo",
    },
    "iris-mlp.torch-eager.cpu.t1.b1.fp32~922e3a9e": {
        "stage": "infer", "workload": "iris-mlp", "runtime": "torch-eager", "provider": "cpu",
        "batch": 1,
    },
    "iris-mlp.dynamo.python.cuda.t2.b8.fp32.r1~bda56f1d": {
        "stage": "infer", "workload": "iris-mlp", "runtime": "python", "provider": "cuda",
        "exporter": "dynamo", "batch": 8, "threads": 2, "repeat": 1,
    },
    "hpl.n1x2.t1.N100.NB8~eab4ea8d": {
        "stage": "bench", "benchmark": "hpl", "options": [["N", 100], ["NB", 8]],
        "ranks_per_node": 2,
    },
    "logs~cc2435f5": {"stage": "ingest", "source": "logs"},
    "iris-mlp~e67a4233": {"stage": "data", "workload": "iris-mlp"},
}  # fmt: skip


@pytest.mark.parametrize("expected", OLD_IDS)
def test_old_ids_survive(expected):
    assert Cell.of(**OLD_IDS[expected]).id == expected


def test_a_record_from_before_cells_were_typed_is_read():
    once = {"exporter": None, "runtime": None, "options": [], "shards": 1, "source": None}
    assert Cell.of(**TRAIN, **once) == Cell.of(**TRAIN)
    with pytest.raises(ValidationError, match="exporter"):
        Cell.of(**TRAIN, exporter="dynamo")


def test_a_cell_of_an_unknown_stage_keeps_its_axes():
    cell = Cell.of(stage="gone", flavour="sweet", threads=2)
    assert isinstance(cell, OpenCell)
    assert (cell.get("flavour"), cell.get("framework"), cell.threads) == ("sweet", None, 2)
    assert Cell.of(**cell.axes()).id == cell.id
    assert Cell.of(stage="gone", flavour="sour", threads=2).id != cell.id


def test_every_axis_of_every_stage_has_its_own_place_in_the_id():
    for stage in STAGES:
        kind = class_of(stage)
        axes = axes_of(kind)
        places = [axis.place for axis in axes.values()]
        assert len(places) == len(set(places)), stage
        assert set(kind.always) <= set(axes), stage
        # A field without an `Axis` would be in no label and no id.
        assert set(kind.model_fields) - set(axes) == {"stage"}, stage


def test_cell_refuses_what_it_does_not_know():
    with pytest.raises(ValidationError, match="rank"):
        Cell.of(**TRAIN, rank=2)
    with pytest.raises(ValidationError, match="nodes"):
        Cell.of(**TRAIN, nodes=0)
    with pytest.raises(ValidationError, match="runtime"):
        Cell.of(**TRAIN, runtime="python")
    with pytest.raises(ValidationError, match="framework"):
        Cell.of(stage="train", workload="w", strategy="s", batch=16)


def record(**changes):
    cell = Cell.of(**TRAIN)
    base = {
        "study": "s",
        "stage": "train",
        "cell": cell,
        "cell_id": cell.id,
        "status": "ok",
        "fingerprint": "f",
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:00:01+00:00",
    }
    return Record.model_validate(base | changes)


def test_record_survives_a_round_trip(tmp_path):
    one = record(
        metrics=[MetricValue.of("step_time", 0.5)],
        samples={"loss": Samples(unit="1", values=[1.0, 0.5], count=2)},
    )
    write_record(tmp_path / "record.json", one)
    read = read_record(tmp_path / "record.json")
    assert read == one.model_copy(update={"checksum": read.checksum})
    assert one.value("step_time") == 0.5
    assert one.value("accuracy") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"cause": "crash"},
        {"status": "failed"},
        {"status": "failed", "cause": "because"},
        {"metrics": [{"name": "x", "value": float("nan"), "unit": "s", "direction": "lower"}]},
    ],
)
def test_record_refuses_contradictions(changes):
    with pytest.raises(ValidationError):
        record(**changes)


def write(path, **changes):
    write_record(path, record(**changes))
    return json.loads(path.read_text())


def test_the_checksum_of_a_record_is_of_its_content_alone(tmp_path):
    path = tmp_path / "record.json"
    content = write(path, details={"µ": [1, 1.0, 1e-8], "b": None}, message="ü\n")
    # As docs/record.md says, with nothing of ours.
    rest = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert content["checksum"] == hashlib.sha256(text.encode("utf-8")).hexdigest()
    # Another layout and order are the same record.
    path.write_text(json.dumps(dict(reversed(content.items())), ensure_ascii=True))
    assert read_record(path).message == "ü\n"


EDITS = {
    "a metric": lambda content: content["metrics"][0].update(value=0.25),
    "a cause": lambda content: content.update(status="failed", cause="crash"),
    "a new key": lambda content: content["details"].update(a=1),
    "a fingerprint": lambda content: content.update(fingerprint="0" * 16),
    "its checksum": lambda content: content.update(checksum="0" * 64),
    "an escape of half a character": lambda content: content.update(message="\ud800"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused(tmp_path, edit):
    path = tmp_path / "record.json"
    content = write(path, metrics=[MetricValue.of("step_time", 0.5)])
    EDITS[edit](content)
    path.write_text(json.dumps(content))
    for read in (read_record, raw_record):
        with pytest.raises(BadInput, match="checksum does not hold"):
            read(path)


def test_a_record_from_before_there_were_checksums_is_read(tmp_path):
    path = tmp_path / "record.json"
    content = write(path)
    for key in ("checksum", "files", "limits"):
        del content[key]
    path.write_text(json.dumps(content))
    assert read_record(path).checksum == ""


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=40), st.integers(0, 10_000))
def test_whatever_stands_in_place_of_a_record_is_refused_by_name(content, length):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.json"
        write(path)
        whole = path.read_bytes()
        for damaged in (content, whole[: length % (len(whole) - 2)], whole[length % 50 + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(BadInput, match=r"record\.json: "):
                read_record(path)
        path.unlink()
        path.mkdir()
        with pytest.raises(BadInput, match=r"record\.json: cannot be read"):
            read_record(path)


def test_a_name_that_is_no_text_costs_no_record(tmp_path):
    write_record(tmp_path / "record.json", record(inputs=["b\udcff 1"], log_tail="\udcfe"))
    read = read_record(tmp_path / "record.json")
    assert (read.inputs, read.log_tail) == (["b? 1"], "?")


def test_failed_record_has_a_cause_of_the_closed_list():
    assert record(status="failed", cause="timeout").cause is Cause.TIMEOUT
    assert record(status="skipped", cause="unsupported").status is Status.SKIPPED


def test_unreadable_record_is_named(tmp_path):
    with pytest.raises(BadInput, match="no such record"):
        read_record(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"study": "s"')
    with pytest.raises(BadInput, match=r"half\.json"):
        read_record(tmp_path / "half.json")


def test_samples_are_in_one_place():
    with pytest.raises(ValidationError):
        Samples(unit="s", count=0)
    with pytest.raises(ValidationError):
        Samples(unit="s", values=[1.0], file="x.npz", count=1)


def test_rates_are_averaged_harmonically_and_times_arithmetically():
    for one in METRICS.values():
        if one.unit.endswith("/s"):
            assert one.mean is Mean.HARMONIC, one.name
        if one.unit == "s":
            assert one.mean is Mean.ARITHMETIC, one.name


def test_a_metric_has_one_meaning():
    with pytest.raises(BadInput, match="step_time"):
        register_metric("step_time", "ms", Direction.LOWER, Mean.ARITHMETIC, "other")
    with pytest.raises(BadInput, match="did you mean 'step_time'"):
        MetricValue.of("step_tim", 1.0)


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_digest_tells_lists_apart(a, b):
    assert (digest(a) == digest(b)) == (a == b)


def test_write_if_changed_keeps_the_time_stamp(tmp_path):
    path = tmp_path / "spec.json"
    assert write_if_changed(path, "a")
    stamp = path.stat().st_mtime_ns
    assert not write_if_changed(path, "a")
    assert path.stat().st_mtime_ns == stamp
    assert write_if_changed(path, "b")


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_atomic(path, "old")

    def refuse(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_study_survives_json():
    from transect.planning.study import study_model

    model = study_model()
    study = model.model_validate({"name": "s", "train": {"grids": []}})
    assert model.model_validate(json.loads(study.model_dump_json())) == study


def test_domain_imports_in_a_bare_framework_environment(base_python):
    code = "import transect.domain.cell, transect.stages.train.worker, transect.measure.provenance"
    run = subprocess.run(
        [base_python, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_a_changed_cell_has_an_id_of_its_own():
    cell = Cell.of(stage="train", workload="w", framework="f", strategy="s", batch=4, repeat=2)
    assert cell.id.endswith(cell.changed(repeat=2).id[-8:])
    first = cell.without_repeat()
    assert first.id == Cell.of(**first.axes()).id != cell.id


def test_a_key_of_a_section_says_what_it_is():
    with pytest.raises(BadInput, match="Silent: key 'count' has no description"):

        class Silent(Section):
            told: int = Field(default=1, description="how many")
            count: int = 1
