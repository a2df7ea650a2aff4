"""Logs of benchmarks of storage disguised, cut, doubled, long and broken."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storage_logs import LOGS, SCANNER, no_fault, results, scan

from transect.hpc.base import Run
from transect.hpc.scan import Scanner

# IOR's rows are all there, and what it sums up below them is not: IO500 never prints it.
ROWS_ALONE = "its rows alone, no summary and no 'Finished': as IO500 runs IOR"
FORCED = {name: Scanner(name) for name in ("io500", "ior", "mdtest")}


@pytest.mark.parametrize("name", LOGS)
def test_a_whole_log_is_one_ok_run(name: str) -> None:
    (run,) = no_fault(scan(LOGS[name]))
    assert (run.benchmark, run.status, run.reason) == (name.split()[0], "ok", "")
    assert any(m.normalised is not None for m in run.metrics)
    assert Run.model_validate_json(run.model_dump_json()) == run


DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "3: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "an error before": lambda t: b"srun: error: n7: task 3: Killed\n" + t.encode(),
    "a long line": lambda t: b"x" * 1_000_000 + b"\n" + t.encode(),
    "indented": lambda t: re.sub(r"(?m)^", "\t", t).encode(),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    runs = no_fault(scan(DISGUISES[disguise](LOGS[name])))
    assert results(runs) == results(scan(LOGS[name]))


@pytest.mark.parametrize("name", [n for n in LOGS if "json" not in n])
def test_noise_between_lines_changes_nothing(name: str) -> None:
    noisy = re.sub(r"(?m)^", "srun: job 7 queued\nslurmstepd: info: x\n", LOGS[name])
    assert results(no_fault(scan(noisy))) == results(scan(LOGS[name]))


# A table of times may follow the table of rates, and CSV says nowhere that it ends.
@pytest.mark.parametrize("name", [n for n in LOGS if "times" not in n and "csv" not in n])
def test_a_log_cut_after_any_line_is_never_ok_before_its_result_is_complete(name: str) -> None:
    lines = LOGS[name].splitlines(keepends=True)
    whole = results(scan(LOGS[name]))
    seen_ok = False
    for end in range(1, len(lines)):
        runs = no_fault(scan("".join(lines[:end])))
        if any(ROWS_ALONE in run.suspicions for run in runs):
            continue
        if all(run.status == "ok" for run in runs):
            seen_ok = True
            assert results(runs) == whole
        else:
            assert not seen_ok, f"ok became {runs[-1].status} at line {end}"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_never_yields_a_wrong_number(name: str) -> None:
    text = LOGS[name]
    full = {(m.phase, m.name, m.printed) for run in scan(text) for m in run.metrics}
    for end in range(0, len(text), max(1, len(text) // 500)):
        for run in no_fault(scan(text[:end])):
            if ROWS_ALONE in run.suspicions:
                best = run.metrics[0]
                near = {v for p, n, v in full if (p, n) == (best.phase, "bandwidth_max")}
                assert any(abs(float(v) / best.value - 1) < 1e-3 for v in near)
            elif run.status == "ok" and name != "ior csv":
                assert {(m.phase, m.name, m.printed) for m in run.metrics} <= full


def test_all_of_them_in_one_file() -> None:
    runs = no_fault(scan("".join(LOGS.values()) + "Done\n" + "".join(reversed(LOGS.values()))))
    names = [name.split()[0] for name in LOGS]
    assert [run.benchmark for run in runs] == names + names[::-1]
    assert {run.status for run in runs} == {"ok"}
    assert [run.line for run in runs] == sorted({run.line for run in runs})


@pytest.mark.parametrize("name", LOGS)
def test_the_same_log_twice_is_two_runs(name: str) -> None:
    runs = no_fault(scan(LOGS[name] + "Done\n" + LOGS[name]))
    assert results(runs) == results(scan(LOGS[name])) * 2


def test_other_text_is_not_taken() -> None:
    for text in (
        "access,bw(MiB/s),Latency(ms),block(KiB),xfer(KiB),iter\nwrite,167.46,1.5,1048576,1048576,10\n",
        '{\n  "Version": "3.3.0",\n  "name": "x"\n}\n',
        "[RESULT] all tests passed\n[SCORE] 12\n",
        "[RESULT-INVALID] base: read result.csv failed\n",
        "[global]\ndatadir = /fs\n[ior-easy-write]\nAPI = POSIX\n",
        "Max Write: 12.24W\nMax write: 3.00 MB/s\nSUMMARY: 3 of 4\n",
    ):
        assert [run.benchmark for run in scan(text)] == ["unknown"], text


words = st.sampled_from(
    [
        *sorted({w for t in LOGS.values() for w in re.findall(r"\S+|\n", t)}),
        *(
            "\n",
            "\r",
            "\0",
            "9" * 5000,
            "1e999",
            "-nan",
            "1e-9999",
            "inf",
            "-",
            "é",
            "0: ",
            "\x1b[31m",
        ),
    ]
)


garbled = st.lists(words, max_size=60).map(lambda ws: " ".join(ws).encode())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    lines = LOGS[draw(st.sampled_from(sorted(LOGS)))].splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 4))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        how = draw(st.sampled_from(["delete", "double", "swap", "cut"]))
        if how == "delete" and len(lines) > 1:
            del lines[at]
        elif how == "double":
            lines[to:to] = lines[at : at + 5]
        elif how == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        else:
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
    raw = bytearray("".join(lines).encode())
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(raw)))
        raw[start : start + draw(st.integers(0, 40))] = draw(
            st.one_of(st.binary(max_size=20), garbled)
        )
    return bytes(raw)


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.binary(max_size=300), garbled, mutated()), st.sampled_from([None, *FORCED]))
def test_no_input_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    for run in no_fault(scan(raw, SCANNER if benchmark is None else FORCED[benchmark])):
        assert Run.model_validate_json(run.model_dump_json()) == run


@pytest.mark.parametrize("name", LOGS)
def test_millions_of_lines_stay_small(name: str) -> None:
    """Repeat every line of a log: what is kept of a run must not grow with it."""
    text = "".join(line * 300 for line in LOGS[name].splitlines(keepends=True))
    for run in no_fault(scan(text)):
        assert len(run.model_dump_json()) < 200_000
