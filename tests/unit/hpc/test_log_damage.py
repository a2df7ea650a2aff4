"""Whole logs of all benchmarks disguised, doubled and cut: `make test` takes a few of each, `make test-all` all."""

from __future__ import annotations

import re

import pytest
from compute_logs import CHIEF
from log_scan import results, scan, values
from whole_logs import DISGUISES, LOGS, chosen

from transect.hpc.base import Run

EVERY = pytest.mark.exhaustive
# With `srun` a log's last line ends; without, a result that it may have cut is none in these.
NEEDS_ITS_LAST_END = {
    "io500 bash",
    "ior csv",
    "hpl-mxp old reference",
    "babelstream triad",
    "stream microsoft",
    "superbench",
    "graph500",
    "hpl-mxp riken",
    "hpcg 2017",
    "hpcg amd",
    "babelstream csv",
    "minibude kernel",
    "horovod",
    "onnxruntime-perf-test",
    "dllogger",
    "dllogger units",
    "dllogger json",
    "neuron",
    "mxnet gluon",
    "tensorflow",
    "fairseq",
    "fairseq json",
    "megatron",
    "deepspeed",
    "dl-training fsdp",
    "nvbandwidth",
}


def disguises(name: str) -> list[str]:
    """Return the disguises in which a log says the same."""
    return [
        disguise
        for disguise in DISGUISES
        if (disguise != "no line end" or name not in NEEDS_ITS_LAST_END)
        # Its rows of statistics are those that begin with blanks.
        and (name, disguise) != ("graph500", "indented")
    ]


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log_is_ok(name: str) -> None:
    log = LOGS[name]
    runs = scan(log.text)
    assert [(run.benchmark, run.status) for run in runs] == [(log.benchmark, "ok")] * log.runs
    if log.rate:
        chief = runs[0].metric(CHIEF.get(log.benchmark, "gflops"))
        assert chief is not None and chief.printed == log.rate and chief.normalised is not None
    for run in runs:
        assert any(metric.normalised is not None for metric in run.metrics)
        assert Run.model_validate_json(run.model_dump_json()) == run


# Two of each log, one behind the other, in which all are; the others only in `make test-all`.
FEW = {
    (name, way) for place, name in enumerate(LOGS) for way in (2 * disguises(name))[2 * place % len(DISGUISES) :][:2]
}


@pytest.mark.parametrize(
    ("name", "disguise"),
    [pytest.param(name, way, marks=() if (name, way) in FEW else EVERY) for name in LOGS for way in disguises(name)],
)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    text = LOGS[name].text
    assert results(scan(DISGUISES[disguise](text))) == results(scan(text))


def test_every_disguise_is_among_the_few() -> None:
    assert {disguise for _, disguise in FEW} == set(DISGUISES)


def test_a_cut_row_behind_whole_ones_is_told() -> None:
    text = LOGS["minibude csv"].text
    rows = text.splitlines(keepends=True)
    last = max(place for place, row in enumerate(rows) if row.count(",") > 5 and row[0].isdigit())
    whole = scan("".join(rows[: last + 1]))
    cut = scan("".join(rows[:last]) + rows[last].rstrip()[:-2])
    assert [run.status for run in whole] == ["ok"] * len(whole)
    assert [run.status for run in cut] == ["ok"] * (len(whole) - 1) + ["truncated"]


@pytest.mark.parametrize("between", ["", "Done\n", "\nunrelated\n"])
@pytest.mark.parametrize("name", [name for name in LOGS if name != "dllogger json"])
def test_the_same_log_twice_is_two_runs(name: str, between: str) -> None:
    text = LOGS[name].text
    runs = scan(text + between + text)
    assert results(runs) == results(scan(text)) * 2
    assert [run.line for run in runs] == sorted({run.line for run in runs})


# IOR's rows are all there, and what it sums up below them is not: IO500 never prints it.
ROWS_ALONE = "its rows alone, no summary and no 'Finished': as IO500 runs IOR"
# A result stands before the log ends and others follow: a table of times behind that of rates, one rate an
# epoch, a summary behind a row. What a cut log says is then a part of what the whole one says...
GROWS = {
    "mdtest 3.3.0 times",
    "mdtest 4.1.0 times",
    "hpcg",
    "hpcg yaml",
    "minibude",
    "minibude csv",
    "minibude v1",
    "osu",
    "onnxruntime-perf-test",
    "mxnet gluon",
    "tensorflow",
    "nvidia-bert-tensorflow",
    "perftest",
    "perftest latency",
    "nvbandwidth",
    "mlperf-inference",
    "superbench",
}
# ... or a mean over fewer lines, a line of Intel's build with one digit more, a table that says nowhere that it ends.
CHANGES = {"ior csv", "hpcg intel", "mxnet", "deepspeed", "hf-trainer"}
# Another table or run begins behind a whole one.
BEGINS_AGAIN = {"mdtest 3.3.0 times", "mdtest 4.1.0 times", "osu", "nvbandwidth", "superbench"}


def check_lines(name: str, some: int | None) -> None:
    """Cut behind lines: nothing is ok before its result is complete, and what is ok stays so."""
    text = LOGS[name].text
    lines = text.splitlines(keepends=True)
    runs = scan(text)
    whole, all_values = results(runs), {value for run in runs for value in values(run)}
    seen_ok = False
    ends = list(range(1, len(lines)))
    for end in ends if some is None else chosen(name, ends, some):
        runs = scan("".join(lines[:end]))
        # The last of several numbers of which each one is a result.
        if any(ROWS_ALONE in run.suspicions for run in runs) or "stddev_TEPS" in lines[end - 1]:
            continue
        found = {value for run in runs if run.status == "ok" for value in values(run)}
        assert found <= all_values or name in CHANGES, lines[end - 1]
        assert {run.status.value for run in runs} <= {"ok", "truncated", "no-result"}
        if all(run.status == "ok" for run in runs):
            seen_ok = True
            assert results(runs) == whole or name in GROWS | CHANGES, lines[end - 1]
        else:
            assert not seen_ok or name in BEGINS_AGAIN, (end, runs[-1].reason)


NUMBERS = re.compile(r"\d:\d\d:[\d.]+|-?[\d.]*\d(?:[eE][-+]?\d+)?")
# The last number of these has a digit less when the last line is cut, and still fits what the rest says.
ENDS_IN_A_NUMBER = {"io500 bash", "babelstream mojo", "osu"}
# What an unfinished run of these has measured so far is not what it says in the end.
SO_FAR = CHANGES | {
    "stream",
    "ior 3.0.1",
    "ior 3.2.1",
    "ior 3.3.0",
    "ior 4.1.0",
    "ior json",
    "babelstream mojo",
    "mlperf",
    "mlperf 0.5",
    "mlperf 0.6",
    "mlperf hpc",
    "tf-cnn-benchmarks",
    "dllogger",
    "dllogger units",
    "dllogger json",
    "neuron",
    "tensorflow",
    "nvidia-bert-tensorflow",
    "fairseq",
    "megatron",
    "gpu-burn",
    "superbench",
    "dl-training torchtitan",
    "dl-training fsdp",
}


def check_bytes(name: str, some: int | None) -> None:
    """Cut within lines: no number is read that the whole log does not print."""
    text = LOGS[name].text
    whole = {value for run in scan(text) for value in values(run)}
    printed = {value[-1] for value in whole} | set(NUMBERS.findall(text))
    last = text.rstrip("\n").rfind("\n") + 1 if name in ENDS_IN_A_NUMBER else len(text)
    ends = list(range(last))
    for end in ends if some is None else chosen(name, ends, some):
        for run in scan(text[:end]):
            found = set(values(run))
            if ROWS_ALONE in run.suspicions:
                best = run.metrics[0]
                near = {value[-1] for value in whole if value[:2] == ("bandwidth_max", best.phase)}
                assert any(abs(float(text) / best.value - 1) < 1e-3 for text in near)
                continue
            if run.status == "ok" or name not in ("stream", "babelstream mojo"):
                assert {value[-1] for value in found if "computed" not in value[0]} <= printed, end
            if name not in (CHANGES if run.status == "ok" else SO_FAR):
                assert found <= whole, text[:end][-60:]


@pytest.mark.parametrize("some", [25, pytest.param(None, marks=EVERY)])
@pytest.mark.parametrize("name", LOGS)
def test_a_cut_log_is_never_ok_too_soon_nor_yields_a_wrong_number(name: str, some: int | None) -> None:
    """Cut behind lines and at bytes: at some places of each log, or at all."""
    check_lines(name, some)
    check_bytes(name, some)
