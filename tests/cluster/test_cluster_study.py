"""A study on a real Slurm: what is submitted, what runs, and what runs again after an edit."""

from __future__ import annotations

import re
import shlex

import pytest

from clustered import nothing_left, waits_made

STUDY = """
name: onslurm
plugins: [plugins]
limits: {seconds: 300, memory_mb: 1500, repeats_if_disturbed: 0}
workloads: {iris-mlp-ce: {epochs: 2, learning_rate: 0.02}}
train:
  repeats: 2
  grids:
    - {workloads: [iris-mlp-ce], frameworks: [numpy, test-edited], strategies: [single]}
    - {workloads: [iris-mlp-ce], frameworks: [numpy], strategies: [mpi-allreduce], nodes: [1, 2],
       ranks: [1, 2]}
    - {workloads: [iris-mlp-ce], frameworks: [test-sees-gpu], strategies: [mpi-allreduce],
       ranks: [2], device: cuda}
bench:
  grids: [{benchmarks: [network-probe], nodes: [2], networks: [direct]}]
ingest: {paths: [config/studies/quick-logs]}
"""
CONFIG = ("--config", "study=study.yaml", "system=virtual-cluster")
# What each shape of job asks Slurm for, apart from names of files: an update of the executor
# plug-in that changes one of these changes what users are billed for.
COMMON = (
    "--parsable --job-name NAME --output FILE --export=ALL --comment rule_{rule} -p {partition} "
    "-t {minutes} --mem 4000 --nodes={nodes} --no-requeue"
)
GOLDEN = {
    "prepare_wildcards_n1": COMMON.format(rule="prepare_wildcards_n1", partition="cpu", minutes=18, nodes=1)
    + " --ntasks=1 --cpus-per-task=1 --ntasks-per-node=1 -D FILE",
    "train_wildcards_iris-mlp-ce.n1": COMMON.format(
        rule="train_wildcards_iris-mlp-ce.n1", partition="cpu", minutes=43, nodes=1
    )
    + " --ntasks=1 --cpus-per-task=2 --ntasks-per-node=1 -D FILE",
    "train_wildcards_iris-mlp-ce.n2": COMMON.format(
        rule="train_wildcards_iris-mlp-ce.n2", partition="cpu", minutes=23, nodes=2
    )
    + " --ntasks=2 --cpus-per-task=2 --ntasks-per-node=1 -D FILE",
    "train_gpu_wildcards_iris-mlp-ce.n1.g2": COMMON.format(
        rule="train_gpu_wildcards_iris-mlp-ce.n1.g2", partition="gpu", minutes=13, nodes=1
    )
    + " --cpus-per-task=2 --ntasks-per-node=1 -D FILE --gres=gpu:fake:2",
    "bench_wildcards_n2": COMMON.format(rule="bench_wildcards_n2", partition="cpu", minutes=8, nodes=2)
    + " --ntasks=2 --cpus-per-task=1 --ntasks-per-node=1 -D FILE",
}


def study(make):
    """Return a checkout in which the study has run once, and what that run printed."""
    checkout = waits_made(make)
    checkout.study(STUDY)
    return checkout, checkout.start(*CONFIG).ends()


pytestmark = [pytest.mark.cluster, pytest.mark.beside.with_args(study)]


def submissions(checkout) -> dict[str, str]:
    """Return what was asked of sbatch, by rule, without what differs from run to run."""
    found = {}
    for words in checkout.submissions():
        words = words[: next(i for i, word in enumerate(words) if word.startswith("--wrap"))]
        for flag in ("--output", "-D"):
            words[words.index(flag) + 1] = "FILE"
        rule = words[words.index("--comment") + 1].removeprefix("rule_")
        name = words.index("--job-name") + 1
        assert re.fullmatch(rf"{rule.partition('_wildcards')[0]}\.onslurm\.[0-9a-f]{{8}}", words[name])
        words[name] = "NAME"
        found[rule] = shlex.join(words)
    return found


def started(checkout) -> dict[str, str]:
    return {cell: record["started"] for cell, record in checkout.records("onslurm").items()}


def test_every_cell_runs_where_it_asks_to(ran):
    checkout, _ = ran
    records = checkout.records("onslurm")
    bad = {cell: r["message"] for cell, r in records.items() if r["status"] != "ok"}
    assert not bad
    assert len(records) == 1 + 2 + 2 * (2 + 4 + 1) + 1 + 1
    two = records["train/iris-mlp-ce.numpy.mpi-allreduce.n2x2.b16.fp32"]
    assert len({node["host"] for node in two["provenance"]["guard_after"]}) == 2
    assert re.fullmatch(r"n\[\d+[,-]\d+\]", two["provenance"]["slurm"]["SLURM_JOB_NODELIST"])
    assert two["provenance"]["guard_before"][0]["memory_total_bytes"] > 2**28
    assert records["ingest/quick-logs"]["provenance"]["host"] == "login"
    assert {metric["name"]: metric["value"] for metric in two["metrics"]}["equality_ratio"] < 1
    assert two["details"]["over_subscribed"], "four ranks share this machine's two cores"
    nothing_left(checkout)
    assert not list((checkout.folder / "results" / ".transect").rglob("*.json"))


def test_submissions_are_what_they_were(ran):
    checkout, _ = ran
    assert submissions(checkout) == GOLDEN


def test_a_gpu_cell_gives_each_rank_its_own_device(ran):
    checkout, _ = ran
    logs = list((checkout.folder / "results/onslurm/train").glob("*test-sees-gpu*~*/output.log"))
    assert len(logs) == 2
    for log in logs:
        seen = sorted(line.split()[1:] for line in log.read_text().splitlines() if "SEEN" in line)
        assert seen == [["0", "0"], ["1", "1"]]


def test_nothing_runs_twice(ran):
    checkout, _ = ran
    jobs = len(checkout.submissions())
    text = checkout.start(*CONFIG).ends()
    assert "Finished jobid" not in text
    assert len(checkout.submissions()) == jobs


def test_what_was_edited_or_deleted_runs_again_alone(ran):
    """A framework's file, a parser and a record: what each concerns, and no other cell of its block."""
    checkout, _ = ran
    # Both test frameworks of that file.
    path = checkout.folder / "plugins" / "cluster_frameworks.py"
    path.write_text(path.read_text().replace("_EDITED = 0", "_EDITED = 1"))
    # A log may be any benchmark's; the benchmark that ran here prints another one's.
    parser = checkout.folder / "src/transect/hpc/parsers/hpl.py"
    parser.write_text(parser.read_text() + "\n# edited\n")
    before = started(checkout)
    (record,) = (checkout.folder / "results/onslurm/train").glob("*numpy.single*fp32~*/record.json")
    record.unlink()
    checkout.start(*CONFIG).ends()
    after = started(checkout)
    assert after.keys() == before.keys()
    assert {cell for cell in after if after[cell] != before[cell]} == {
        "train/iris-mlp-ce.test-edited.single.n1x1.b16.fp32",
        "train/iris-mlp-ce.test-edited.single.n1x1.b16.fp32.r1",
        "train/iris-mlp-ce.test-sees-gpu.mpi-allreduce.n1x2.b16.fp32",
        "train/iris-mlp-ce.test-sees-gpu.mpi-allreduce.n1x2.b16.fp32.r1",
        "train/iris-mlp-ce.numpy.single.n1x1.b16.fp32",
        "ingest/quick-logs",
    }


def test_an_edited_pin_makes_the_environment_and_all_its_blocks_stale(ran):
    checkout, _ = ran
    path = checkout.folder / "envs/base/requirements.txt"
    kept = path.read_text()
    path.write_text(kept.replace("numpy==", "# a pin\nnumpy=="))
    text = checkout.start(*CONFIG, "-n").ends()
    path.write_text(kept)
    wanted = {"make_environment": 1, "prepare": 1, "train": 2, "train_gpu": 1, "bench": 1}
    jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", text, re.M)}
    assert wanted.items() <= jobs.items()
    assert "ingest" not in jobs
    why = re.findall(r"^\[transect\] (\w+): (\d+) cells .*: (\d+ \w+)$", text, re.M)
    assert {("dataset", "1", "1 environment"), ("train", "14", "14 input")} <= set(why), text


def test_an_edited_report_and_longer_jobs_submit_none(ran):
    checkout, _ = ran
    report, jobs = checkout.folder / "results/onslurm/report.html", len(checkout.submissions())
    old, before = report.stat().st_mtime_ns, started(checkout)
    style = next((checkout.folder / "src/transect/report/engine/templates").glob("*.css"))
    style.write_text(style.read_text() + "\n/* edited */\n")
    # More minutes for each job: the queue is none of a cell's business.
    path = checkout.folder / "config/systems/virtual-cluster.yaml"
    path.write_text(path.read_text().replace("overhead_minutes: 2", "overhead_minutes: 3"))
    checkout.start(*CONFIG).ends()
    assert started(checkout) == before
    assert report.stat().st_mtime_ns > old
    assert len(checkout.submissions()) == jobs


def test_progress_is_told_and_the_report_shows_nodes_and_communication(ran):
    checkout, text = ran
    assert "[transect] ok      iris-mlp-ce.numpy.mpi-allreduce.n2x2.b16.fp32" in text
    assert "19/19" in text and "0 failed" in text
    page = (checkout.folder / "results/onslurm/report.html").read_text()
    assert 'id="communication"' in page and "2x2 ranks" in page and "alpha-beta" in page
