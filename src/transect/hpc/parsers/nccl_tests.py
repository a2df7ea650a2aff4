"""nccl-tests and rccl-tests: every collective, in place and out of place.

Rows are read by the names in the header, for versions have between 11 and 22 columns and leave
some empty. Algorithm and bus bandwidth are recomputed (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transect.hpc.base import PARSERS, LogMetric, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers import _nccl_rows as rows
from transect.hpc.parsers._nccl_rows import Test
from transect.hpc.parsers._network import NetworkOutput, NetworkParser, agree, is_number, stop_of, twice, whole
from transect.hpc.rules import rule
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, impossible, number

_SETTINGS = re.compile(
    r"#?\s*nThreads? (\d{1,9}) nGpus (\d{1,9}) minBytes (\d{1,19}) maxBytes (\d{1,19})"
    r" step: (\d{1,19})\((factor|bytes)\) warmup iters: (\d{1,9}) iters: (\d{1,9})(.{0,200})"
)
_SETTING = re.compile(r"(agg iters|validation|graph|unalign): (-?\d{1,9})")
_FAILURE = re.compile(
    r"(?:\S{1,80}: )?(Test (?:NCCL|CUDA|HIP|RCCL|MPI|timeout)?\s?failure .{0,200}|Test timeout.{0,80})"
)
_PID = re.compile(r"\.\. \S{1,80} pid (\d{1,9}): (Test (?:failure|timeout).{0,80})")
_KEYS = ("nThread", "nGpus", "minBytes", "maxBytes", "step", "step_type", "warmup iters", "iters")


@dataclass(kw_only=True)
class _Output(NetworkOutput):
    """What programs that print at once have printed; they are told apart by process."""

    tests: list[Test] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tests.append(Test(line=self.line))

    def begins(self, text: str) -> bool:
        """Tell whether a line begins another program after the present ones."""
        together = self.tests[-1].just_started()
        return not together and self._starts(text)

    def _starts(self, text: str) -> bool:
        """Tell whether a line begins another program: the present one has had that line."""
        last = self.tests[-1]
        if text.startswith("# nccl-tests version"):
            return last.started()
        if text.startswith("# Collective test starting"):
            return bool(last.op or last.settings or last.rows)
        if _SETTINGS.match(text):
            return bool(last.settings or last.rows)
        # A program prints one head. A page may have cut the first table's end away.
        headed = all(t.columns or t.failures for t in self.tests) and any(t.rows for t in self.tests)
        return headed and bool(rows.header(text))

    def read(self, line: Line, text: str) -> None:
        """Take in one line; it may begin a program beside the one that has just begun."""
        if self._starts(text):
            self.tests.append(Test(line=line.number))
        super().read(line, text)

    @rule(
        r"#\s+Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?(?:Pid\s+(\d{1,9})\s+)?on\s+(\S{1,80})"
        r"\s+device\s+\d{1,5}\s+\[[^\]]{1,24}\]\s*(.{0,80})",
        wanted="#",
    )
    def device(self, match: re.Match[str], line: Line) -> None:
        rank, group, pid = int(match[1]), int(match[2] or 0), match[3] or ""
        # Several programs without MPI each print a rank 0.
        test = next((t for t in self.tests if rank not in t.ranks.get(group, ())), self.tests[-1])
        test.ranks.setdefault(group, set()).add(rank)
        if pid:
            test.pids.add(pid)
        test.facts.setdefault("device", excerpt(match[5], 80))
        if re.search(r"\bAMD\b|Instinct|Radeon|gfx\d", match[5]):
            test.variant = "rccl"

    @rule(r"#", wanted="")
    def head(self, match: re.Match[str], line: Line) -> bool:
        if names := rows.header(match.string):
            target = next((t for t in self.tests if not t.columns and not t.failures), self.tests[-1])
            target.columns, target.width = names, len(line.text.rstrip())
            if names[0] == "bytes":
                target.units = {"time": "ms", "bw": "GB/s"}  # the versions of 2017 and 2018
            return True
        if units := rows.units(match.string):
            next((t for t in reversed(self.tests) if t.columns), self.tests[-1]).units = units
        return bool(units)

    @rule(r"# nccl-tests version (\S{1,30})(?:\s+nccl-headers=(\d{1,9}))?(?:\s+nccl-library=(\d{1,9}))?", wanted="")
    def version_line(self, match: re.Match[str], line: Line) -> None:
        test = self.tests[-1]
        test.version = match[1]
        test.facts |= {k: int(v) for k, v in (("nccl-headers", match[2]), ("nccl-library", match[3])) if v}

    @rule(r"# Collective test starting: (\S{1,60})", wanted="")
    def starting(self, match: re.Match[str], line: Line) -> None:
        self.tests[-1].op = match[1]

    @rule(_SETTINGS, wanted=r"nThreads? \d")
    def settings(self, match: re.Match[str], line: Line) -> None:
        values = match.groups()[: len(_KEYS)]
        settings = {key: int(v) if v.isdecimal() else v for key, v in zip(_KEYS, values, strict=True)}
        self.tests[-1].settings = settings | {key: int(v) for key, v in _SETTING.findall(match[9])}

    @rule(r"#?\s*rccl-tests:? [Vv]ersion:?\s*(\S{1,60})?", wanted=r"n?rccl-tests:")
    def of_amd(self, match: re.Match[str], line: Line) -> None:
        test = self.tests[-1]
        test.variant, test.version = "rccl", test.version or match[1] or ""

    @rule(
        r"#?\s*(?:NCCL Tests compiled with NCCL|([RN])CCL version)\s*:?\s*(\d[\w.+\-:]{0,60})",
        wanted=r"[RN]CCL version",
    )
    def library(self, match: re.Match[str], line: Line) -> None:
        test = self.tests[-1]
        test.facts["nccl_version"] = match[2]
        test.variant = "rccl" if match[1] == "R" else test.variant

    @property
    def now(self) -> Test:
        return next((t for t in self.tests if t.columns and not t.failures), self.tests[-1])

    @rule(r"#?\s*Out of bounds values\s*:\s*(-?\d{1,12}) (OK|FAILED)", wanted="Out of bounds values")
    def bounds(self, match: re.Match[str], line: Line) -> None:
        self.now.bounds = (match[1], match[2])

    @rule(r"#?\s*Avg bus bandwidth\s*:\s*(\S{1,24})\s*(OK|FAILED)?", wanted="Avg bus bandwidth")
    def mean(self, match: re.Match[str], line: Line) -> None:
        if not line.cut:
            self.now.mean = match[1]
            if match[2] == "FAILED":
                self.now.warnings.append("the average is below 0.9 times NCCL_TESTS_MIN_BW")

    @rule(_PID, wanted=r"\.\. \S{1,80} pid \d")
    def process(self, match: re.Match[str], line: Line) -> None:
        owner = next((t for t in self.tests if match[1] in t.pids), self.tests[-1])
        what = excerpt(self.tests[-1].rumour or match[2])
        if what not in owner.failures:
            owner.failures.append(what)

    @rule(_FAILURE, wanted=r"(?:[\w.\-]{1,80}: Test |Test (?:NCCL|CUDA|HIP|RCCL) failure)")
    def failure(self, match: re.Match[str], line: Line) -> None:
        self.tests[-1].rumour = excerpt(match[1])

    def stop(self, text: str, most: int = 5) -> None:
        self.now.stops = [*self.now.stops[: most - 1], text]

    # The second is half of a row, after other output.
    @rule(r"\d", wanted=rf"(?:\d{{1,19}}[ \t]+\d{{1,19}}[ \t]+[a-z]|{NUMBER}[ \t]+{NUMBER}[ \t]+{NUMBER})")
    def row(self, match: re.Match[str], line: Line) -> bool | None:
        test = self.now
        if not test.columns:
            return False
        row = rows.row(match.string, test.columns)
        pieces = row is None
        if row is None and not line.cut:
            row = test.pieced(match.string)
            if row is None:
                return None
        if row is None or not (pieces or whole(line, test.width)):
            test.cut = test.cut or line.cut
            test.lost += not line.cut
            return None
        if early := self.block.take_trouble():
            test.early = test.early or early
        test.stops = []
        test.rows.append(row)
        test.width = test.width if pieces else len(line.text.rstrip())
        return None

    def runs(self) -> Iterator[Run]:
        return (_close(self.block, test) for test in self.tests if test.started())


@PARSERS.register("nccl-tests")
class NcclTests(NetworkParser):
    """Reads one run per start of a test program."""

    benchmark = "nccl-tests"
    description = "nccl-tests and rccl-tests: collectives between GPUs"
    validity_notes = Proof(
        identity="its version line, `Collective test starting:`, `nThread 1 nGpus 8 minBytes`, the head of its table",
        success="`Avg bus bandwidth` under a table with rows; bus over algorithm bandwidth is that of the collective and its ranks",
        failure="wrong or out-of-bounds values, one rank only, bandwidths that size and time refute; `Test NCCL failure` is `failed`",
    )
    programs = (
        r"(?:all_reduce|all_gather|broadcast|reduce_scatter|reduce|alltoall|sendrecv|scatter|gather|hypercube)_perf(?:_mpi)?",
    )
    output = _Output
    start_patterns = (
        r"# nccl-tests version ",
        r"#?[ \t]*rccl-tests:? [Vv]ersion",
        r"# Collective test starting: ",
        r"#?[ \t]*nThreads? \d+ nGpus \d+ minBytes ",
        r"#[ \t]+size[ \t]+count[ \t(]",
        r"#[ \t]+bytes[ \t]+N[ \t]+type[ \t]",
    )

    def is_stop(self, text: str) -> bool:
        """Tell whether a line says why a program stopped."""
        return bool(_PID.match(text) or _FAILURE.match(text) or stop_of(text))


def _close(block: Block, test: Test) -> Run:
    rumour = "" if test.failures else test.rumour
    draft = Draft(
        block=block,
        line=test.line,
        variant=test.variant,
        version=test.version,
        warnings=test.warnings[:5],
        stops=[*test.failures, rumour, *test.stops, block.take_trouble()],
    )
    draft.mark_invalid(_problem(test, draft.metrics))
    after = f"after {len(test.rows)} rows" if len(test.rows) else "before the first row"
    if not (test.ended() and test.rows):
        if test.ended() and not draft.stop:
            draft.mark_no_result("the test concluded without a row")
        draft.mark_truncated(after)
    test.lost += bool(test.piece)
    parameters = draft.parameters
    if test.op:
        parameters["op"] = test.op.removesuffix("_mpi").removesuffix("_perf")
        parameters["program"] = test.op
    if test.ranks:
        parameters["ranks"] = test.size()
    for key in ("type", "redop", "root"):
        if len(values := {row.kind.get(key, "") for row in test.rows}) == 1:
            parameters[key] = values.pop()
    parameters.update(test.settings)
    parameters.update(test.facts)
    if test.lost:
        draft.warnings.append(f"{test.lost} lines of the table could not be read")
    # Small sizes are rounded to the same one.
    if doubled := twice((r.size, *r.kind.values()) for r in test.rows if r.size > 1024):
        draft.suspicions.append(doubled)
    if test.early:
        draft.warnings.append(f"before a row: {test.early}")
    draft.warn_stop("after the result")
    return draft.run()


def _problem(test: Test, metrics: list[LogMetric]) -> str:
    if test.mean and is_number(test.mean):
        metric = rows.average(test.mean)
        metrics += [metric] if metric else []
    problem = ""
    if test.bounds and (test.bounds[1] == "FAILED" or test.bounds[0] != "0"):
        problem = f"validation: {test.bounds[0]} values out of bounds: {test.bounds[1]}"
    if test.mean and number(test.mean) is None:
        problem = problem or f"the average bus bandwidth is {test.mean}"
    alone = len({tuple(row.kind.items()) for row in test.rows}) == 1
    ranks = test.size()
    if ranks == 1 and test.rows:
        problem = problem or "one rank only: nothing is communicated (was MPI left out?)"
    for row in test.rows:
        for side in row.sides:
            for metric in rows.metrics(row, side, test.units, alone=alone):
                metrics.append(metric)
                if (why := impossible(metric)) is not None:
                    problem = problem or f"size {row.size} {side.phase}: {why}"
            if why := rows.wrong(test.op, ranks, row, side, test.units):
                problem = problem or f"size {row.size} {side.phase}: {why}"
    if not problem and test.mean and not test.lost:
        values = [v for r in test.rows for s in r.sides if (v := number(s.cells["busbw"])) is not None]
        mean = sum(values) / len(values) if values else 0.0
        if test.whole() and values and not agree(test.mean, mean - 0.01, mean + 0.01, 5e-3):
            problem = (
                f"the log prints an average bus bandwidth of {test.mean} GB/s, but the mean of its "
                f"{len(values)} values is {mean:.6g} GB/s"
            )
    return problem
