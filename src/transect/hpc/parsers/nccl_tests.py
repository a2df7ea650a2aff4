"""nccl-tests and rccl-tests: every collective, in place and out of place.

Rows are read by the names in the header, for versions have between 11 and 22 columns and leave
some empty. Algorithm and bus bandwidth are recomputed (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transect.hpc.base import PARSERS, LogMetric, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers import _nccl_rows as rows
from transect.hpc.parsers._nccl_rows import Test
from transect.hpc.parsers._network import MOST_ROWS, MOST_TOGETHER, STOPS, agree, is_number, stop_of, twice, whole
from transect.hpc.ranks import per_rank
from transect.hpc.text import Line, excerpt
from transect.hpc.values import NUMBER, impossible, number

_VERSION = re.compile(r"# nccl-tests version (\S{1,30})(?:\s+nccl-headers=(\d{1,9}))?(?:\s+nccl-library=(\d{1,9}))?")
_ROCM = re.compile(r"#?\s*rccl-tests:? [Vv]ersion:?\s*(\S{1,60})?")
_LIBRARY = re.compile(r"#?\s*(?:NCCL Tests compiled with NCCL|([RN])CCL version)\s*:?\s*(\d[\w.+\-:]{0,60})")
_STARTING = re.compile(r"# Collective test starting: (\S{1,60})")
_SETTINGS = re.compile(
    r"#?\s*nThreads? (\d{1,9}) nGpus (\d{1,9}) minBytes (\d{1,19}) maxBytes (\d{1,19})"
    r" step: (\d{1,19})\((factor|bytes)\) warmup iters: (\d{1,9}) iters: (\d{1,9})(.{0,200})"
)
_SETTING = re.compile(r"(agg iters|validation|graph|unalign): (-?\d{1,9})")
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d{1,7})\s+(?:Group\s+(\d{1,7})\s+)?(?:Pid\s+(\d{1,9})\s+)?on\s+(\S{1,80})"
    r"\s+device\s+\d{1,5}\s+\[[^\]]{1,24}\]\s*(.{0,80})"
)
_BOUNDS = re.compile(r"#?\s*Out of bounds values\s*:\s*(-?\d{1,12}) (OK|FAILED)")
_MEAN = re.compile(r"#?\s*Avg bus bandwidth\s*:\s*(\S{1,24})\s*(OK|FAILED)?")
_FAILURE = re.compile(
    r"(?:\S{1,80}: )?(Test (?:NCCL|CUDA|HIP|RCCL|MPI|timeout)?\s?failure .{0,200}|Test timeout.{0,80})"
)
_PID = re.compile(r"\.\. \S{1,80} pid (\d{1,9}): (Test (?:failure|timeout).{0,80})")
_KEYS = ("nThread", "nGpus", "minBytes", "maxBytes", "step", "step_type", "warmup iters", "iters")


@PARSERS.register("nccl-tests")
class NcclTests(Parser):
    """Reads one run per start of a test program."""

    benchmark = "nccl-tests"
    description = "nccl-tests and rccl-tests: collectives between GPUs"
    proof = Proof(
        identity="its version line, `Collective test starting:`, `nThread 1 nGpus 8 minBytes`, the head of its table",
        success="`Avg bus bandwidth` under a table with rows; bus over algorithm bandwidth is that of the collective and its ranks",
        failure="wrong or out-of-bounds values, one rank only, bandwidths that size and time refute; `Test NCCL failure` is `failed`",
    )
    programs = (
        r"(?:all_reduce|all_gather|broadcast|reduce_scatter|reduce|alltoall|sendrecv|scatter|gather|hypercube)_perf(?:_mpi)?",
    )
    starts = (
        r"# nccl-tests version ",
        r"#?[ \t]*rccl-tests:? [Vv]ersion",
        r"# Collective test starting: ",
        r"#?[ \t]*nThreads? \d+ nGpus \d+ minBytes ",
        r"#[ \t]+size[ \t]+count[ \t(]",
        r"#[ \t]+bytes[ \t]+N[ \t]+type[ \t]",
    )
    wants = (
        r"#",
        r"\d{1,19}[ \t]+\d{1,19}[ \t]+[a-z]",
        rf"{NUMBER}[ \t]+{NUMBER}[ \t]+{NUMBER}",  # half of a row, after other output
        r"n?rccl-tests:",
        r"[RN]CCL version",
        r"(?:Out of bounds values|Avg bus bandwidth)",
        r"nThreads? \d",
        r"[\w.\-]{1,80}: Test ",
        r"Test (?:NCCL|CUDA|HIP|RCCL) failure",
        r"\.\. \S{1,80} pid \d",
        *STOPS,
    )

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per program; programs that print at once are told apart by process."""

        def read(tests: list[Test], line: Line, text: str) -> None:
            if _starts(tests, text):  # beside the one that has just begun
                tests.append(Test(line=line.number))
            _read(block, tests, line, text)

        def close(tests: list[Test], alone: bool) -> Iterator[Run]:
            return (_close(block, test) for test in tests if test.started())

        return per_rank(
            block, lambda line: [Test(line=line)], begins=_begins, read=read, close=close, stops=_is_trouble
        )


def _is_trouble(text: str) -> bool:
    return bool(_PID.match(text) or _FAILURE.match(text) or stop_of(text))


def _begins(tests: list[Test], text: str) -> bool:
    """Tell whether a line begins another program after the present ones."""
    together = tests[-1].just_started() and len(tests) < MOST_TOGETHER
    return not together and _starts(tests, text)


def _starts(tests: list[Test], text: str) -> bool:
    """Tell whether a line begins another program: the present one has had that line."""
    last = tests[-1]
    if text.startswith("# nccl-tests version"):
        return last.started()
    if text.startswith("# Collective test starting"):
        return bool(last.op or last.settings or last.rows)
    if _SETTINGS.match(text):
        return bool(last.settings or last.rows)
    # A program prints one head. A page may have cut the first table's end away.
    headed = all(t.columns or t.failures for t in tests) and any(t.rows for t in tests)
    return headed and bool(rows.header(text))


def _read(block: Block, tests: list[Test], line: Line, text: str) -> None:
    test = tests[-1]
    if (match := _DEVICE.match(text)) is not None:
        _read_device(tests, match)
    elif text.startswith("#") and (names := rows.header(text)):
        target = next((t for t in tests if not t.columns and not t.failures), tests[-1])
        target.columns, target.width = names, len(line.text.rstrip())
        if names[0] == "bytes":
            target.units = {"time": "ms", "bw": "GB/s"}  # the versions of 2017 and 2018
    elif text.startswith("#") and (units := rows.units(text)):
        next((t for t in reversed(tests) if t.columns), test).units = units
    elif (match := _VERSION.match(text)) is not None:
        test.version = match[1]
        for key, value in (("nccl-headers", match[2]), ("nccl-library", match[3])):
            if value:
                test.facts[key] = int(value)
    elif (match := _STARTING.match(text)) is not None:
        test.op = match[1]
    elif (match := _SETTINGS.match(text)) is not None:
        values = match.groups()[: len(_KEYS)]
        test.settings = {key: int(v) if v.isdecimal() else v for key, v in zip(_KEYS, values, strict=True)}
        test.settings.update({key: int(v) for key, v in _SETTING.findall(match[9])})
    elif (match := _ROCM.match(text)) is not None:
        test.variant, test.version = "rccl", test.version or match[1] or ""
    elif (match := _LIBRARY.match(text)) is not None:
        test.facts["nccl_version"] = match[2]
        test.variant = "rccl" if match[1] == "R" else test.variant
    else:
        _read_result(block, tests, line, text)


def _read_device(tests: list[Test], match: re.Match[str]) -> None:
    rank, group, pid = int(match[1]), int(match[2] or 0), match[3] or ""
    # Several programs without MPI each print a rank 0.
    test = next((t for t in tests if rank not in t.ranks.get(group, ())), tests[-1])
    test.devices += 1
    if test.devices < 100_000:
        test.ranks.setdefault(group, set()).add(rank)
    if pid and len(test.pids) < 4096:
        test.pids.add(pid)
    test.facts.setdefault("device", excerpt(match[5], 80))
    if re.search(r"\bAMD\b|Instinct|Radeon|gfx\d", match[5]):
        test.variant = "rccl"


def _read_result(block: Block, tests: list[Test], line: Line, text: str) -> None:
    test = next((t for t in tests if t.columns and not t.failures), tests[-1])
    if (match := _BOUNDS.match(text)) is not None:
        test.bounds = (match[1], match[2])
    elif (match := _MEAN.match(text)) is not None:
        if not line.cut:
            test.mean = match[1]
            if match[2] == "FAILED":
                test.warnings.append("the average is below 0.9 times NCCL_TESTS_MIN_BW")
    elif (match := _PID.match(text)) is not None:
        owner = next((t for t in tests if match[1] in t.pids), tests[-1])
        what = excerpt(tests[-1].rumour or match[2])
        if what not in owner.failures and len(owner.failures) < 5:
            owner.failures.append(what)
    elif (match := _FAILURE.match(text)) is not None:
        tests[-1].rumour = excerpt(match[1])
    elif stop := stop_of(text):
        test.stops = [*test.stops[:4], stop]
    elif test.columns and text[:1].isdecimal():
        row = rows.row(text, test.columns)
        pieces = row is None
        if row is None and not line.cut:
            row = test.pieced(text)
            if row is None:
                return
        if row is None or not (pieces or whole(line, test.width)):
            test.cut = test.cut or line.cut
            test.lost += not line.cut
            return
        if early := block.take_trouble():
            test.early = test.early or early
        test.stops = []
        if len(test.rows) < MOST_ROWS:
            test.rows.append(row)
        test.count += 1
        test.width = test.width if pieces else len(line.text.rstrip())


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
    draft.refuse(_problem(test, draft.metrics))
    after = f"after {test.count} rows" if test.count else "before the first row"
    if not (test.ended() and test.rows):
        if test.ended() and not draft.stop:
            draft.empty("the test concluded without a row")
        draft.ends(after)
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
    if test.count > MOST_ROWS:
        more = test.count - MOST_ROWS
        draft.warnings.append(f"{more} rows beyond the first {MOST_ROWS} are not kept")
    # Small sizes are rounded to the same one.
    if doubled := twice((r.size, *r.kind.values()) for r in test.rows if r.size > 1024):
        draft.suspicions.append(doubled)
    if test.early:
        draft.warnings.append(f"before a row: {test.early}")
    draft.tell_stops("after the result")
    return draft.run()


def _problem(test: Test, metrics: list[LogMetric]) -> str:
    if test.mean and is_number(test.mean):
        one = rows.average(test.mean)
        metrics += [one] if one else []
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
            for one in rows.metrics(row, side, test.units, alone=alone):
                metrics.append(one)
                if (why := impossible(one)) is not None:
                    problem = problem or f"size {row.size} {side.phase}: {why}"
            if why := rows.wrong(test.op, ranks, row, side, test.units):
                problem = problem or f"size {row.size} {side.phase}: {why}"
    if not problem and test.mean and not test.lost and test.count == len(test.rows):
        values = [v for r in test.rows for s in r.sides if (v := number(s.cells["busbw"])) is not None]
        mean = sum(values) / len(values) if values else 0.0
        if test.whole() and values and not agree(test.mean, mean - 0.01, mean + 0.01, 5e-3):
            problem = (
                f"the log prints an average bus bandwidth of {test.mean} GB/s, but the mean of its "
                f"{len(values)} values is {mean:.6g} GB/s"
            )
    return problem
