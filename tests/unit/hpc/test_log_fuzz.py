"""No input breaks a parser, whether it is asked by name or not: logs that were mutated, words of logs, bytes."""

from __future__ import annotations

import io
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_scan import results, scan, scanner_of
from whole_logs import LOGS

from transect.hpc.base import PARSERS, Run
from transect.hpc.text import CLIP

EVERY = pytest.mark.exhaustive
BENCHMARKS = sorted({log.benchmark for log in LOGS.values()})
JUNK = (
    "\n",
    "\r",
    "\0",
    "9" * 400,
    "9" * 5000,
    "1e999",
    "-nan",
    "nan",
    "inf",
    "-inf",
    "1e-9999",
    "-",
    "é",
    "0: ",
    "::",
    "{",
    "'",
    ":::MLLOG {",
    "| ",
    " : ",
    "[" * 50,
    "N : 9",
    "W" * 99,
    "-1 -1 -1",
    "² ½",
    "\N{ARABIC-INDIC DIGIT ONE}\N{ARABIC-INDIC DIGIT TWO}",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "\x1b[31m",
)
WORDS = st.sampled_from([*sorted({w for log in LOGS.values() for w in re.findall(r"\S+|\n", log.text)}), *JUNK])
GARBLED = st.lists(WORDS, max_size=80).map(lambda words: " ".join(words).encode())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A log whose lines, words and bytes were deleted, doubled, swapped, shuffled, cut and replaced."""
    lines = LOGS[draw(st.sampled_from(sorted(LOGS)))].text.splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 8))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match draw(st.sampled_from(["delete", "double", "swap", "shuffle", "cut", "word", "add", "mix"])):
            case "delete":
                del lines[at : at + draw(st.integers(1, 4))]
                lines = lines or ["\n"]
            case "double":
                lines[to:to] = lines[at : at + draw(st.integers(1, 8))]
            case "swap":
                lines[at], lines[to] = lines[to], lines[at]
            case "shuffle":
                draw(st.randoms(use_true_random=False)).shuffle(lines)
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "word":
                words = lines[at].split(" ")
                words[draw(st.integers(0, len(words) - 1))] = draw(WORDS)
                lines[at] = " ".join(words)
            case "mix":  # another program prints into the same file
                lines[at:at] = LOGS[draw(st.sampled_from(sorted(LOGS)))].text.splitlines(keepends=True)[: to + 1]
            case "add":
                lines[at] += draw(st.binary(max_size=60)).decode("latin-1")
    raw = bytearray("".join(lines).encode("utf-8", "replace"))
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(raw)))
        stop = start + draw(st.integers(0, 40))
        raw[start:stop] = draw(st.one_of(st.binary(max_size=20), GARBLED))
    return bytes(raw)


INPUTS = st.one_of(mutated(), mutated(), GARBLED, st.binary(max_size=300))


def check(raw: bytes, benchmark: str | None) -> None:
    """Read the input and see that whatever is said of it survives JSON; the CPU's time bounds a loop's square."""
    begin = time.process_time()
    for run in scan(raw, benchmark):
        assert Run.model_validate_json(run.model_dump_json()) == run
    assert time.process_time() - begin < 5.0


@settings(max_examples=60)
@given(INPUTS, st.sampled_from([None, *BENCHMARKS]))
def test_no_input_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    check(raw, benchmark)


@EVERY
@settings(max_examples=1500)
@given(INPUTS, st.sampled_from([None, *BENCHMARKS]))
def test_none_of_many_inputs_breaks_a_parser(raw: bytes, benchmark: str | None) -> None:
    check(raw, benchmark)


@settings(max_examples=40)
@given(st.integers(1, 200), st.sampled_from(sorted(LOGS)))
def test_the_size_of_a_read_does_not_matter(size: int, name: str) -> None:
    class Dribble(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    long, log = f"{'9 ' * CLIP}\n", LOGS[name].text.replace("\n", "\n\n")
    # In one reading of a file an unfinished line stands first, or behind whole ones.
    text = long + log + long
    assert results(list(scanner_of().scan(Dribble(text.encode()), "log"))) == results(scan(text))


def long_forms(name: str) -> list[str]:
    """Make a log long in three ways: each line many times, all lines over and over, each line very long."""
    lines = LOGS[name].text.splitlines()
    return [
        "".join(f"{line}\n" * 300 for line in lines),
        "\n".join(lines[i % len(lines)] for i in range(max(6000, 40 * len(lines)))) + "\n",
        "".join(f"{line} {'9 ' * 9000}\n" for line in lines),
    ]


TABLES = {
    "memory-bandwidth-probe",
    "matrix-multiply-probe",
    "deep500",
    "imb",
    "nccl-tests",
    "osu",
    "perftest",
    "perftest both ways",
    "perftest latency",
}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=() if (place % 4, place % 3) == (0, form) else EVERY)
        for place, name in enumerate(LOGS)
        for form in range(3)
    ],
)
def test_what_is_kept_of_a_long_log_stays_small_and_takes_little_time(name: str, form: int) -> None:
    text = long_forms(name)[form]
    begin = time.process_time()
    runs = scan(text)
    assert time.process_time() - begin < 30
    for run in runs:
        kept = max((len(series.values) for series in run.samples.values()), default=0)
        assert kept <= 10_000 or name in TABLES
        assert len(run.parameters) < 200 and len(run.warnings) < 20
        # Of rows of a table up to some thousand are kept.
        assert len(run.metrics) < (20_000 if name in TABLES else 200)
        assert form != 0 or name in TABLES or len(run.model_dump_json()) < 200_000


@pytest.mark.parametrize("name", LOGS)
def test_no_parser_takes_what_is_anothers(name: str) -> None:
    log = LOGS[name]
    assert {run.benchmark for run in scan(log.text)} == {log.benchmark}
    head = "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
    runs = scan(log.text + head)
    assert runs[-1].benchmark == "stream" and runs[0].benchmark == log.benchmark


def test_each_parser_has_a_whole_log() -> None:
    without_fuzz = {"docking-probe", "message-sweep", "superbench", "superbench-results"}
    assert {log.benchmark for log in LOGS.values()} == set(PARSERS) - without_fuzz
