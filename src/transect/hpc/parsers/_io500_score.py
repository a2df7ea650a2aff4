"""The phases and scores of one IO500 run, and whether they agree with IO500's own rules.

The bandwidth score is the geometric mean of the four ior phases, the metadata score that of the
eight mdtest and find phases, the total the square root of their product (io500 main.c,
calc_score), in 2017 the product itself. A write phase has to last 300 s. IO500 itself marks what did not since it does so,
and its list has results from before: without such a mark it is a doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from transect.hpc.parsers._checks import Span, apart, geometric_mean, span
from transect.hpc.values import number

BANDWIDTH = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
METADATA = (
    "mdtest-easy-write",
    "mdtest-hard-write",
    "find",
    "mdtest-easy-stat",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)
MINIMUM_WRITE_S = 300.0
# Of an extended run; result.txt does not say which phases are scored.
_EXTENDED = (
    *(f"ior-rnd{size}-{way}" for size in ("4K", "1MB") for way in ("write", "read")),
    *("find-easy", "find-hard", "mdworkbench-bench"),
)
_WRITES = ("ior-easy-write", "ior-hard-write", "mdtest-easy-write", "mdtest-hard-write")
_SLACK = 1e-5


@dataclass(kw_only=True, slots=True)
class Phase:
    """One phase as printed."""

    value: str = ""
    unit: str = ""
    time_s: str = ""
    scored: bool | None = None  # None: the format does not say
    invalid: str = ""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True, slots=True)
class Score:
    """`[SCORE]` or `[SCOREX]` as printed."""

    bandwidth: str = ""
    metadata: str = ""
    total: str = ""
    unit: str = "GiB/s"
    invalid: bool = False

    def whole(self) -> bool:
        return bool(self.bandwidth and self.metadata and self.total)


@dataclass(kw_only=True)
class Outcome:
    """What one run of IO500 printed."""

    form: str = ""
    phases: dict[str, Phase] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    section: str = ""
    invalid: list[str] = field(default_factory=list)  # what the log says against the whole run
    errors: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)  # complaints before the line of their phase
    conflicts: list[str] = field(default_factory=list)
    headed: bool = False

    def complain(self, *texts: str) -> None:
        """Keep what the log says against the whole run: the first few."""
        self.invalid = [*self.invalid, *texts][:5]

    def found(self, names: tuple[str, ...]) -> dict[str, Phase]:
        """Return the phases of `names` that have a value: bash writes `_` for `-`."""
        by_name = {core(name): phase for name, phase in self.phases.items()}
        return {name: by_name[name] for name in names if name in by_name and by_name[name].value}


def core(name: str) -> str:
    """Return the name of a phase as the C version writes it."""
    return name.replace("_", "-")


def product_total(outcome: Outcome) -> bool:
    """Tell whether the total is the product of both scores and not its root: the rule of 2017."""
    score = outcome.scores.get("SCORE")
    ends = score and [span(printed) for printed in (score.bandwidth, score.metadata, score.total)]
    if not ends or ends[0] is None or ends[1] is None or ends[2] is None:
        return False
    low, high = (max(ends[0][i], 0.0) * max(ends[1][i], 0.0) for i in (0, 1))
    root = not apart(ends[2], (low**0.5, high**0.5), _SLACK)
    return not root and not apart(ends[2], (low, high), _SLACK)


def short_writes(outcome: Outcome) -> list[str]:
    """Name the official write phases that took less than IO500 asks for."""
    found = outcome.found(_WRITES).items()
    return [
        f"{name} took {phase.time_s} s, but IO500 asks for {MINIMUM_WRITE_S:g} s of writing"
        for name, phase in found
        if (number(phase.time_s) or MINIMUM_WRITE_S) < MINIMUM_WRITE_S
    ]


def wrong(outcome: Outcome) -> str | None:
    """Say why a complete run is invalid, or return None."""
    if outcome.invalid:
        return f"the log says: {'; '.join(outcome.invalid[:3])}"
    if outcome.conflicts:
        return outcome.conflicts[0]
    official = outcome.found((*BANDWIDTH, *METADATA))
    for name, phase in official.items():
        if phase.invalid:
            return f"{name}: {phase.invalid}"
        if number(phase.value) is None:
            return f"{name}: the result is {phase.value}"
    for name, phase in official.items():
        if number(phase.value) == 0:
            return f"{name}: the result is {phase.value}"
    missing = [name for name in (*BANDWIDTH, *METADATA) if name not in official]
    if missing and outcome.headed:
        return f"no result of the phases {', '.join(missing)}"
    for name, score in outcome.scores.items():
        if (why := _score(outcome, name, score)) is not None:
            return f"[{name}] {why}"
    return None


def _score(outcome: Outcome, name: str, score: Score) -> str | None:
    for label, printed in (("BW", score.bandwidth), ("MD", score.metadata), ("", score.total)):
        if number(printed) is None:
            return f"{label or 'the total'} is {printed}"
    if score.unit.startswith("M"):
        return None  # a draft of 2017: other units, other formula
    bandwidth, metadata = _scored(outcome, name)
    for label, phases, names, printed in (
        ("bandwidth", bandwidth, BANDWIDTH, score.bandwidth),
        ("IOPS", metadata, METADATA, score.metadata),
    ):
        if len(phases) < len(names):
            continue
        mean, near = geometric_mean(phases), span(printed)
        if near is not None and apart(near, mean, _SLACK):
            middle = (mean[0] + mean[1]) / 2
            return f"the log prints {label} {printed}, but its phases' geometric mean is {middle:.6g}"
    ends = span(score.bandwidth), span(score.metadata), span(score.total)
    if ends[0] is None or ends[1] is None or ends[2] is None:
        return None
    low, high = (max(ends[0][i], 0.0) * max(ends[1][i], 0.0) for i in (0, 1))
    if not apart(ends[2], (low, high), _SLACK):
        return None  # 2017's rule
    if apart(ends[2], (low**0.5, high**0.5), _SLACK):
        middle = (low**0.5 + high**0.5) / 2
        return f"the log prints the total {score.total}, but sqrt(BW * MD) is {middle:.6g}"
    return None


def _scored(outcome: Outcome, name: str) -> tuple[list[Span], list[Span]]:
    """Return the values that enter a score: bandwidth and metadata, as intervals."""
    official: set[str] = {*BANDWIDTH, *METADATA}
    extended = {core(n) for n, p in outcome.phases.items() if p.scored} or {*_EXTENDED, *official}
    wanted = official if name == "SCORE" else extended
    out: tuple[list[Span], list[Span]] = ([], [])
    for phase_name, phase in outcome.phases.items():
        near = span(phase.value)
        if core(phase_name) in wanted and near is not None and (number(phase.value) or 0) > 0:
            out[0 if core(phase_name).startswith("ior") else 1].append(near)
    return out
