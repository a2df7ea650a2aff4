"""Names in the output of the Intel MPI Benchmarks, and what their tables repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transect.domain.metrics import Direction
from transect.hpc.parsers._network import Column, agree, between
from transect.hpc.values import last_digit, number

_UP, _DOWN = Direction.HIGHER, Direction.LOWER

# One message crosses at a time (or one each way), or a neighbour exchange.
_MESSAGE = re.compile(
    r"ping(?:pong|ping)|unidir|bidir|(?:one|all)_(?:put|get)|(?:put|get)_(?:local|all)|(?:truly_)?passive",
    re.IGNORECASE,
)
_KNOWN = re.compile(
    r"(?:Multi-)?(?:ping|sendrecv|exchange|all(?:reduce|gather|to|_)|i?(?:all|bcast|barrier|reduce"
    r"|gather|scatter|neighbor)|reduce|gather|scatter|bcast|barrier|uniband|biband|window|unidir"
    r"|bidir|accumulate|s_(?:i?write|i?read)|p_(?:i?write|i?read)|c_(?:i?write|i?read)|open_close"
    r"|one_(?:put|get)|put_(?:local|all)|get_(?:local|all)|fetch|compare|get_accumulate|truly"
    r"|halo|birandom|corandom|unirandom|randomorder|stencil|corrected|ialltoall|set_|stresspin"
    r"|multi|persistent|sparse)",
    re.IGNORECASE,
)
# Messages of one size that count as throughput in one time (IMB user guide, "Benchmark
# Definitions"): name -> scale_bw.
_SCALE = {"pingpong": 1, "pingponganysource": 1, "pingpongspecificsource": 1, "sendrecv": 2, "exchange": 4}
_TOKENS = ("Group", "#bytes", "#repetitions", "defects")  # beside those with a unit


def known(name: str) -> bool:
    """Tell whether the suite has a benchmark of that name, or one much like it."""
    return _KNOWN.match(name) is not None


def header(text: str) -> list[str]:
    """Return the columns when a line is the header of a table, else nothing."""
    if not text.startswith(("#bytes", "#repetitions", "Group")) or "#repetitions" not in text[:60]:
        return []
    tokens = text.split(None, 16)[:16]
    return tokens if all(t in _TOKENS or "[" in t or "/" in t for t in tokens) else []


def column(name: str, test: str, part: str, unit: str) -> Column | None:
    """Return the metric of a column; None for sizes and group numbers."""
    storage, message = part.upper().endswith("IO"), _MESSAGE.match(test) is not None
    if name.lower() == "mbytes/sec":
        rate = "storage_bandwidth" if storage else "network_bandwidth"
        return Column("bandwidth", unit, rate)
    if name == "Msg/sec":
        return Column("message_rate", "1/s", "message_rate")
    if name == "overlap[%]":
        return Column("overlap", "%", "overlap")
    if name == "#repetitions":
        return Column("repetitions", "1", direction=Direction.NEUTRAL)
    if name == "defects":
        return Column("defects", "1", direction=_DOWN)
    if not name.endswith("[usec]"):
        return None
    registered = None
    if name in ("t[usec]", "t_avg[usec]", "t_pure[usec]") and test and not storage:
        registered = "message_time" if message else "collective_time"
    return Column(name[: -len("[usec]")], "us", registered)


def bandwidth_unit(
    test: str, columns: Sequence[str], rows: Sequence[Sequence[str]], processes: int = 0
) -> tuple[str, str]:
    """Tell MB/s from MiB/s by size over time, and what contradicts both. `processes`: 0 where they are not known."""
    rate = next((i for i, name in enumerate(columns) if name.lower() == "mbytes/sec"), None)
    time = next((i for i, name in enumerate(columns) if name in ("t[usec]", "t_max[usec]")), None)
    if rate is None or time is None or "#bytes" not in columns:
        return "MB/s", ""
    place = columns.index("#bytes")
    if "Msg/sec" in columns:
        count = columns.index("Msg/sec")
        found = (_of_pairs(test, row[place], row[time], row[rate], row[count], processes) for row in rows)
        return "MB/s", next(filter(None, found), "")
    scale = _SCALE.get(test.lower())
    votes = {"MB/s": 0, "MiB/s": 0}
    wrong = ""
    for row in rows:
        size, low, high = int(row[place]), *last_digit(row[time])
        if not size or low <= 0:
            continue
        # Of a benchmark whose scale is not known, any whole number to 4 will do for the unit.
        fits = [
            unit
            for unit, mega in (("MB/s", 1.0), ("MiB/s", 1e6 / 2**20))
            if any(
                agree(row[rate], k * mega * size / high, k * mega * size / low)
                for k in ([scale] if scale else (1, 2, 4))
            )
        ]
        for unit in fits:
            votes[unit] += 1
        if not fits and scale and not wrong:
            implied = scale * size / (number(row[time]) or 1.0)
            wrong = (
                f"size {size}: the log prints {row[rate]} Mbytes/sec, but {scale} times its size "
                f"over {row[time]} us is {implied:.6g} MB/s"
            )
    return ("MiB/s" if votes["MiB/s"] > votes["MB/s"] else "MB/s"), wrong


def _of_pairs(test: str, size: str, time: str, bandwidth: str, messages: str, processes: int) -> str:
    """Say what contradicts itself in a row of IMB-P2P, whose rates are those of all pairs together.

    They come of the slowest process, the time is the mean of all (imb_p2p_pingpong.c).
    """
    low, high = last_digit(messages)
    if not agree(bandwidth, int(size) * low / 1e6, int(size) * high / 1e6):
        implied = int(size) * (number(messages) or 0.0) / 1e6
        return f"size {size}: the log prints {bandwidth} Mbytes/sec, but its messages are {implied:.6g} MB/s"
    shortest, longest = last_digit(time)
    if test.lower() != "pingpong" or not processes or shortest <= 0:
        return ""
    if not agree(messages, 0.5e6 / longest, processes / 2 * 1e6 / shortest):
        most = processes / 2 * 1e6 / (number(time) or 1.0)
        return (
            f"size {size}: the log prints {messages} messages per second, but {processes} processes "
            f"that take {time} us for each send {most:.6g} at most"
        )
    return ""


def contradiction(row: dict[str, str]) -> str:
    low, mean, high = (row.get(f"t_{which}[usec]") for which in ("min", "avg", "max"))
    if low and mean and high and not between(low, mean, high):
        return f"t_avg {mean} us is not between t_min {low} us and t_max {high} us"
    printed = number(row.get("overlap[%]", "nan"))
    whole, pure, cpu = (number(row.get(f"t_{w}[usec]", "nan")) for w in ("ovrl", "pure", "CPU"))
    if printed is None or whole is None or pure is None or cpu is None or min(pure, cpu) <= 0:
        return ""
    # IMB_output.c: the shorter or the longer of the two, by version.
    implied = [100 * max(0.0, min(1.0, (pure + cpu - whole) / base)) for base in (max(pure, cpu), min(pure, cpu))]
    slack = 0.5 + 100 * 0.04 / min(pure, cpu)
    if any(abs(printed - overlap) <= slack for overlap in implied):
        return ""
    return f"the log prints {printed:g} % overlap, but its times give {implied[0]:.2f} %"
