"""What the parsers of IO500, IOR and mdtest make of whole, broken and contradictory logs."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transect.hpc.base import Run
from transect.hpc.scan import Scanner

SCANNER = Scanner()
FORCED = {name: Scanner(name) for name in ("io500", "ior", "mdtest")}
BW = {"ior-easy-write": 4.0, "ior-hard-write": 0.5, "ior-easy-read": 8.0, "ior-hard-read": 1.0}
MD = {
    "mdtest-easy-write": 20.0, "mdtest-hard-write": 5.0, "find": 640.0, "mdtest-easy-stat": 80.0,
    "mdtest-hard-stat": 40.0, "mdtest-easy-delete": 10.0, "mdtest-hard-read": 16.0,
    "mdtest-hard-delete": 8.0,
}  # fmt: skip
EXTRA = {"ior-rnd4K-write": 0.25, "find-easy": 320.0}


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def scores(bw: dict[str, float], md: dict[str, float]) -> tuple[float, float, float]:
    one, other = mean(list(bw.values())), mean(list(md.values()))
    return one, other, math.sqrt(one * other)


def seconds(name: str) -> float:
    return 320.125 if name.endswith("write") else 41.5


def summary(extended: bool = False, version: str = "io500-sc23_v1") -> str:
    mode = "extended" if extended else "standard"
    out = [f"IO500 version {version} ({mode})"]
    phases = {**BW, **MD, **(EXTRA if extended else {})}
    for name, value in phases.items():
        unit = "GiB/s" if name.startswith("ior") else "kIOPS"
        out.append(f"[RESULT] {name:>20} {value:15f} {unit} : time {seconds(name):.3f} seconds")
    out.append(f"[      ] {'timestamp':>20} {0.0:15f} kIOPS : time 0.001 seconds")
    out.append(f"[      ] {'ior-rnd4K-easy-read':>20} {0.125:15f} GiB/s : time 30.000 seconds")
    bw, md, total = scores(BW, MD)
    out.append(f"[SCORE ] Bandwidth {bw:f} GiB/s : IOPS {md:f} kiops : TOTAL {total:f}")
    if extended:
        bw, md, total = scores({**BW, "ior-rnd4K-write": 0.25}, {**MD, "find-easy": 320.0})
        out.append(f"[SCOREX] Bandwidth {bw:f} GiB/s : IOPS {md:f} kiops : TOTAL {total:f}")
    return "\n".join(out) + "\n"


def ini() -> str:
    out = ["[run]", "procs           = 96", "version         = io500-isc24_v1"]
    out += [
        "config-hash     = 1A2B3C4D",
        "result-dir      = ./results/x",
        "mode            = standard",
    ]
    out += ["; START 2024-01-01 00:00:00", ""]
    for name, value in {**BW, **MD}.items():
        out += ["", f"[{name}]", "t_start         = 2024-01-01 00:00:01"]
        out += ["exe             = ./ior -C -Q 1 -g", f"score           = {value:f}"]
        out += [f"t_delta         = {seconds(name):.4f}", "t_end           = 2024-01-01 00:05:00"]
    out += ["", "[timestamp]", "t_delta         = 0.0010"]
    bw, md, total = scores(BW, MD)
    out += ["", "[SCORE]", f"MD              = {md:f}", f"BW              = {bw:f}"]
    out += [
        f"SCORE           = {total:f}",
        "hash            = 5E6F7A8B",
        "; END 2024-01-01 02:00:00",
    ]
    return "\n".join(out) + "\n"


def bash() -> str:
    lines = {}
    for kind, phases, unit in (("BW  ", BW, "GiB/s"), ("IOPS", MD, "kiops")):
        for place, (name, value) in enumerate(phases.items()):
            shown = name.replace("-", "_")
            lines[shown] = (
                f"[RESULT] {kind} phase {place + 1} {shown:>25} {value:20.3f} {unit} "
                f": time {seconds(name):6.2f} seconds"
            )
    out = []
    for name, line in lines.items():
        out += ["", f"[Starting] {name}", "[Exec] mpirun -np 96 bin/ior -w", line]
    out += ["[Summary] Results files in /fs/results", *lines.values()]
    bw, md, total = scores(BW, MD)
    out.append(f"[SCORE] Bandwidth {bw:.6g} GB/s : IOPS {md:.6g} kiops : TOTAL {total:.6g}")
    return "\n".join(out) + "\n"


def pretty(value: float) -> str:
    digits = 6 if value < 1 else 2 if value < 3600 else 0
    return f"{value:<10.{digits}f} "


OLD_COLUMNS = (
    "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"
)
NEW_COLUMNS = (
    "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   "
    "close(s)   total(s)   iter"
)
# 4 tasks, 2 segments of 64 MiB: 512 MiB; bandwidth = 512 / time
TIMES = {"write": (0.5, 0.64, 0.4), "read": (0.125, 0.1, 0.16)}


def rows(new: bool) -> str:
    out = []
    for turn in range(3):
        for operation, times in TIMES.items():
            rate = 512 / times[turn]
            cells = pretty(rate) + (pretty(rate) + f"{0.002:<12.6f}" if new else "")
            cells += pretty(65536) + pretty(1024) + pretty(0.001) + pretty(times[turn])
            cells += pretty(0.001) + pretty(times[turn])
            out.append(f"{operation:<10}{cells}{turn:<4d}")
        out.append(f"remove    {'-          ' * (8 if new else 6)}{0.000123:<10.6f} {turn:<4d}")
    return "\n".join(out) + "\n"


def long_summary(version: str, number: int = 0) -> str:
    columns = "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev"
    if version != "3.0.1":
        columns += "   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev"
    columns += "    Mean(s)"
    if version in ("3.3.0", "4.1.0"):
        columns += " Stonewall(s) Stonewall(MiB)"
    columns += " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize "
    columns += "aggsize API RefNum" if version == "3.0.1" else "aggs(MiB)   API RefNum"
    out = [columns]
    for operation, times in TIMES.items():
        rates = [512 / t for t in times]
        middle = sum(rates) / 3
        spread = math.sqrt(sum((r - middle) ** 2 for r in rates) / 3)
        four = f"{max(rates):10.2f} {min(rates):10.2f} {middle:10.2f} {spread:10.2f} "
        line = f"{operation:<9} {four}" + (four if version != "3.0.1" else "")
        line += f"{sum(times) / 3:10.5f} "
        line += "        NA            NA " if version in ("3.3.0", "4.1.0") else ""
        line += f"{number:5d} 4 2 3 0 0 1 0 0 2 67108864 1048576 "
        line += "536870912 POSIX 0" if version == "3.0.1" else "512.0 POSIX 0"
        out.append(line)
    return "Summary of all tests:\n" + "\n".join(out) + "\n"


def maxima() -> str:
    out = ""
    for operation, times in TIMES.items():
        best = 512 / min(times)
        label = f"Max {operation.title()}:".ljust(11)
        out += f"{label}{best:.2f} MiB/sec ({best * 1.048576:.2f} MB/sec)\n"
    return out


OPTIONS = """\
api                 : POSIX
apiVersion          :
test filename       : /fs/f
access              : single-shared-file
type                : independent
segments            : 2
ordering in a file  : sequential
ordering inter file : no tasks offsets
nodes               : 2
tasks               : 4
clients per node    : 2
repetitions         : 3
xfersize            : 1 MiB
blocksize           : 64 MiB
aggregate filesize  : 512 MiB
"""


def text_ior(version: str) -> str:
    new = version in ("3.3.0", "4.1.0")
    if version == "3.0.1":
        options = "Summary:\n"
        for line in OPTIONS.splitlines():
            key, value = (part.strip() for part in line.split(":"))
            if key in (
                "api",
                "access",
                "repetitions",
                "xfersize",
                "blocksize",
                "aggregate filesize",
            ):
                options += f"\t{key:<18} = {value}\n"
        options += "\tpattern            = strided (2 segments)\n"
        options += "\tclients            = 4 (2 per node)\n"
        began = "Began: Mon Jan  1 10:00:00 2018\nCommand line used: ior -i 3\n"
        began += "Machine: Linux n1\n\nTest 0 started: Mon Jan  1 10:00:00 2018\n"
        ended = "\nFinished: Mon Jan  1 10:01:00 2018\n"
    else:
        options = f"Options: \n{OPTIONS}\nResults: \n"
        began = "Began               : Mon Jan  1 10:00:00 2018\nCommand line        : ior -i 3\n"
        began += "Machine             : Linux n1\nTestID              : 0\n"
        began += "StartTime           : Mon Jan  1 10:00:00 2018\nPath                : /fs\n"
        ended = "Finished            : Mon Jan  1 10:01:00 2018\n"
    table = (NEW_COLUMNS if new else OLD_COLUMNS) + "\n" + re.sub(r"\S+", "---", NEW_COLUMNS) + "\n"
    best = "" if version == "4.1.0" else maxima()
    head = f"IOR-{version}: MPI Coordinated Test of Parallel I/O\n{began}\n{options}\n{table}"
    return f"{head}{rows(new)}{best}\n{long_summary(version)}{ended}"


def old_ior() -> str:
    """IOR 2.10: a summary per test, no repetitions, `EXCEL` at the end of rows."""
    out = (
        "IOR-2.10.3: MPI Coordinated Test of Parallel I/O\n\nRun began: Mon Jan  1 10:00:00 2011\n"
    )
    out += (
        "Command line used: IOR -i 3\nMachine: Linux n1\n\nSummary:\n\tapi                = POSIX\n"
    )
    out += "\taccess             = single-shared-file\n\tclients            = 4 (2 per node)\n"
    out += "\trepetitions        = 3\n\txfersize           = 1 MiB\n\tblocksize          = 64 MiB\n"
    out += "\taggregate filesize = 512 MiB\n\n"
    out += "Operation  Max (MiB)  Min (MiB)  Mean (MiB)   Std Dev  Max (OPs)  Min (OPs)  Mean (OPs)"
    out += "   Std Dev  Mean (s)  \n---------  ---------  ---------  ----------   -------\n"
    for operation, times in TIMES.items():
        rates = [512 / t for t in times]
        middle = sum(rates) / 3
        four = f"{max(rates):10.2f} {min(rates):10.2f}  {middle:10.2f}{1.5:10.2f}"
        out += f"{operation:<10}{four} {four}{sum(times) / 3:10.5f}   EXCEL\n"
    return out + "\n" + maxima() + "\nRun finished: Mon Jan  1 10:01:00 2011\n"


def json_ior() -> str:
    out = ["{", '  "Version": "3.3.0", ', '  "Began": "Mon Jan  1 10:00:00 2018", ']
    out += ['  "Command line": "ior -i 3", ', '  "Machine": "Linux n1", ', '  "tests": [', "    {"]
    out += [
        '    "TestID": 0, ',
        '    "StartTime": "Mon Jan  1 10:00:00 2018"    , "Path": "/fs","Capacity": "1 GiB"',
    ]
    out += [", ", '    "Options": {']
    for line in OPTIONS.splitlines():
        key, value = (part.strip() for part in line.split(":"))
        out.append(f'      "{key}": {value if value.isdigit() else chr(34) + value + chr(34)}, ')
    out += ["    }", ", ", '    "Results": [']
    for turn in range(3):
        for operation, times in TIMES.items():
            rate = 512 / times[turn]
            out += [
                "      {",
                f'        "access": "{operation}", ',
                f'        "bwMiB": {rate:.4f}, ',
            ]
            out += ['        "blockKiB": 65536.0000, ', f'        "iops": {rate:.4f}, ']
            out += [f'        "totalTime": {times[turn]:.4f}', "      }", ", "]
        out += ["      {", '        "access": "remove", ', '        "totalTime": 0.0012', "      }"]
    best = {op: 512 / min(times) for op, times in TIMES.items()}
    out += ["]", ", ", '"max": {']
    for operation, rate in best.items():
        out += [f'  "{operation}MiB": {rate:.4f}, ', f'  "{operation}MB": {rate * 1.048576:.4f}, ']
    out += ["}", "}", "]", ", ", '"summary": [']
    for operation, times in TIMES.items():
        rates = [512 / t for t in times]
        out += ["{", f'"operation": "{operation}", ', '"API": "POSIX", ', '"TestID": 0, ']
        for _ in range(2):  # IOR prints these keys twice
            out += ['"segmentCount": 2, ', '"blockSize": 67108864, ', '"transferSize": 1048576, ']
        out += ['"numTasks": 4, ', '"repetitions": 3, ', f'"bwMaxMIB": {max(rates):.4f}, ']
        out += [f'"bwMinMIB": {min(rates):.4f}, ', f'"bwMeanMIB": {sum(rates) / 3:.4f}, ']
        out += [f'"MeanTime": {sum(times) / 3:.4f}, ', '"xsizeMiB": 512.0000', "}", ", "]
    return "\n".join([*out, "]", ", ", '"Finished": "Mon Jan  1 10:01:00 2018"', "}"]) + "\n"


def csv_ior() -> str:
    out = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
    for turn in range(3):
        for operation, times in TIMES.items():
            rate = f"{512 / times[turn]:.4f}"
            out += f"{operation},{rate},{rate},0.0020,65536.0000,1024.0000,0.0010,{times[turn]:.4f},0.0010,{times[turn]:.4f},4,{turn}\n"
    return out


OPERATIONS = {
    "Directory creation": 2000.0, "Directory stat": 80000.0, "Directory removal": 4000.0,
    "File creation": 2500.0, "File stat": 100000.0, "File read": 0.0, "File removal": 5000.0,
    "Tree creation": 400.0, "Tree removal": 50.0,
}  # fmt: skip


def table(form: str, cells: dict[str, tuple[float, float, float, float]]) -> str:
    colon = "" if form.startswith("4") else ":"
    out = "   Operation                      Max            Min           Mean        Std Dev\n"
    out += "   ---------                      ---            ---           ----        -------\n"
    for operation, row in cells.items():
        width = 18 if form == "1.9.3" else 26
        numbers = " ".join(f"{value:14.3f}" for value in row)
        out += f"   {operation:<{width}}{colon} {numbers}\n"
    return out


def md(form: str, times: bool = False) -> str:
    label = {
        "1.9.3": "SUMMARY:", "3.3.0": "SUMMARY rate:", "4.0.0": "SUMMARY rate:",
        "4.1.0": "SUMMARY rate (in ops/sec):",
    }[form]  # fmt: skip
    out = "-- started at 01/15/2024 12:02:07 --\n\n"
    out += f"mdtest-{form} was launched with 4 total task(s) on 2 node(s)\n"
    out += f"Command line used: mdtest '-n' '100'{' -P' if times else ''} '-d' '/fs/md'\n"
    out += "Path                : /fs/md\n" if form.startswith("4") else "Path: /fs/md\n"
    out += "\nNodemap: 1010\n4 tasks, 400 files/directories\n\n"
    count = 1 if times else 3
    width = 0.0 if times else 0.1
    out += f"{label} (of {count} iterations)\n"
    out += table(
        form,
        {
            op: (r * (1 + width), r * (1 - width), r, r * width * 0.8)
            for op, r in OPERATIONS.items()
        },
    )
    if times:
        second = "SUMMARY time:" if form != "4.1.0" else label
        out += f"\n{second} (of 1 iterations)\n"
        spent = {op: 400 / r if r else 0.0 for op, r in OPERATIONS.items()}
        out += table(form, {op: (t, t, t, 0.0) for op, t in spent.items()})
    return out + "-- finished at 01/15/2024 12:02:30 --\n"


LOGS = {
    "io500 summary": summary(),
    "io500 extended": summary(extended=True),
    "io500 result.txt": ini(),
    "io500 bash": bash(),
    **{f"ior {version}": text_ior(version) for version in ("3.0.1", "3.2.1", "3.3.0", "4.1.0")},
    "ior 2.10.3": old_ior(),
    "ior json": json_ior(),
    "ior csv": csv_ior(),
    **{f"mdtest {form}": md(form) for form in ("1.9.3", "3.3.0", "4.0.0", "4.1.0")},
    "mdtest 3.3.0 times": md("3.3.0", times=True),
    "mdtest 4.1.0 times": md("4.1.0", times=True),
}


def scan(text: str | bytes, scanner: Scanner = SCANNER) -> list[Run]:
    raw = text.encode() if isinstance(text, str) else text
    return list(scanner.scan(io.BytesIO(raw), "log"))


def no_fault(runs: list[Run]) -> list[Run]:
    assert runs, "nothing may be lost"
    for run in runs:
        assert "fault of the parser" not in run.reason, run.reason
        assert bool(run.reason) == (run.status != "ok")
    return runs


def results(runs: list[Run]) -> list[object]:
    return [
        (r.benchmark, r.status, [(m.phase, m.name, m.printed) for m in r.metrics]) for r in runs
    ]


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
            if run.status == "ok" and name != "ior csv":
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


def change(pattern: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text)


def until(word: str, more: str = "") -> Callable[[str], str]:
    return lambda text: text[: text.index(word)] + more


CANCELLED = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED DUE TO TIME LIMIT ***\n"
CASES = [
    # log, how it is changed, status of the last run, part of its reason
    ("io500 summary", change(r"(write .*time) 320.125", r"\1 299.900"), "invalid", "took 299.900 s"),
    ("io500 result.txt", change(r"(t_delta +=) 320.1250", r"\1 30.1"), "invalid", "took 30.1 s"),
    ("io500 summary", change(r"TOTAL \S+", "TOTAL 99.000000"), "invalid", "the total 99.000000"),
    ("io500 summary", change(r"Bandwidth \S+", "Bandwidth 3.0"), "invalid", "geometric mean is 2"),
    ("io500 summary", change(r"IOPS \d\S+ kiops", "IOPS 25.5 kiops"), "invalid", "IOPS 25.5"),
    ("io500 result.txt", change(r"(?m)^BW +=.*", "BW = 2.3"), "invalid", "bandwidth 2.3"),
    ("io500 bash", change(r"TOTAL \S+", "TOTAL 1.5"), "invalid", "the total 1.5"),
    ("io500 extended", change(r"(SCOREX. Bandwidth) \S+", r"\1 9.9"), "invalid", "[SCOREX]"),
    ("io500 summary", change(r"(TOTAL \S+)", r"\1 [INVALID]"), "invalid", "[INVALID]"),
    ("io500 summary", change(r"(find .*seconds)", r"\1 [INVALID]"), "invalid", "find: the log"),
    ("io500 summary", change(r"RESULT\]( +find)", r"RESULT-invalid]\1"), "invalid", "find"),
    ("io500 summary", change(r"SCORE \]", "SCORE-invalid]"), "invalid", "SCORE-invalid"),
    ("io500 result.txt", change(r"(; START.*)", r"\1\n; ERROR INVALID stonewall-time < 30s"), "invalid", "stonewall-time"),
    ("io500 result.txt", change(r"(?m)^(SCORE +=.*)", r"\1 [INVALID]"), "invalid", "[INVALID]"),
    ("io500 summary", change(r"(\[RESULT\])", r"ERROR INVALID (main.c:1) DRY RUN MODE\n\1"), "invalid", "DRY RUN"),
    ("io500 summary", change(r"640\.0+", "0.000000"), "invalid", "find: the result is 0"),
    ("io500 summary", change(r"640\.0+", "-640.0"), "invalid", "is outside"),
    ("io500 summary", change(r"640\.0+", "nan"), "invalid", "find: the result is nan"),
    ("io500 summary", change(r".*ior-hard-read.*\n", ""), "invalid", "no result of the phases ior-hard-read"),
    ("io500 bash", change(r"(\[Summary\].*\n\S+ BW .* )4.000", r"\g<1>5.000"), "invalid", "printed as 4.000 and as 5.000"),
    ("io500 summary", until("[SCORE"), "truncated", "before the score"),
    ("io500 summary", until("[SCORE", CANCELLED), "failed", "TIME LIMIT"),
    ("io500 summary", until("[SCORE", "FATAL (main.c:3) Cannot open\n"), "failed", "FATAL"),
    ("io500 extended", until("[SCOREX]"), "truncated", "[SCOREX]"),
    ("io500 result.txt", until("[SCORE]"), "truncated", "after 12 phases"),
    ("io500 bash", until("[Summary]", "Error: the benchmark returned 1\n"), "failed", "returned 1"),
    ("ior 3.3.0", change(r"1280\.00", "2560.00"), "invalid", "2560.00"),
    ("ior 3.3.0", change(r"(?m)^(write +)1024\.00( .*0   )$", r"\g<1>1111.00\2"), "invalid", "1111.00 MiB/s, but"),
    ("ior 3.0.1", change(r"(?m)^(write +)1024\.00( .*0   )$", r"\g<1>1111.00\2"), "invalid", "1111.00 MiB/s, but"),
    ("ior json", change(r'"bwMiB": 1024.0000', '"bwMiB": 1111.0000'), "invalid", "1111.0000 MiB/s, but"),
    ("ior 4.1.0", change(r"(?m)^(write +1280.00 +800.00 +)1034.67", r"\g<1>1134.67"), "invalid", "mean 1134.67"),
    ("ior 4.1.0", change(r"(?m)^(write +)1280.00( +800.00 +1034.67)", r"\g<1>1380.00\2"), "invalid", "max 1380.00"),
    ("ior 3.2.1", change(r"0\.51333", "0.91333"), "invalid", "over 0.91333 s"),
    ("ior 3.2.1", change(r"\(1342.18 MB", "(1999.99 MB"), "invalid", "1999.99 MB/sec"),
    ("ior 2.10.3", change(r"Max Write: \S+", "Max Write: 1300.00"), "invalid", "1300.00"),
    ("ior 3.3.0", change(r"(?m)^(write +)1024\.00", r"\g<1>nan    "), "invalid", "nan"),
    ("ior 3.3.0", change(r"(?m)^(read +)4096\s", r"\g<1>-      "), "invalid", "a bandwidth is -"),
    ("ior 4.1.0", change(r"(\d\d\d\d)\.\d\d( .*NA)", r"\g<1>9e13\2"), "invalid", ""),
    ("ior 3.3.0", change(r"(Max Write)", r"ior WARNING: Incorrect data on write (3 errors found).\n\1"), "invalid", "3 errors found"),
    ("ior 3.3.0", until("Summary of"), "truncated", "no summary of write and read"),
    ("ior 3.3.0", until("Summary of", CANCELLED), "failed", "TIME LIMIT"),
    ("ior 3.3.0", until("Options"), "truncated", "before the first result"),
    ("ior 3.3.0", until("write  ", "ior ERROR: open64(x) failed, errno 2\nMPI_ABORT was invoked on rank 0\n"), "failed", "errno 2"),
    ("ior 2.10.3", until("Operation", "\n** error **\nERROR in aiori-POSIX.c (line 1): cannot open\n"), "failed", "cannot open"),
    ("ior json", until('"summary"'), "truncated", "no summary"),
    ("ior json", until('"Results"'), "truncated", "before the first result"),
    ("mdtest 3.3.0", change(r"2750\.000", "nan"), "invalid", "max is nan"),
    ("mdtest 3.3.0", change(r"2750\.000", "-2750.0"), "invalid", "negative"),
    ("mdtest 3.3.0", change(r"2750\.000", "2300.000"), "invalid", "not between"),
    ("mdtest 3.3.0", change(r"2500\.000", "9500.000"), "invalid", "not between"),
    ("mdtest 4.1.0", change(r" 160\.000", " 0.000"), "invalid", "Std Dev 0.000, but"),
    ("mdtest 4.1.0", change(r" 160\.000", " 900.000"), "invalid", "Std Dev 900.000 is more"),
    ("mdtest 3.3.0 times", change(r"2500\.000", "9500.000"), "invalid", "File creation: the log prints 9500.000"),
    ("mdtest 4.1.0 times", change(r"2500\.000", "9500.000"), "invalid", "its 400 items"),
    ("mdtest 3.3.0", change(r"(File stat +:).*", r"\1 9e13 9e13 9e13 0.000"), "invalid", "outside"),
    ("mdtest 3.3.0", change(r"(-- finished)", r"ERROR: verifying the data read! Take care!\n\1"), "invalid", "verifying"),
    ("mdtest 3.3.0", change(r"\d+\.\d{3}", "0.000"), "no-result", "no operation ran"),
    ("mdtest 3.3.0", until("SUMMARY"), "truncated", "before its table"),
    ("mdtest 3.3.0", until("mdtest-"), "truncated", "before its table"),
    ("mdtest 3.3.0", until("   Tree removal"), "truncated", "within its table"),
    ("mdtest 3.3.0", until("SUMMARY", CANCELLED), "failed", "TIME LIMIT"),
    ("mdtest 1.9.3", until("SUMMARY", "01/15/2024 12:02:09: Process 0(n1): FAILED in main, Unable to create: No space\n"), "failed", "No space"),
    ("mdtest 4.0.0", until("SUMMARY", "ERROR: unable to create directory, (mdtest.c:9)\n"), "failed", "unable to create"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "how", "status", "reason"),
    CASES,
    ids=[f"{i}-{c[0]}-{c[2]}" for i, c in enumerate(CASES)],
)
def test_status_and_reason(name: str, how: Callable[[str], str], status: str, reason: str) -> None:
    changed = how(LOGS[name])
    assert changed != LOGS[name]
    run = no_fault(scan(changed))[-1]
    assert run.status == status, run.reason
    assert reason in run.reason


def test_io500_scores_phases_and_units() -> None:
    (run,) = scan(LOGS["io500 extended"])
    assert (run.version, run.parameters["mode"]) == ("io500-sc23_v1", "extended")
    score, easy, find = (
        run.metric("score"),
        run.metric("bandwidth", "ior-easy-write"),
        run.metric("rate", "find"),
    )
    assert score and easy and find and easy.normalised and find.normalised and score.normalised
    assert (easy.printed, easy.unit, easy.normalised.value) == ("4.000000", "GiB/s", 4 * 2.0**30)
    assert (find.unit, find.normalised.value, find.normalised.unit) == ("kIOPS", 640_000.0, "1/s")
    assert score.normalised.name == "io500_score"
    assert run.parameters["unscored"] == ["timestamp", "ior-rnd4K-easy-read"]
    assert run.metric("bandwidth", "ior-rnd4K-easy-read") and not run.metric("rate", "timestamp")


def test_io500_result_txt_keeps_what_stands_before_the_version() -> None:
    (run,) = scan(LOGS["io500 result.txt"])
    assert run.parameters == {
        "procs": 96, "config-hash": "1A2B3C4D", "result-dir": "./results/x", "mode": "standard",
        "hash": "5E6F7A8B",
    }  # fmt: skip


def test_io500_in_bash_lists_results_twice_and_mislabels_the_score() -> None:
    (run,) = scan(LOGS["io500 bash"])
    assert len([m for m in run.metrics if m.name in ("bandwidth", "rate")]) == 12
    score = run.metric("score_bandwidth")
    assert score and score.unit == "GB/s" and score.normalised
    assert score.normalised.value == pytest.approx(2 * 2.0**30)
    assert any("GB/s" in warning for warning in run.warnings)


def test_an_invalid_optional_phase_does_not_spoil_the_official_score() -> None:
    text = re.sub(r"(ior-rnd4K-easy-read .*)", r"\1 [INVALID]", LOGS["io500 summary"])
    text = text.replace(
        "[      ]  ior-rnd", "ERROR INVALID (main.c:443) Runtime is smaller\n[      ]  ior-rnd"
    )
    (run,) = no_fault(scan(text))
    assert run.status == "ok" and "ior-rnd4K-easy-read" in run.warnings[0]


def test_a_score_line_alone_is_a_result_with_a_warning() -> None:
    (run,) = no_fault(scan(LOGS["io500 summary"].splitlines()[-1] + "\n"))
    assert run.status == "ok" and "cannot be recomputed" in run.warnings[0]


def test_ior_repetitions_are_samples_and_the_summary_is_the_result() -> None:
    for name in ("ior 3.0.1", "ior 3.2.1", "ior 3.3.0", "ior 4.1.0", "ior json"):
        (run,) = scan(LOGS[name])
        assert run.samples["write"].values == [1024.0, 800.0, 1280.0]
        assert run.samples["read_total_time"].values == [0.125, 0.1, 0.16]
        best = run.metric("bandwidth_max", "write")
        assert best and best.normalised and best.normalised.value == 1280 * 2.0**20
        assert float(best.printed) == 1280 and best.unit == "MiB/s"
        assert run.parameters["tasks"] == 4 and run.parameters["repetitions"] == 3
        assert (run.parameters["api"], run.parameters["xfersize"]) == ("POSIX", "1 MiB")
        assert (run.parameters["xsize"], run.parameters["blksiz"]) == (1048576, 67108864)


def test_ior_2_with_values_of_all_columns() -> None:
    (run,) = scan(LOGS["ior 2.10.3"])
    assert (run.version, run.parameters["clients_per_node"]) == ("2.10.3", 2)
    printed = {m.name: m.printed for m in run.metrics if m.phase == "read"}
    assert printed["bandwidth_max"] == "5120.00" and printed["bandwidth_min"] == "3200.00"
    assert printed["time_mean"] == "0.12833"


def test_ior_with_a_deadline_counts_the_bytes_that_it_says_it_used() -> None:
    used = 300 * 2**20
    text = LOGS["ior 3.2.1"]
    assert "1024.00" in text
    first = text.index("write     1024")
    moved = f"WARNING: Using actual aggregate bytes moved = {used}.\n"
    text = text[:first] + moved + text[first:]
    text = text.replace("aggregate filesize", "stonewallingTime    : 300\naggregate filesize", 1)
    text = text.replace("write     1024.00", "write     600.00 ", 1)
    run = no_fault(scan(text))[0]
    assert "over its time" not in run.reason  # 300 MiB in 0.5 s
    assert run.parameters["stonewallingTime"] == 300


def test_ior_tests_of_one_script_are_runs_of_their_own() -> None:
    one = LOGS["ior 3.2.1"]
    begin, end = one.index("TestID"), one.index("Summary of")
    second = one[begin:end].replace(": 0\n", ": 1\n", 1).replace("POSIX", "MPIIO")
    rows_of_second = long_summary("3.2.1", 1).replace("POSIX", "MPIIO").split("\n", 2)[2]
    text = one[:end] + second + long_summary("3.2.1") + rows_of_second + "Finished : x\n"
    first, other = no_fault(scan(text))
    assert [first.status, other.status] == ["ok", "ok"]
    assert (first.parameters["api"], other.parameters["api"]) == ("POSIX", "MPIIO")
    assert first.line < other.line
    # The second test never came to its end: the first one did.
    cut = no_fault(scan(one[:end] + second[: second.index("read  ")] + CANCELLED))
    assert [run.status for run in cut] == ["ok", "failed"]


def test_ior_csv_of_3_3_0_has_no_results() -> None:
    text = "3.3.0Fri Jan  2 20:28:45 2026ior -w -O summaryFormat=CSVLinux n10POSIX/fs/fsingle-shared-fileindependent1"
    (run,) = no_fault(scan(text))
    assert (run.benchmark, run.variant, run.version, run.status) == (
        "ior",
        "csv",
        "3.3.0",
        "no-result",
    )
    (other,) = scan("3.3.0Fri Jan  2 20:28:45 2026 something else\n")
    assert other.benchmark == "unknown"


@pytest.mark.parametrize("name", ["ior 3.3.0", "ior 3.0.1"])
def test_ior_without_its_head(name: str) -> None:
    text = LOGS[name]
    (run,) = no_fault(scan(text[text.index("access    bw") :]))
    assert run.status == "ok" and run.metric("bandwidth_max", "read")
    (run,) = no_fault(scan(text[text.index("Operation ") :]))
    assert run.status == "ok" and run.parameters["tasks"] == 4
    (run,) = no_fault(scan(maxima()))
    assert run.status == "ok" and run.version == ""


@pytest.mark.parametrize("form", ["1.9.3", "3.3.0", "4.0.0", "4.1.0"])
def test_mdtest_rates_and_what_was_not_run(form: str) -> None:
    (run,) = scan(LOGS[f"mdtest {form}"])
    assert (run.version, run.variant) == (form, "rates")
    assert run.parameters["not_run"] == ["File read"] and not run.metric("rate_max", "File read")
    assert (run.parameters["tasks"], run.parameters["nodes"], run.parameters["files"]) == (
        4,
        2,
        400,
    )
    best = run.metric("rate_max", "File creation")
    assert best and best.printed == "2750.000" and best.normalised
    assert (best.normalised.name, best.normalised.value) == ("metadata_rate", 2750.0)


@pytest.mark.parametrize("form", ["3.3.0", "4.1.0"])
def test_mdtest_takes_the_second_table_for_times_whatever_its_label(form: str) -> None:
    (run,) = scan(LOGS[f"mdtest {form} times"])
    assert run.variant == "rates and times"
    time = run.metric("time_mean", "File creation")
    assert time and (time.printed, time.unit, time.direction) == ("0.160", "s", "lower")
    assert ("labelled" in " ".join(run.warnings)) == (form == "4.1.0")
    in_ms = LOGS["mdtest 4.1.0 times"].replace(
        "rate (in ops/sec): (of 1 iterations)", "time (in ms/op): (of 1 iterations)"
    )
    in_ms = in_ms.replace("time (in ms/op)", "rate (in ops/sec)", 1)
    (run,) = scan(in_ms)
    time = run.metric("time_mean", "File creation")
    assert time and time.unit == "s"


def test_mdtest_headers_alone_with_other_numbers_of_tasks_and_statistics_of_ranks() -> None:
    text = LOGS["mdtest 3.3.0"]
    (run,) = no_fault(scan(text[text.index("SUMMARY") :]))
    assert run.status == "ok" and run.version == "" and run.metric("rate_mean", "Tree removal")
    begin, end = text.index("4 tasks"), text.index("-- finished")
    again = text[:end] + text[begin:end].replace("4 tasks, 400", "2 tasks, 200") + text[end:]
    one, two = no_fault(scan(again))
    assert (one.parameters["tasks"], two.parameters["tasks"], two.version) == (4, 2, "3.3.0")
    ranks = re.sub(r"(File stat +:)", r"\1 9.000 8.000 8.500    ", text)
    assert results(scan(ranks)) == results(scan(text))


def test_mdtest_lines_of_single_iterations_are_samples() -> None:
    once = "V-1: Rank   0 Line  1223   File creation     :          0.160 sec,       2500.000 ops/sec\n"
    wall = "V-1:   File creation (stonewall):          0.160 sec,       99.000 ops/sec\n"
    (run,) = no_fault(scan(LOGS["mdtest 3.3.0"].replace("\nSUMMARY", once + wall + "\nSUMMARY")))
    assert run.samples["File creation"].values == [2500.0]
    assert results([run]) == results(scan(LOGS["mdtest 3.3.0"]))


def test_a_deviation_of_one_iteration_may_be_nan() -> None:
    text = LOGS["mdtest 4.1.0 times"].replace("        0.000\n", "         -nan\n")
    (run,) = no_fault(scan(text))
    assert run.status == "ok"


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
