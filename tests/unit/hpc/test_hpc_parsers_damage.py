"""Logs of HPL, HPCC, STREAM and our probes disguised, cut, mixed and broken."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from hpc_logs import HPCC, HPL, LOGS, MATRIX, MEMORY, SCANNER, STREAM, no_fault, results, scan
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.hpc.base import Run
from transect.hpc.scan import Scanner

DISGUISES: dict[str, Callable[[str], bytes]] = {
    "CRLF": lambda t: t.replace("\n", "\r\n").encode(),
    "UTF-16": lambda t: t.encode("utf-16"),
    "UTF-16 big endian": lambda t: b"\xfe\xff" + t.encode("utf-16-be"),
    "UTF-16 without a mark": lambda t: t.encode("utf-16-le"),
    "UTF-8 with a mark": lambda t: b"\xef\xbb\xbf" + t.encode(),
    "colours": lambda t: re.sub(r"(?m)^", "\x1b[0;31m", t).replace("\n", "\x1b[0m\n").encode(),
    "NUL bytes": lambda t: (b"\0" * 100_000) + t.replace("e", "e\0").encode(),
    "srun -l": lambda t: re.sub(r"(?m)^", "0: ", t).encode(),
    "srun -l, padded": lambda t: re.sub(r"(?m)^", "  3: ", t).encode(),
    "Open MPI tags": lambda t: re.sub(r"(?m)^", "[1,0]<stdout>:", t).encode(),
    "a million characters": lambda t: b"x" * 1_000_000 + b"\n" + t.encode() + b"y" * 3_000_000,
    "noise": lambda t: re.sub(r"(?m)^", "srun: job 1 queued\nINFO x=1\n", t).encode(),
    "a progress bar": lambda t: b" 1%\r 2%\r" * 1000 + b"\n" + t.encode(),
    "time stamps": lambda t: re.sub(r"(?m)^", "2026-01-31T12:00:00.1234567Z ", t).encode(),
    "no line end": lambda t: t.rstrip("\n").encode(),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", LOGS)
def test_a_disguised_log_yields_the_same_results(name: str, disguise: str) -> None:
    runs = no_fault(scan(DISGUISES[disguise](LOGS[name])))
    assert results(runs) == results(scan(LOGS[name]))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_after_any_line_is_never_ok_before_its_result_is_complete(name: str) -> None:
    lines = LOGS[name].splitlines(keepends=True)
    whole = results(scan(LOGS[name]))
    seen_ok = False
    for end in range(1, len(lines)):
        runs = no_fault(scan("".join(lines[:end])))
        if all(run.status == "ok" for run in runs):
            seen_ok = True
            assert results(runs) == whole
        else:
            assert not seen_ok, f"ok became {runs[-1].status} at line {end}"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_cut_at_any_byte_of_its_result_never_yields_a_wrong_number(name: str) -> None:
    text = LOGS[name]
    full = {(m.name, m.printed) for run in scan(text) for m in run.metrics}
    step = max(1, len(text) // 400)
    for end in range(len(text) // 2, len(text), step):
        for run in no_fault(scan(text[:end])):
            if run.status == "ok":
                assert {(m.name, m.printed) for m in run.metrics} <= full


def test_several_runs_of_several_benchmarks_in_one_file() -> None:
    runs = no_fault(
        scan(HPL + STREAM + "Done\n" + MEMORY + HPCC + HPL + HPL + STREAM + STREAM + HPCC + MATRIX)
    )
    assert [r.benchmark for r in runs] == [
        "hpl", "stream", "memory-bandwidth-probe", "hpcc", "hpl", "hpl", "stream", "stream", "hpcc",
        "matrix-multiply-probe",
    ]  # fmt: skip
    assert {r.status for r in runs} == {"ok"}
    assert [r.line for r in runs] == sorted({r.line for r in runs})


words = st.sampled_from(
    [w for t in LOGS.values() for w in re.findall(r"\S+|\n", t)]
    + [
        "\n",
        "\r",
        "\0",
        "\x1b[31m",
        "9" * 5000,
        "1e999",
        "-nan",
        "1e-9999",
        "N : 9",
        "W" * 99,
        "é",
        "0: ",
    ]
)


garbled = st.lists(words, max_size=60).map(lambda ws: " ".join(ws).encode())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    raw = bytearray(LOGS[draw(st.sampled_from(sorted(LOGS)))].encode())
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(raw)))
        stop = start + draw(st.integers(0, 40))
        raw[start:stop] = draw(st.one_of(st.binary(max_size=20), garbled))
    return bytes(raw)


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.binary(max_size=300), garbled, mutated()), st.sampled_from([None, *LOGS]))
def test_no_input_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    for run in no_fault(scan(raw, SCANNER if benchmark is None else FORCED[benchmark])):
        assert Run.model_validate_json(run.model_dump_json()) == run


FORCED = {name: Scanner(name) for name in LOGS}


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.sampled_from(sorted(LOGS)))
def test_the_size_of_a_read_does_not_matter(size: int, name: str) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

        def readline(self, _: int | None = -1) -> bytes:
            return super().readline(size % 7)

    text = LOGS[name].replace("\n", "\n\n")
    assert results(list(SCANNER.scan(Dribble(text.encode()), "log"))) == results(scan(text))
