"""What is damaged is made again and named, and nothing else is: records, what they vouch for, limits."""

from __future__ import annotations

import json
import os
import shutil

import pytest

pytestmark = pytest.mark.study

STUDY = """
name: damage
limits: {seconds: 250}
workloads: {iris-mlp-ce: {epochs: 1}, iris-mlp: {epochs: 1, learning_rate: 0.02}}
train:
  repeats: 1
  grids:
    - {workloads: [iris-mlp-ce, iris-mlp], frameworks: [numpy], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [torch], strategies: [single]}
export: {workloads: [iris-mlp-ce], exporters: [torchscript]}
infer:
  max_seconds: 0.1
  grids:
    - {workloads: [iris-mlp-ce], runtimes: [python], exporters: [torchscript]}
ingest: {paths: [logs]}
"""
FILE = "damage.yaml"
FOLDER = "results/damage"


@pytest.fixture(scope="module")
def done(place):
    """A folder in which the study has run once."""
    (place.folder / FILE).write_text(STUDY)
    (place.folder / "logs").mkdir()
    (place.folder / "logs" / "notes.txt").write_text("nothing that a parser knows\n")
    run = place.make(FILE)
    assert run.returncode == 0, run.stderr
    assert {record["status"] for record in place.records("damage").values()} == {"ok"}
    return place


def cell_named(done, prefix: str) -> str:
    """Return the `STAGE/ID` that begins so."""
    (folder,) = (done.folder / FOLDER).glob(f"{prefix}*/")
    return f"{folder.parent.name}/{folder.name}"


def record(done, name: str):
    return done.folder / FOLDER / name / "record.json"


def started(done) -> dict[str, str]:
    return {name: record["started"] for name, record in done.records("damage").items()}


def made_again(done, before: dict[str, str]) -> set[str]:
    after = started(done)
    assert after.keys() == before.keys()
    assert {record["status"] for record in done.records("damage").values()} == {"ok"}
    return {name for name in before if before[name] != after[name]}


def garbled(path) -> None:
    """Exchange a byte, with the same size and the same time stamp."""
    facts, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def damage(done) -> dict[str, str]:
    """Damage four records in four ways; return what is said of each."""
    cut, empty = cell_named(done, "dataset/iris-mlp~"), cell_named(done, "train/iris-mlp.numpy")
    copied, changed = cell_named(done, "infer/iris"), cell_named(done, "ingest/logs")
    path = record(done, cut)
    path.write_bytes(path.read_bytes()[:300])
    record(done, empty).write_bytes(b"")
    shutil.copy(record(done, changed), record(done, copied))
    path = record(done, changed)
    text = path.read_text()
    assert '"started": "20' in text
    path.write_text(text.replace('"started": "20', '"started": "19'))
    return {cut: "300 bytes", empty: "empty", copied: changed, changed: "checksum"}


def test_a_damaged_record_is_named_by_every_command_and_made_again(done):
    before = started(done)
    damaged = damage(done)
    why = done.why(FILE)
    # What takes from them may come out as it was: it is asked again, not thrown away.
    assert {n for n, reasons in why.items() if reasons[0][0] == "damaged"} == set(damaged)
    for name, words in damaged.items():
        assert words in why[name][0][1]
    status = json.loads(done.transect("status", FOLDER, "--json").stdout)
    assert status["others"] == {"unreadable": 4}
    assert {f"{row['stage']}/{row['cell']}" for row in status["cells"]} == set(damaged)
    for row in status["cells"]:
        assert damaged[f"{row['stage']}/{row['cell']}"] in row["message"]
    dry = done.transect("reset", FOLDER, "--dry-run")
    assert dry.returncode == 0 and dry.stdout.count("would delete") == 4
    assert "0 cells" in done.transect("clean", FOLDER, "--dry-run").stdout
    assert done.transect("report", FILE).returncode == 0
    summary = json.loads((done.folder / FOLDER / "summary.json").read_text())
    assert len(summary["unreadable"]) == 4
    verify = done.transect("verify", FILE)
    assert verify.returncode == 1 and "4 of them" in verify.stdout
    strict = done.folder / FOLDER / "strict.ok"
    assert not strict.exists()
    run = done.make(FILE, strict="true")
    assert run.returncode == 0, run.stderr
    assert made_again(done, before | dict.fromkeys(damaged, "")) == set(damaged)
    for name, words in damaged.items():
        (line,) = (text for text in run.stderr.splitlines() if text.startswith(f"[transect] {name}: "))
        assert words in line and "made again" in line
        kept = done.folder / FOLDER / "damaged" / f"{name}.json"
        assert str(kept.relative_to(done.folder)) in line and kept.is_file()
    assert strict.is_file()
    assert done.why(FILE) == {} and done.pending(FILE) == set()
    assert done.transect("verify", FOLDER).returncode == 0


def test_strict_does_not_pass_with_a_record_that_cannot_be_read(done):
    path = record(done, cell_named(done, "ingest/logs"))
    kept = path.read_bytes()
    path.write_bytes(b"")
    summary, stamp = done.folder / FOLDER / "summary.json", done.folder / "strict.ok"
    done.transect("report", FILE)
    argv = ("transect.adapters.snakemake.strict", "--summary", str(summary), "--out", str(stamp))
    checked = done.module(*argv)
    assert checked.returncode == 1 and cell_named(done, "ingest/logs") in checked.stderr and "empty" in checked.stderr
    path.unlink()
    done.transect("report", FILE)
    checked = done.module(*argv)
    assert checked.returncode == 1 and "ingest/logs" in checked.stderr and "no record" in checked.stderr
    path.write_bytes(kept)
    done.transect("report", FILE)
    assert done.module(*argv).returncode == 0


def test_a_disk_that_errs_is_not_the_fault_of_the_cell_that_takes(done):
    data, taker = cell_named(done, "dataset/iris-mlp~"), cell_named(done, "train/iris-mlp.numpy")
    garbled(done.folder / FOLDER / data / "data.npz")
    # As if the file had never been touched: it is older than its record.
    os.utime(record(done, data))
    assert done.why(FILE) == {}
    assert done.transect("run", FILE, taker, "--force").stdout.strip() == "1 skipped"
    made = done.records("damage")[taker]
    assert (made["status"], made["cause"]) == ("skipped", "missing-dependency")
    assert data.split("/")[1] in made["message"] and "data.npz" in made["message"]
    assert data not in done.records("damage")
    run = done.make(FILE, report=False)
    assert run.returncode == 0, run.stderr
    assert {record["status"] for record in done.records("damage").values()} == {"ok"}
    assert done.transect("verify", FOLDER).returncode == 0


def test_what_else_is_cut_is_written_again(done):
    before = started(done)
    folder = done.folder / FOLDER
    (orders,) = (folder / "specs").glob("train/iris-mlp.*.json")
    (stamp,) = (folder / "blocks").glob("train/iris-mlp.*.json")
    stamp.unlink()
    for path in (orders, folder / "summary.json", folder / "plan.json", folder / "specs/flow.json"):
        path.write_bytes(path.read_bytes()[:-40])
    clean = done.transect("clean", FOLDER, "--dry-run")
    assert clean.returncode == 2 and "plan.json" in clean.stderr
    run = done.make(FILE, strict="true")
    assert run.returncode == 0, run.stderr
    assert made_again(done, before) == set()
    for path in (folder / "summary.json", folder / "plan.json", folder / "specs/flow.json"):
        json.loads(path.read_text())
    # As long as it was, and no JSON.
    orders.write_bytes(orders.read_bytes()[:-40] + b"{" * 40)
    stamp.unlink()
    run = done.make(FILE, report=False)
    assert run.returncode != 0 and "no readable block" in run.stderr
    assert done.make(FILE).returncode == 0
    assert made_again(done, before) == set()


def test_another_study_file_of_the_same_name_is_refused(done):
    before = started(done)
    second_file = done.folder / "elsewhere.yaml"
    second_file.write_text(STUDY.replace("0.02", "0.05"))
    for refused in (done.make("elsewhere.yaml"), done.transect("run", "elsewhere.yaml", "train")):
        assert refused.returncode == 2, refused.stderr
        assert "damage.yaml" in refused.stderr and "elsewhere.yaml" in refused.stderr
        assert "another name" in refused.stderr
    assert started(done) == before
