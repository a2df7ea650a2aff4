"""Logs of benchmarks of networks disguised, cut, long and broken."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_logs import (
    GRAPH500,
    IMB_ALLREDUCE,
    IMB_END,
    IMB_HEAD,
    IMB_PINGPONG,
    NCCL,
    NPB,
    OSU_ALLREDUCE,
    OSU_BARRIER,
    OSU_BW,
    OSU_IALLREDUCE,
    OSU_LATENCY,
    OSU_MBW_MR,
    SCANNER,
    imb_rows,
    scan,
)

from transect.hpc.base import PARSERS, Run
from transect.hpc.scan import Scanner

OSU = OSU_LATENCY + OSU_BW + OSU_ALLREDUCE + OSU_IALLREDUCE + OSU_MBW_MR + OSU_BARRIER


IMB_BARRIER = (
    "#---------------------------------------------------\n# Benchmarking Barrier \n"
    "# #processes = 4 \n#---------------------------------------------------\n"
    " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    + imb_rows([(1000, "3.10", "3.30", "3.20")])
)


IMB = IMB_HEAD + IMB_PINGPONG + IMB_ALLREDUCE + IMB_BARRIER + IMB_END


LOGS = {"osu": OSU, "imb": IMB, "nccl-tests": NCCL, "graph500": GRAPH500, "npb": NPB}


COUNT = {"osu": 6, "imb": 3, "nccl-tests": 1, "graph500": 1, "npb": 1}


def results(runs: list[Run]) -> list[object]:
    return [
        (r.benchmark, r.status, [(m.name, m.size, m.phase, m.printed) for m in r.metrics])
        for r in runs
    ]


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log_is_ok(name: str) -> None:
    runs = scan(LOGS[name])
    assert {(r.benchmark, r.status.value) for r in runs} == {(name, "ok")}, [r.reason for r in runs]
    assert len(runs) == COUNT[name]
    assert all(any(m.normalised for m in r.metrics) for r in runs)


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "3: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "noise": lambda t: re.sub(
        r"(?m)^", "srun: job 1 queued\nn1:12:12 [0] NCCL INFO x=1\n", t
    ).encode(),
    "a long line": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 1_000_000,
    "no line end": lambda t: t.rstrip("\n").encode(),
    "an error before": lambda t: b"srun: error: n1: task 0: Killed\n" + t.encode(),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    assert results(scan(DISGUISES[disguise](LOGS[name]))) == results(scan(LOGS[name]))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_never_yields_a_wrong_number(name: str) -> None:
    text = LOGS[name]
    full = {m.printed for run in scan(text) for m in run.metrics}
    for end in range(20, len(text), max(1, len(text) // 500)):
        for run in scan(text[:end]):
            if run.benchmark == name:
                assert {m.printed for m in run.metrics} <= full, text[:end][-60:]


@pytest.mark.parametrize("name", ["nccl-tests", "npb", "graph500"])
def test_a_log_cut_after_any_line_is_ok_only_when_its_result_is_complete(name: str) -> None:
    lines = LOGS[name].splitlines(keepends=True)
    whole = results(scan(LOGS[name]))
    for end in range(1, len(lines)):
        runs = scan("".join(lines[:end]))
        if any(r.status == "ok" for r in runs) and "stddev_TEPS" not in lines[end - 1]:
            assert results(runs) == whole, lines[end - 1]


def test_several_benchmarks_in_one_file() -> None:
    runs = scan(NPB + OSU_BW + GRAPH500 + IMB + NCCL + OSU_LATENCY)
    assert [r.benchmark for r in runs] == [
        "npb",
        "osu",
        "graph500",
        *["imb"] * 3,
        "nccl-tests",
        "osu",
    ]
    assert {r.status for r in runs} == {"ok"}


@pytest.mark.parametrize("name", LOGS)
def test_patterns_are_specific(name: str) -> None:
    parser = PARSERS.get(name)
    for pattern in (*parser.starts, *(parser.wants or ())):
        assert re.compile(pattern).groups == 0 and not re.compile(pattern).match("")
    for other, text in LOGS.items():
        if other != name:
            assert name not in {r.benchmark for r in scan(text)}


NCCL_ROWS = NCCL[NCCL.index("     1048576") : NCCL.index("# Out of")]


FLOODS = {
    "osu": "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n" + "1 1.00\n2 1.10\n" * 40,
    "imb": "# Benchmarking PingPong\n       #bytes #repetitions      t[usec]   Mbytes/sec\n"
    + "1 2 3 4\n" * 80,
    "nccl-tests": "# Collective test starting: x_perf\n" * 40 + NCCL_ROWS,
    "graph500": "SCALE: 9\nRunning BFS 0\n" * 40,
    "npb": " MG Benchmark Completed.\n Class           =    A\n" * 40,
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_broken_output_is_streamed(name: str) -> None:
    for run in SCANNER.scan(io.BytesIO(FLOODS[name].encode() * 100), "log"):
        assert run.benchmark == name and "fault of the parser" not in run.reason
        assert len(run.metrics) < 20_000 and len(run.warnings) < 20


def test_labels_of_a_million_ranks_do_not_stay_open() -> None:
    noise = "".join(f"{i}: 12 3.5\n" for i in range(20_000))
    for name, log in (("osu", OSU_LATENCY), ("imb", IMB), ("nccl-tests", NCCL)):
        runs = [r for r in scan(log + noise) if r.benchmark == name]
        assert results(runs) == results(scan(log))


def test_a_table_of_a_million_rows_keeps_few() -> None:
    text = OSU_LATENCY + "".join(f"{s:<10}{'1.50':>18}\n" for s in range(5_000_000, 5_100_000))
    (run,) = scan(text)
    assert len(run.metrics) < 5000 and "not kept" in " ".join(run.warnings)


TOKENS = st.sampled_from(
    [w for t in LOGS.values() for w in re.findall(r"\S+|\n", t)]
    + [
        "\n",
        "\r",
        "\0",
        "9" * 400,
        "1e999",
        "-nan",
        "1e-9999",
        "é",
        "0: ",
        "², ½",
        "١٢",
        "-1 -1 -1",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    text = LOGS[draw(st.sampled_from(sorted(LOGS)))]
    lines = text.splitlines(keepends=True)
    rng = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(0, 6))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(4):
            case 0:
                del lines[min(i, j) : min(i, j) + rng.randrange(1, 5)]
            case 1:
                lines.insert(i, lines[j])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
        if not lines:
            lines = ["\n"]
    raw = bytearray("".join(lines).encode())
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(raw)))
        raw[start : start + draw(st.integers(0, 30))] = draw(
            st.one_of(st.binary(max_size=15), TOKENS.map(str.encode))
        )
    return bytes(raw)


FORCED = {name: Scanner(name) for name in LOGS}


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(mutated(), st.lists(TOKENS, max_size=60).map(lambda ws: " ".join(ws).encode())),
    st.sampled_from([None, *LOGS]),
)
def test_no_input_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    for run in scan(raw, SCANNER if benchmark is None else FORCED[benchmark]):
        assert Run.model_validate_json(run.model_dump_json()) == run
