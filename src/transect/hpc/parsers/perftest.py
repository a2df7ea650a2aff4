"""perftest: `ib_write_bw`, `ib_read_lat` and their likes, one size or a sweep (`-a`), one way or both.

`MB/sec` counts 2^20 bytes (perftest_resources.c: `format_factor`) and is called `MiB/sec` today, `Gb/sec` 10^9 bits. The rate of messages times
their size is the bandwidth: both are recomputed from each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._network import between
from transect.hpc.rules import searched
from transect.hpc.text import excerpt
from transect.hpc.values import NUMBER, last_digit, number

_TITLE = re.compile(
    r"((?:RDMA_Write|RDMA_Read|Send|Atomic|Raw ?Ethernet)[\w &]{0,40}?) (Bidirectional )?(BW|Latency) Test\s*$"
)
_HEAD = re.compile(r"#bytes[ \t]+(?:#sl[ \t]+)?#iterations[ \t]+(?:BW |t_)")
_COLUMNS = re.compile(
    r"#bytes|#sl|#iterations|(?:BW|MsgRate) ?(?:peak|average|Port\d)?\[(?:MB/sec|MiB/sec|Gb/sec|Mpps)\]|t_\w+\[usec\]|99(?:\.9)?% percentile\[usec\]"
    r"|CPU_Util\[%\]|tps average"
)
_ROW = re.compile(rf"\d{{1,12}}(?:\s+(?:{NUMBER})){{2,12}}\s*$")
_PAIR = re.compile(
    r"(Device|Number of qps|Connection type|Transport type|TX depth|Mtu|Link type|Dual-port|CQ Moderation|Max inline data"
    r"|Use (?:CUDA|ROCm) memory)"
    r"\s*: (\S{1,40})"
)
_RULE = re.compile(r"-{40,}\s*$")
_STOP = re.compile(
    r"(?:Couldn't |Failed |Unable |Completion with error|Failed status|Problems with|Did not detect)[^\n]{0,160}"
)
_UNITS = {"MB/sec": "MiB/s", "MiB/sec": "MiB/s", "Gb/sec": "Gb/s"}
_FACTORS = {"MiB/s": 2.0**20, "Gb/s": 1.25e8}


@PARSERS.register("perftest")
class Perftest(Parser):
    """Reads a table of bandwidths or latencies per run."""

    benchmark = "perftest"
    description = "perftest: ib_write_bw, ib_read_lat and their likes, bandwidth and latency of verbs"
    validity_notes = Proof(
        identity="`RDMA_Write BW Test` and its likes, the head of its table (`#bytes #iterations`)",
        success="rows up to the rule that ends the table",
        failure="a bandwidth that size and rate of messages refute, times that are not in their order",
    )
    programs = (r"ib_(?:write|read|send|atomic)_(?:bw|lat)", r"raw_ethernet_(?:bw|lat)")
    start_patterns = searched(_TITLE, _HEAD)
    line_patterns = (*start_patterns, *searched(_ROW, _PAIR, _RULE, _STOP), r"Dual-port|PCIe relax")

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per table."""
        draft: Draft | None = None
        columns: list[str] = []
        closed = False
        for line in block:
            text = line.text.strip()
            title, head = _TITLE.match(text), _HEAD.match(text)
            if title is not None or draft is None or (head is not None and columns):
                if draft is not None:
                    yield _run(draft, columns, closed)
                draft = Draft(block=block, line=line.number)
                columns, closed = [], False
            if title is not None:
                words = [title[1].lower(), "bidirectional" if title[2] else "", title[3].lower()]
                draft.variant = " ".join(word for word in words if word)
            elif head is not None:
                # Beside a column that is not known no number is known to be of which.
                columns = [] if _COLUMNS.sub("", text).strip() else _COLUMNS.findall(text)
                draft.variant = draft.variant or ("latency" if "t_" in text else "bw")
            elif columns and _ROW.match(text):
                if not closed and not line.cut:
                    _row(draft, dict(zip(columns, text.split(), strict=False)))
            elif _RULE.match(text):
                closed = closed or bool(draft.metrics)
            elif _STOP.match(text):
                draft.stops.append(excerpt(text))
            else:
                draft.parameters |= {key.lower().replace(" ", "_"): value for key, value in _PAIR.findall(text)}
        if draft is not None:
            yield _run(draft, columns, closed)


def _row(draft: Draft, cells: dict[str, str]) -> None:
    size = int(cells["#bytes"])
    if not any(name.startswith("BW peak") and not number(cells[name]) for name in cells):
        # A run of some seconds (`-D`) prints no peak: how often it did it is a result then, and no setting.
        draft.parameters["iterations"] = int(cells.get("#iterations", "0"))
    phase = f"sl {cells['#sl']}" if "#sl" in cells else None
    for column, printed in cells.items():
        name, _, unit = column.rstrip("]").partition("[")
        if name == "BW average":
            # 0.00 is a value below the digits that were printed.
            draft.add_metric(
                "bandwidth",
                printed,
                _UNITS[unit],
                size=size,
                phase=phase,
                registered="network_bandwidth" if number(printed) else None,
            )
            draft.mark_invalid(_rate_refuted(draft, size, printed, _UNITS[unit], cells))
        elif name == "BW peak" and number(printed):
            # It is not asked for where it is zero.
            draft.add_metric("bandwidth_peak", printed, _UNITS[unit], size=size, phase=phase)
        elif name == "MsgRate":
            draft.add_metric("message_rate", printed, "Mpps", registered="message_rate", size=size, phase=phase)
        elif unit == "usec":
            middle = name == ("t_typical" if "t_typical[usec]" in cells else "t_avg")
            # A read, as an atomic operation, is timed there and back (`rtt_factor`): no half of a round trip.
            half = not draft.variant.startswith(("rdma_read", "atomic", "latency"))
            known = "message_time" if middle and half and number(printed) else None
            draft.add_metric(name.replace("% percentile", "_percent"), printed, "us", registered=known, size=size)
    least, typical, most = order = [cells.get(f"t_{name}[usec]", "") for name in ("min", "typical", "max")]
    if all(order) and not between(least, typical, most):
        draft.mark_invalid(f"{size} bytes: t_min {order[0]}, t_typical {order[1]}, t_max {order[2]} are in no order")


def _rate_refuted(draft: Draft, size: int, printed: str, unit: str, cells: dict[str, str]) -> str | None:
    """Say why a bandwidth is not the size of a message times their rate."""
    rate = cells.get("MsgRate[Mpps]")
    if rate is None or not number(rate):
        return None
    low, high = (end * _FACTORS[unit] for end in last_digit(printed))
    below, above = (end * 1e6 * size for end in last_digit(rate))
    # Versions before 5 counted both ways in the bandwidth and one of them in the rate.
    ways = (1, 2) if "bidirectional" in draft.variant else (1,)
    if any(high * 1.001 >= below * way and low * 0.999 <= above * way for way in ways):
        return None
    implied = (number(rate) or 0.0) * 1e6 * size / _FACTORS[unit]
    return f"{size} bytes: the log prints {printed} {unit}, but {rate} Mpps of them are {implied:.6g} {unit}"


def _run(draft: Draft, columns: list[str], closed: bool) -> Run:
    sizes = [metric.size for metric in draft.metrics if metric.size is not None]
    smallest = next((metric for metric in draft.metrics if metric.normalised and metric.size == min(sizes)), None)
    if smallest is not None and smallest.normalised and smallest.normalised.name == "message_time":
        draft.add_metric("latency_smallest", smallest.printed, "us", registered="network_latency", size=smallest.size)
    draft.mark_impossible()
    if not draft.metrics:
        draft.mark_incomplete("no row of its table" if columns else "ends before its table")
    elif not closed and draft.stop:
        draft.mark_truncated(f"after {max(sizes)} bytes")
    elif not closed and draft.ok:
        draft.suspicions.append("the rule that ends its table is not there: more sizes may have followed")
    return draft.run()
