"""Numbers in logs: exact unit conversion, physical limits, checks of a rate against a time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from transect.domain.metrics import Direction, metric
from transect.hpc.base import LogMetric, Normalised

# A floating-point number as C and Fortran print it, with nan and inf. No capturing group.
NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}|[nN]a[nN]|[iI]nf(?:inity)?)(?:[eE][-+]?\d{1,4})?"
# The same where it is all of the digits: a decimal comma, or one between thousands, would leave a part of them, which
# is a value, and a wrong one. For lines in which commas do not stand between numbers.
UNCUT = rf"{NUMBER}(?![.,]?\d)"

# Log unit -> (unit of the metric registry, factor). MB are 10^6 bytes, MiB 2^20.
UNITS: dict[str, tuple[str, Decimal]] = {
    **{f"{p}FLOP/s": ("FLOP/s", Decimal(10) ** e) for p, e in (("", 0), ("M", 6), ("G", 9), ("T", 12), ("P", 15))},
    **{f"{p}B/s": ("B/s", Decimal(10) ** e) for p, e in (("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12))},
    **{f"{p}iB/s": ("B/s", Decimal(2) ** e) for p, e in (("K", 10), ("M", 20), ("G", 30), ("T", 40))},
    **{f"{p}s": ("s", Decimal(10) ** e) for p, e in (("", 0), ("m", -3), ("u", -6), ("n", -9))},
    # Bits, as networks count them.
    "Gb/s": ("B/s", Decimal(125_000_000)),
    "Mpps": ("1/s", Decimal(10) ** 6),
    "GUP/s": ("1/s", Decimal(10) ** 9),
    "1/s": ("1/s", Decimal(1)),
    "kIOPS": ("1/s", Decimal(1000)),
    "%": ("1", Decimal("0.01")),
    "min": ("s", Decimal(60)),
    "TEPS": ("1/s", Decimal(1)),
    "Mop/s": ("1/s", Decimal(10) ** 6),
    "1": ("1", Decimal(1)),
}

# Metric of the registry -> (lowest, highest, why), in its unit. A value outside is far from what the
# machines of today do. That is a guess: such a run is `suspicious`, and refused only where a study asks for it.
LIMITS: dict[str, tuple[float, float, str]] = {
    "flops": (1.0, 1e20, "the fastest machine of 2025 reaches 2e18 FLOP/s in HPL, 2e19 in HPL-MxP"),
    "memory_bandwidth": (1.0, 1e16, "a GPU of 2025 reaches 1e13 B/s"),
    "network_bandwidth": (1.0, 1e14, "a node of 2025 reaches 1e12 B/s to its neighbours"),
    "network_latency": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "message_time": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "allreduce_time": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "benchmark_time": (0.0, 1e9, "1e9 s are 31 years"),
    "update_rate": (1.0, 1e16, "the fastest machine of 2025 is near 1e14 updates per second"),
    "storage_bandwidth": (0.0, 1e15, "the fastest file system of 2025 reaches 4e13 B/s"),
    "metadata_rate": (0.0, 1e10, "the fastest file system of 2025 is near 1e8 operations per second"),
    "io500_score": (0.0, 1e7, "the best of 2025 is near 4e4"),
    "collective_time": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "operation_time": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "collective_bandwidth": (0.0, 1e15, "a node of 2025 reaches 1e13 B/s between its GPUs"),
    "message_rate": (0.0, 1e12, "a node of 2025 sends near 1e9 messages per second"),
    "overlap": (0.0, 1.0, "it is a share"),
    "traversal_rate": (1.0, 1e16, "the fastest machine of 2025 is near 2e14 edges per second"),
    "mixed_flops": (1.0, 1e20, "the fastest machine of 2025 reaches 2e19 FLOP/s in HPL-MxP"),
    "sparse_flops": (1.0, 1e18, "the fastest machine of 2025 reaches 2e16 FLOP/s in HPCG"),
    "kernel_flops": (1.0, 1e20, "no application outruns the fastest machine's peak"),
    "operation_rate": (0.0, 1e20, "no benchmark counts more than the fastest machine's peak"),
    "samples_per_second": (0.0, 1e10, "no training run of 2025 is near a billion samples per second"),
    "throughput": (0.0, 1e10, "no runtime of 2025 is near a billion samples per second"),
    "latency": (1e-9, 1e6, "light travels 30 cm in 1e-9 s"),
    "residual": (0.0, math.inf, "a norm is not negative"),
}

_TIMES = ("s", "ms", "us", "ns", "min")
# Programs round and count lower-order terms differently: this much is no contradiction.
_SLACK = 1e-3


def number(printed: str) -> float | None:
    """Read a printed number; None when it is no number or not finite."""
    try:
        value = float(printed)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_PLAIN = re.compile(r"-?\d{1,20}(?:\.(\d{0,20}))?", re.ASCII)


def last_digit(printed: str) -> tuple[float, float]:
    """Return the lowest and highest number that a printed one may stand for.

    One unit of its last digit to either side: programs round, and some cut off. Everything for what is
    no number.
    """
    plain = _PLAIN.fullmatch(printed)
    if plain is not None:
        # Whole numbers divide exactly, as decimals subtract.
        digits, scale = int(printed.replace(".", "", 1)), 10 ** len(plain[1] or "")
        return (digits - 1) / scale, (digits + 1) / scale
    try:
        exact = Decimal(printed)
        exponent = exact.as_tuple().exponent
        if not isinstance(exponent, int):
            return -math.inf, math.inf
        unit = Decimal(1).scaleb(exponent)
        return float(exact - unit), float(exact + unit)
    except (InvalidOperation, ArithmeticError):
        return -math.inf, math.inf


def log_metric(
    name: str,
    printed: str,
    unit: str,
    direction: Direction | None = None,
    *,
    registered: str | None = None,
    size: int | None = None,
    phase: str | None = None,
    precision: str | None = None,
) -> LogMetric | None:
    """Make a metric from the digits of a log; None when they are no finite number.

    Without a direction less is better of a time, and more of anything else. `registered` names the metric of the
    registry to convert to. Raises KeyError for a unit that
    is not in `UNITS` and BadInput for a metric that is not registered: faults of the parser.
    """
    value = number(printed)
    if value is None:
        return None
    normalised = None
    if registered is not None:
        base, factor = _scale(unit, registered)
        if value and factor is not None:
            value_of_base = float(Decimal(printed) * factor)
        else:
            value_of_base = value + 0.0  # which makes -0 a 0
        if math.isfinite(value_of_base):
            normalised = Normalised(registered, value_of_base, base)
    direction = direction or (Direction.LOWER if unit in _TIMES else Direction.HIGHER)
    return LogMetric(name, value, printed, unit, direction, size, phase, precision, normalised)


@lru_cache(maxsize=256)
def _scale(unit: str, registered: str) -> tuple[str, Decimal | None]:
    """Return the unit of a registered metric and the factor to it, None for 1."""
    base, factor = UNITS[unit]
    if metric(registered).unit != base:
        raise ValueError(f"{unit} cannot be converted to the unit of {registered}, {base}")
    return base, None if factor == 1 else factor


def _label(metric: LogMetric) -> str:
    if metric.phase and metric.phase not in metric.name:
        return f"{metric.phase} {metric.name}"
    return metric.name


def impossible(metric: LogMetric) -> str | None:
    """Say why no machine and no rule gives such a value, or return None.

    Of what parsers hand over nothing is negative, and a rate, a bandwidth or a time that counts is not zero
    where its limit excludes it.
    """
    known = metric.normalised and LIMITS.get(metric.normalised.name)
    if metric.value < 0 and (metric.normalised is None or known):
        return f"{_label(metric)} = {metric.printed} {metric.unit} is negative"
    if metric.value == 0 and known and known[0] > 0:
        return f"{_label(metric)} = {metric.printed} {metric.unit} is no measurement"
    return None


def doubtful(metric: LogMetric, limits: Mapping[str, tuple[float, float, str]]) -> str | None:
    """Say which of the limits a value breaks, or return None."""
    if metric.normalised is None or metric.normalised.name not in limits:
        return None
    low, high, why = limits[metric.normalised.name]
    if low <= metric.normalised.value <= high:
        return None
    outside = f"is outside [{low:g}, {high:g}] {metric.normalised.unit}"
    return f"{_label(metric)} = {metric.printed} {metric.unit} {outside}" + (f": {why}" if why else "")


def contradiction(work: float, rate: str, time_s: str, unit: str) -> str | None:
    """Compare a printed rate with `work` over the printed time, allowing for printed digits.

    `work` is in `unit` times seconds, e.g. GFLOP. Returns a sentence with both numbers, or None.
    """
    rate_low, rate_high = last_digit(rate)
    time_low, time_high = last_digit(time_s)
    if not math.isfinite(time_high) or time_high <= 0 or not math.isfinite(work):
        return None
    implied_low = work / time_high * (1 - _SLACK)
    implied_high = work / time_low * (1 + _SLACK) if time_low > 0 else math.inf
    if rate_high >= implied_low and rate_low <= implied_high:
        return None
    exact = number(time_s)
    implied = f"{work / exact:.6g}" if exact else f"at least {implied_low:.6g}"
    work_over_time = f"its work over its time of {time_s} s is {implied} {unit}"
    return f"the log prints {rate} {unit}, but {work_over_time}"
