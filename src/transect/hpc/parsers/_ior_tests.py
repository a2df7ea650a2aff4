"""What one test of IOR printed, whatever the format, and whether its numbers agree."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from transect.hpc.base import Parameter
from transect.hpc.parsers._checks import Span, apart, bytes_of, span
from transect.hpc.rules import Output
from transect.hpc.values import number

_MEBI = 1 << 20
_SLACK = 1e-3
# IOR's options without a value: several may stand in one word.
_FLAGS = re.compile(r"-[BcCeEFghHIkKmnpPrRSuvVwWxyYzZ]{1,32}")
_COLUMNS = {
    "Max(MiB)": "max",
    "Min(MiB)": "min",
    "Mean(MiB)": "mean",
    "Max(OPs)": "max_ops",
    "Min(OPs)": "min_ops",
    "Mean(OPs)": "mean_ops",
    "Mean(s)": "mean_s",
    "Test#": "test",
    "#Tasks": "tasks",
    "tPN": "tpn",
    "reps": "reps",
    "segcnt": "segcnt",
    "blksiz": "blksiz",
    "xsize": "xsize",
    "aggs(MiB)": "aggs",
    "aggsize": "aggs",
    "API": "api",
}


@dataclass(kw_only=True, slots=True)
class Group:
    """The repetitions of one operation, e.g. of `write`: bandwidth in MiB/s as printed."""

    # bandwidth, total time, block in KiB
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def broken(self) -> str:
        """The first bandwidth that is no number."""
        return next((row[0] for row in self.rows if number(row[0]) is None), "")

    def _sorted(self) -> list[str]:
        return sorted((row[0] for row in self.rows if number(row[0]) is not None), key=float)

    @property
    def best(self) -> str:
        return next(reversed(self._sorted()), "")

    @property
    def worst(self) -> str:
        return next(iter(self._sorted()), "")

    def mean(self) -> Span:
        """Return between which values the mean of all repetitions lies."""
        spans = [near for row in self.rows if (near := span(row[0]))]
        return sum(low for low, _ in spans) / self.count, sum(high for _, high in spans) / self.count


@dataclass(kw_only=True, slots=True)
class Test:
    """One test of one start of IOR: a script may hold several."""

    line: int
    number: int | None = None
    options: dict[str, Parameter] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    # operation -> column of the summary table -> cell
    summary: dict[str, dict[str, str]] = field(default_factory=dict)
    maxima: dict[str, tuple[str, str]] = field(default_factory=dict)  # MiB/s, MB/s
    moved: list[int] = field(default_factory=list)  # bytes that IOR says it used instead
    wrong_data: str = ""
    warnings: list[str] = field(default_factory=list)

    def blank(self) -> bool:
        """Tell whether it has neither options nor results."""
        return not (self.options or self.groups or self.summary or self.maxima)

    def operations(self) -> list[str]:
        """Return which operations have a result of any kind."""
        return list(dict.fromkeys((*self.groups, *self.summary, *self.maxima)))

    def bandwidths(self, operation: str) -> dict[str, str]:
        """Return `max`, `min`, `mean`, `stddev` in MiB/s as printed, as far as there are any."""
        cells = self.summary.get(operation, {})
        keys = ("max", "min", "mean", "stddev")
        out: dict[str, str] = {key: cells[key] for key in keys if key in cells}
        group = self.groups.get(operation)
        if "max" not in out and operation in self.maxima:
            out["max"] = self.maxima[operation][0]
        if "max" not in out and group is not None and group.best:
            out["max"], out["min"] = group.best, group.worst
        return out

    def expected_bytes(self, block_kib: str) -> Span | None:
        """Return the bytes of one repetition without a deadline, None when the log does not say."""
        block, tasks = number(block_kib), self.options.get("tasks")
        segments = self.options.get("segments")
        if block and isinstance(tasks, int) and isinstance(segments, int):
            near = span(block_kib)
            assert near is not None
            # 45.91 KiB stands for 47008 bytes, 16384 and 1024.00 for themselves.
            ends = near if block % 1 else (block, block)
            return ends[0] * 1024 * tasks * segments, ends[1] * 1024 * tasks * segments
        return bytes_of(str(self.options.get("aggregate_filesize", "")))


@dataclass(kw_only=True)
class Session(Output):
    """What one start of the program printed."""

    tests: list[Test] = field(default_factory=list)
    form: str = "text"
    banner: bool = False
    columns: list[str] = field(default_factory=list)
    table: str = ""
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # operations, by the command line; empty: unknown


def asked_for(command: str) -> list[str]:
    """Return the operations that a command line asks for; without any both.

    By `-w` and `-r`, also among other flags in one word (`-wk`), `--writeFile`, `-O writeFile=1`. A check
    of what was read (`-R`) reads too.

    >>> asked_for("ior -a POSIX -wk -O keepFile=1")
    ['write']
    """
    words, asked = command.split()[1:], set[str]()
    for before, word in zip(["", *words], words, strict=False):
        if before == "-O":
            pairs = (option.partition("=") for option in word.split(","))
            asked |= {key for key, _, value in pairs if value != "0"}
        elif word.startswith("--"):
            asked.add(word[2:])
        elif _FLAGS.fullmatch(word):
            asked |= {*word[1:]}
    names = (("write", {"w", "writeFile"}), ("read", {"r", "readFile", "R", "checkRead"}))
    return [name for name, flags in names if flags & asked] or ["write", "read"]


def not_a_number(test: Test) -> str | None:
    for operation in test.operations():
        group = test.groups.get(operation)
        if group is not None and group.broken:
            return f"{operation}: a bandwidth is {group.broken}"
        for which, printed in test.bandwidths(operation).items():
            if number(printed) is None:
                return f"{operation}: the {which} bandwidth is {printed}"
    return None


def contradicted(test: Test, command: str) -> str | None:
    """Compare bandwidths with bytes over time, and the summary with the repetitions.

    A deadline, now or when the file was written, makes the bytes others than those announced.
    """
    deadline = bool(test.options.get("stonewallingTime")) or "stoneWalling" in command
    for operation, group in test.groups.items():
        for row in group.rows:
            if (why := _row(test, row, deadline)) is not None:
                return f"{operation}: {why}"
    for operation in test.operations():
        if (why := _summary(test, operation, deadline)) is not None:
            return f"{operation}: {why}"
    return None


def _row(test: Test, row: tuple[str, str, str], deadline: bool) -> str | None:
    bandwidth, total_s, block_kib = row
    rate, time = span(bandwidth), span(total_s)
    unknown = deadline and not test.moved
    if rate is None or time is None or time[1] <= 0 or unknown:
        return None
    expected = test.expected_bytes(block_kib)
    sizes = [*([expected] if expected else []), *((float(b), float(b)) for b in test.moved)]
    low_s = max(time[0], 0.0)
    for low, high in sizes:
        implied = low / time[1] / _MEBI, (high / low_s / _MEBI if low_s else math.inf)
        if math.isinf(implied[1]):
            implied = implied[0], max(implied[0], rate[1])
        if not apart(rate, implied, _SLACK):
            return None
    if not sizes:
        return None
    low, high = sizes[0]
    exact = number(total_s) or time[1]
    return (
        f"the log prints {bandwidth} MiB/s, but its {(low + high) / 2 / _MEBI:.6g} MiB over its "
        f"time of {total_s} s are {(low + high) / 2 / _MEBI / exact:.6g} MiB/s"
    )


def _summary(test: Test, operation: str, deadline: bool) -> str | None:
    cells, group = test.summary.get(operation, {}), test.groups.get(operation)
    most, least, mean = (span(cells.get(key, "")) for key in ("max", "min", "mean"))
    repetitions = cells.get("reps") or str(test.options.get("repetitions", ""))
    whole = group is not None and not group.broken and str(group.count) == repetitions
    if operation in test.maxima:
        mib, mb = test.maxima[operation]
        max_mib, max_mb = span(mib), span(mb)
        if max_mib and max_mb and apart(max_mib, (max_mb[0] / 1.048576, max_mb[1] / 1.048576), 1e-6):
            return f"Max {mib} MiB/sec is not {mb} MB/sec"
        if max_mib and most and apart(max_mib, most, 1e-6):
            return f"Max {mib} MiB/sec, but the summary has {cells['max']}"
        if max_mib and whole and group and group.best and apart(max_mib, span(group.best) or max_mib, 1e-6):
            return f"Max {mib} MiB/sec, but the best repetition has {group.best}"
    if most and least and mean:
        if least[0] > most[1] or apart((least[0], most[1]), mean, 1e-6):
            return f"the mean {cells['mean']} is not between {cells['min']} and {cells['max']}"
        if (why := _summary_time(deadline or bool(test.moved), cells, (least[0], most[1]))) is not None:
            return why
    if group is None or not whole:
        return None
    pairs = (("max", most, span(group.best)), ("min", least, span(group.worst)))
    for name, printed, found in (*pairs, ("mean", mean, group.mean())):
        if printed and found and apart(printed, found, 1e-6):
            value = f"{(found[0] + found[1]) / 2:.6g}"
            return f"the summary has {name} {cells[name]} MiB/s, its repetitions give {value}"
    return None


def _summary_time(deadline: bool, cells: dict[str, str], between: Span) -> str | None:
    """Compare the mean time with the size: their quotient is the harmonic mean bandwidth."""
    time, size = span(cells.get("mean_s", "")), span(cells.get("aggs", ""))
    if time is None or size is None or time[0] <= 0:
        return None
    if deadline and cells.get("reps") != "1":
        return None
    unit = 1.0 if cells.get("aggs_unit", "MiB") == "MiB" else float(_MEBI)
    implied = size[0] / unit / time[1], size[1] / unit / time[0]
    if not apart(between, implied, _SLACK):
        return None
    size_text = cells["aggs"] if unit == 1.0 else f"{size[0] / unit:.6g}"
    return (
        f"the summary prints {cells['mean']} MiB/s, but {size_text} MiB over {cells['mean_s']} s "
        f"are {(implied[0] + implied[1]) / 2:.6g} MiB/s"
    )


def summary_columns(text: str) -> list[str]:
    """Return our names of the columns of a summary, whose heads gained words with every version."""
    plain = text.replace(" (", "(").replace("Std Dev", "StdDev").replace(" Op grep", " ")
    out, seen = [], 0
    for name in plain.split():
        if name == "StdDev":
            seen += 1
        key = ("stddev", "stddev_ops")[seen - 1] if name == "StdDev" and seen < 3 else ""
        out.append(key or _COLUMNS.get(name, name))
    return [*out, "aggsize"] if "aggsize" in plain else out
