"""Logs of benchmarks of storage as the tests of their parsers need them."""

from __future__ import annotations

import math
import re

from io500_logs import bash, ini, pretty, summary
from log_scan import made

OLD_COLUMNS = "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"


NEW_COLUMNS = (
    "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"
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


OPTIONS = made("options")


def text_ior(version: str) -> str:
    new = version in ("3.3.0", "4.1.0")
    if version == "3.0.1":
        options = "Summary:\n"
        for line in OPTIONS.splitlines():
            key, value = (part.strip() for part in line.split(":"))
            if key in ("api", "access", "repetitions", "xfersize", "blocksize", "aggregate filesize"):
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
    out = "IOR-2.10.3: MPI Coordinated Test of Parallel I/O\n\nRun began: Mon Jan  1 10:00:00 2011\n"
    out += "Command line used: IOR -i 3\nMachine: Linux n1\n\nSummary:\n\tapi                = POSIX\n"
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
    out += ['    "TestID": 0, ', '    "StartTime": "Mon Jan  1 10:00:00 2018"    , "Path": "/fs","Capacity": "1 GiB"']
    out += [", ", '    "Options": {']
    for line in OPTIONS.splitlines():
        key, value = (part.strip() for part in line.split(":"))
        out.append(f'      "{key}": {value if value.isdigit() else chr(34) + value + chr(34)}, ')
    out += ["    }", ", ", '    "Results": [']
    for turn in range(3):
        for operation, times in TIMES.items():
            rate = 512 / times[turn]
            out += ["      {", f'        "access": "{operation}", ', f'        "bwMiB": {rate:.4f}, ']
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
    "Directory creation": 2000.0,
    "Directory stat": 80000.0,
    "Directory removal": 4000.0,
    "File creation": 2500.0,
    "File stat": 100000.0,
    "File read": 0.0,
    "File removal": 5000.0,
    "Tree creation": 400.0,
    "Tree removal": 50.0,
}


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
        "1.9.3": "SUMMARY:",
        "3.3.0": "SUMMARY rate:",
        "4.0.0": "SUMMARY rate:",
        "4.1.0": "SUMMARY rate (in ops/sec):",
    }[form]
    out = "-- started at 01/15/2024 12:02:07 --\n\n"
    out += f"mdtest-{form} was launched with 4 total task(s) on 2 node(s)\n"
    out += f"Command line used: mdtest '-n' '100'{' -P' if times else ''} '-d' '/fs/md'\n"
    out += "Path                : /fs/md\n" if form.startswith("4") else "Path: /fs/md\n"
    out += "\nNodemap: 1010\n4 tasks, 400 files/directories\n\n"
    count = 1 if times else 3
    width = 0.0 if times else 0.1
    out += f"{label} (of {count} iterations)\n"
    out += table(form, {op: (r * (1 + width), r * (1 - width), r, r * width * 0.8) for op, r in OPERATIONS.items()})
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
