"""Names in the output of the OSU Micro-Benchmarks: titles, columns, comment lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transect.domain.metrics import Direction
from transect.hpc.base import Parameter
from transect.hpc.parsers._network import Column, agree, between
from transect.hpc.text import excerpt
from transect.hpc.values import last_digit, number


@dataclass(frozen=True, kw_only=True, slots=True)
class Title:
    """`variant`: what communicates, e.g. `mpi-cuda`; `test`: the program without `osu_`."""

    test: str
    variant: str
    version: str


UNTITLED = Title(test="", variant="", version="")

_TITLE = re.compile(
    r"#\s*(?:OSU|OMB)\s+(Python\s+)?([A-Za-z]{2,12})(_\w{1,30})?(-[A-Za-z]{2,10}(?:\s+MANAGED)?)?"
    r"\s+(.{0,100}?)\s*[Tt]est\b(?:\s*\(Version\s+([^\s)]{1,20})\)|\s+v(\S{1,20}))?"
)
_ONE_SIDED = {"accumulate": "acc", "get_accumulate": "get_acc", "compare_and_swap": "cas", "fetch_and_op": "fop"}
_POINT_TO_POINT = {
    "": "latency",
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "bidirectional bandwidth": "bibw",
    "multi latency": "multi_lat",
    "multi-threaded latency": "latency_mt",
    "multi-process latency": "latency_mp",
    "multiple bandwidth / message rate": "mbw_mr",
    "latency persistent": "latency_persistent",
    "bandwidth persistent": "bw_persistent",
    "partitioned latency": "partitioned_latency",
    "bi-directional bandwidth persistent": "bibw_persistent",
    "init": "init",
    "hello world": "hello",
}
_LATENCY = re.compile(r"latency(?:_m[tp]|_persistent)?|multi_lat|(?:put|get|acc|get_acc|cas|fop|partitioned)_latency")
_WORDS = (
    (r"all-?to-?all(v|w)?(?: personalized(?: exchange)?)?", r"alltoall\1"),
    (r"broadcast", "bcast"),
    (r"neighbou?r(?:hood)?[ _]", "neighbor_"),
    (r"reduce[-_ ]scatter", "reduce_scatter"),
    (r"\blatency\b", ""),
)
_SPACES = re.compile(r"[\s/_]+")
_BARE = r"MB/s|GB/s|Messages/s|Million ops/s|Iterations|Validation|Transmit Size|Operation"
_COLUMN = re.compile(
    rf"({_BARE}|Size(?:\s*\(B\))?(?=\s))"
    r"|([A-Za-z][A-Za-z0-9._\-]{0,20}(?: [A-Za-z][A-Za-z0-9._\-]{0,20}){0,2}) ?\((us|ms|s|MB/s|%)\)"
)
_HEAD = re.compile(r"#?\s*(?:Size|Operation|(?:Avg )?Latency ?\(|Overall\(|Bandwidth \(|MB/s)")
_FACTS = (
    (re.compile(r"\[ pairs:\s*(\d{1,9}) \] \[ window size:\s*(\d{1,9}|varied) \]"), ("pairs", "window_size")),
    (re.compile(r"\[ pairs:\s*(\d{1,9}) \]"), ("pairs",)),
    (re.compile(r"Datatype:\s*(\S{1,60}?)\.?$"), ("datatype",)),
    (re.compile(r"Window creation:\s*(\S{1,60})"), ("window_creation",)),
    (re.compile(r"Synchronization:\s*(\S{1,60})"), ("synchronization",)),
    (re.compile(r"Number of Sender threads:\s*(\d{1,9})"), ("sender_threads",)),
    (re.compile(r"Number of Receiver threads:\s*(\d{1,9})"), ("receiver_threads",)),
    (re.compile(r"Number of forked processes in sender:\s*(\d{1,9})"), ("sender_processes",)),
    (re.compile(r"Number of forked processes in receiver:\s*(\d{1,9})"), ("receiver_processes",)),
    (
        re.compile(r"Send Buffer on (\w{1,10}) \(\w\) and Receive Buffer on (\w{1,10})"),
        ("send_buffer", "receive_buffer"),
    ),
    (
        re.compile(r"Rank 0 Memory on (\w{1,10}) \(\w\) and Rank 1 Memory on (\w{1,10})"),
        ("rank_0_memory", "rank_1_memory"),
    ),
)
_UP, _DOWN = Direction.HIGHER, Direction.LOWER


def read_title(text: str) -> Title | None:
    """Read `# OSU MPI-CUDA Latency Test v5.8` and its kin."""
    if "OSU" not in text[:16] and "OMB" not in text[:16]:
        return None
    match = _TITLE.match(text)
    if match is None:
        return None
    variant = f"{'python-' if match[1] else ''}{match[2]}{match[4] or ''}".lower()
    return Title(
        test=_test((match[3] or "")[1:].lower(), match[5].lower()),
        variant=_SPACES.sub("-", variant),
        version=match[6] or match[7] or "",
    )


def _test(operation: str, what: str) -> str:
    """Name the test as its program is called, without `osu_`."""
    if operation:
        kind = _POINT_TO_POINT.get(what.strip(), _SPACES.sub("_", what.strip()))
        return f"{_ONE_SIDED.get(operation, operation)}_{kind}"
    if (name := _POINT_TO_POINT.get(what.strip())) is not None:
        return name
    for pattern, name in _WORDS:
        what = re.sub(pattern, name, what)
    prefix = "i" if "non-blocking" in what else ""
    what = what.replace("non-blocking", "")
    return prefix + _SPACES.sub("_", what.strip())


def columns(text: str) -> list[str]:
    """Return the names of the columns when a line is the header of a table, else nothing."""
    if not _HEAD.match(text):
        return []
    out = []
    for match in _COLUMN.finditer(text[:600].lstrip("# ")):
        name, measure, unit = match[1], match[2], match[3]
        if name is not None:
            out.append("Size" if name.startswith("Size") else name)
        else:
            out.append(f"{measure}({unit})")
    return out if out and out != ["Size"] else []


def column(name: str, test: str) -> Column | None:
    """Return the metric of a column; None for sizes, verdicts and what is not known."""
    if name == "MB/s" or name.endswith("Bandwidth(MB/s)"):
        return Column("bandwidth", "MB/s", "network_bandwidth")
    if name == "Messages/s":
        return Column("message_rate", "1/s", "message_rate")
    if name == "Million ops/s":
        return Column("operation_rate", "Mop/s", "operation_rate")
    if name == "Overlap(%)":
        return Column("overlap", "%", "overlap")
    if name == "Iterations":
        return Column("iterations", "1", direction=Direction.NEUTRAL)
    if not name.endswith(("(us)", "(ms)", "(s)", "(MB/s)", "(GB/s)")):
        return None
    what, unit = name[:-1].rsplit("(", 1)
    slug = _SPACES.sub("_", what.strip().lower().replace(".", ""))
    registered = None
    if slug in ("latency", "avg_latency", "pure_comm") and test:
        registered = "message_time" if is_latency(test) else "collective_time"
    return Column(slug, unit, direction=_UP if unit.endswith("B/s") else _DOWN, registered=registered)


def is_latency(test: str) -> bool:
    """Tell whether the time of a test is that of one message, half a round trip."""
    return _LATENCY.fullmatch(test) is not None


def guess(names: list[str]) -> str:
    """Name the test of a table that has lost its title, where its columns tell."""
    if "Messages/s" in names:
        return "mbw_mr"
    return ""


def largest(test: str) -> int:
    """Return the largest message that a test sends by default: options.max_message_size.

    Point-to-point and one-sided tests send 4 MiB, collectives 1 MiB.
    """
    point_to_point = is_latency(test) or test in ("bw", "bibw", "mbw_mr")
    return 1 << 22 if point_to_point or test.endswith(("_bw", "_bibw")) else 1 << 20


def facts(text: str) -> dict[str, Parameter]:
    body = text.lstrip("# ")[:300]
    for pattern, keys in _FACTS:
        if (match := pattern.match(body)) is not None:
            return {
                key: int(value) if value.isdecimal() else excerpt(value, 60)
                for key, value in zip(keys, match.groups(), strict=True)
            }
    return {}


def contradiction(row: dict[str, str]) -> str:
    for kind, unit in (("Latency", "Latency"), ("Comm.", "Pure Comm.")):
        low, high = row.get(f"Min {kind}(us)", ""), row.get(f"Max {kind}(us)", "")
        mean = row.get(f"Avg {kind}(us)") or row.get(f"{unit}(us)", "")
        if low and high and mean and not between(low, mean, high):
            return f"the mean {mean} us is not between minimum {low} us and maximum {high} us"
    rate, messages = row.get("MB/s"), row.get("Messages/s")
    if rate and messages and (size := number(row.get("Size", "0"))):
        ends = [end * size / 1e6 for end in last_digit(messages)]
        if not agree(rate, *ends):
            return (
                f"the log prints {rate} MB/s, but {messages} messages/s of {size:.0f} B are "
                f"{(number(messages) or 0) * size / 1e6:.6g} MB/s"
            )
    return _overlap(row)


def _overlap(row: dict[str, str]) -> str:
    # osu_util_mpi.c, print_stats_nbc: 100 - (overall - compute) / pure communication * 100.
    printed = row.get("Overlap(%)")
    overall, compute, pure = (number(row.get(key, "")) for key in ("Overall(us)", "Compute(us)", "Pure Comm.(us)"))
    if not printed or overall is None or compute is None or not pure:
        return ""
    polling = number(row.get("MPI_Test(us)", "0")) or 0.0
    slack = 0.5 + 100 * 0.03 / pure
    # The test time is a part of the compute time in some versions.
    implied = [max(0.0, 100 - (overall - c) / pure * 100) for c in (compute, compute - polling)]
    value = number(printed)
    if value is None or any(abs(value - overlap) <= slack for overlap in implied):
        return ""
    return f"the log prints {printed} % overlap, but its times give {implied[0]:.2f} %"
