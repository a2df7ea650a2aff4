"""Logs of machine learning disguised, cut, mixed, long and broken."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_logs import DLL, FAIRSEQ, HOROVOD, OLD, ORT, TF, TRAININGS, mlperf, scan

from transect.hpc.base import Run
from transect.hpc.parsers._dl_state import hours, rate_of
from transect.hpc.scan import Scanner


@pytest.mark.parametrize("name", [n for n in TRAININGS if n != "dllogger json"])
def test_two_trainings_in_one_file(name: str) -> None:
    runs = scan(TRAININGS[name] + TRAININGS[name])
    assert len(runs) == 2, [(r.status, r.reason) for r in runs]


def test_no_words_or_unlabelled_rates_count_as_samples() -> None:
    assert rate_of("train_throughput", "") == ("1/s", None)
    assert rate_of("throughput", "tokens/s") == ("tokens/s", None)
    assert rate_of("train.compute_ips", "") == ("1/s", "samples_per_second")
    assert rate_of("loss", "") is None
    assert hours("1 day, 2:00:00.50") == 93600.5 and hours("1:00") is None


# ---- all of them ------------------------------------------------------------------------------

LOGS = {
    "mlperf": mlperf(), "mlperf-0.5": OLD, "hpc": mlperf("cosmoflow", "eval_error", (0.2, 0.1)),
    "tf": TF, "horovod": HOROVOD, "ort": ORT, **TRAININGS,
}  # fmt: skip


def results(runs: list[Run]) -> list[object]:
    return [(r.benchmark, r.status, [(m.name, m.printed) for m in r.metrics]) for r in runs]


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "UTF-16": lambda t: t.encode("utf-16"),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "0: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "noise": lambda t: re.sub(r"(?m)^", "srun: job 1 queued\nslurm: x=1\n", t).encode(),
    "a million characters": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 1_000_000,
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    assert results(scan(DISGUISES[disguise](LOGS[name]))) == results(scan(LOGS[name]))


NUMBERS = re.compile(r"\d:\d\d:[\d.]+|-?[\d.]*\d(?:[eE][-+]?\d+)?")


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_never_yields_a_wrong_number_that_is_ok(name: str) -> None:
    text = LOGS[name]
    # A cut number would be none of these.
    full = {m.printed for run in scan(text) for m in run.metrics} | set(NUMBERS.findall(text))
    for end in range(len(text) // 2, len(text), max(1, len(text) // 200)):
        for run in scan(text[:end]):
            if run.status == "ok":
                found = {m.printed for m in run.metrics if "computed" not in m.name}
                assert found <= full, found - full


def test_mixed_file_keeps_the_order() -> None:
    runs = scan(TF + HOROVOD + ORT + DLL + mlperf() + ORT + FAIRSEQ + HOROVOD)
    assert [r.benchmark for r in runs] == [
        "tf-cnn-benchmarks", "horovod", "onnxruntime-perf-test", "dl-training", "mlperf-training",
        "onnxruntime-perf-test", "dl-training", "horovod",
    ]  # fmt: skip
    assert {r.status for r in runs} == {"ok"}


@pytest.mark.parametrize("name", LOGS)
def test_many_lines_of_one_log_take_little_time_and_memory(name: str) -> None:
    lines = LOGS[name].splitlines()
    text = "\n".join(lines[i % len(lines)] for i in range(6000))
    start = time.process_time()
    runs = scan(text)
    assert time.process_time() - start < 30
    for run in runs:
        assert all(len(series.values) <= 10_000 for series in run.samples.values())
        assert len(run.parameters) < 200 and len(run.metrics) < 200


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(sorted(LOGS)), st.integers(0, 2**32), st.integers(1, 12))
def test_no_mutation_breaks_a_parser(name: str, seed: int, times: int) -> None:
    chance = random.Random(seed)
    lines = LOGS[name].encode().split(b"\n")
    junk = [
        b"nan",
        b"-inf",
        b"1e999",
        b"9" * 400,
        b"{",
        b"'",
        b":::MLLOG {",
        b"\x00\xff",
        b"| ",
        b" : ",
    ]
    for _ in range(times):
        at = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            del lines[at]
            lines = lines or [b""]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            chance.shuffle(lines)
        elif kind == 3:
            lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
        elif kind == 4:
            words = lines[at].split(b" ")
            words[chance.randrange(len(words))] = chance.choice(junk)
            lines[at] = b" ".join(words)
        else:
            lines.insert(at, chance.randbytes(chance.randrange(60)))
    for run in scan(b"\n".join(lines)):
        assert Run.model_validate_json(run.model_dump_json()) == run


FORCED = {
    name: Scanner(name)
    for name in (
        "mlperf-training", "mlperf-hpc", "tf-cnn-benchmarks", "horovod", "dl-training",
        "onnxruntime-perf-test",
    )
}  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(FORCED)),
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.sampled_from(re.findall(r"\S+|\n", "".join(LOGS.values()))), max_size=80).map(
            lambda words: " ".join(words).encode()
        ),
    ),
)
def test_no_input_breaks_a_parser_that_was_named(name: str, raw: bytes) -> None:
    for run in scan(raw, FORCED[name]):
        assert Run.model_validate_json(run.model_dump_json()) == run
