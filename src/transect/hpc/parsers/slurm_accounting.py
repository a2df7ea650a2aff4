"""What Slurm's accounting says of jobs: `sacct` (columns or `--parsable`) and `seff`.

A job's time is its result. It is held against its begin and end, and its processors' time against it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime

from transect.domain.metrics import Direction
from transect.hpc.base import PARSERS, LogMetric, Parser, Proof, Run, RunStatus
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.rules import searched
from transect.hpc.text import Line
from transect.hpc.values import NUMBER, log_metric, number

_STATES = (
    r"BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PENDING|PREEMPTED|RUNNING|REQUEUED|RESIZING"
    r"|REVOKED|SUSPENDED|TIMEOUT"
)
_SEFF = re.compile(rf"State: ({_STATES})[^\n(]{{0,40}}\(exit code (\d{{1,6}})\)")
# Of words in a sentence one blank parts the first two.
_HEAD = re.compile(r"JobID(?:Raw)?(?:\||[ \t]{2,})[^\n]{0,2000}?\bState\b")
_DASHES = re.compile(r"-{3,}(?: -{3,})+\s*$")
_ROW = re.compile(r"\d{1,12}(?:_\d{1,9}|_\[[^\]\s]{1,80}\]?|\+\d{1,6}|\.[\w+]{1,20})?[\s|]")
_FACT = re.compile(
    r"(Nodes|Cores per node|Cores|CPU Utilized|CPU Efficiency|Job Wall-clock time|Memory Utilized|Memory Efficiency): ([^\n]{1,120})"
)
_SHARE = re.compile(rf"({NUMBER})% of ((?:\d{{1,4}}-)?\d{{1,4}}:\d\d:\d\d) core-walltime")
# A shorter one may have been cut at its end.
_TIME = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):(\d{2}):(\d{2})")
_NAMES = {
    "JobName": "job_name",
    "Partition": "partition",
    "NNodes": "nodes",
    "AllocNodes": "nodes",
    "AllocCPUS": "cpus",
    "NCPUS": "cpus",
    "ReqMem": "memory",
}


def seconds_of(printed: str) -> float | None:
    """Return `1-02:03:04` or `02:03:04` in seconds; None for anything else.

    >>> seconds_of("1-00:00:10"), seconds_of("00:03:04"), seconds_of("Unknown")
    (86410.0, 184.0, None)
    """
    match = _TIME.fullmatch(printed.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


@PARSERS.register("slurm-accounting")
class SlurmAccounting(Parser):
    """Reads a run per job; steps of a job are no runs."""

    benchmark = "slurm-accounting"
    description = "Slurm's accounting of jobs: sacct and seff"
    validity_notes = Proof(
        identity="a head with `JobID` and `State`, `State: COMPLETED (exit code 0)`",
        success="the state COMPLETED",
        failure="another state (`failed`); a time that begin and end, or processors, refute",
    )
    start_patterns = searched(_HEAD, _SEFF)
    line_patterns = (*start_patterns, *searched(_DASHES, _ROW, _FACT))

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield a run per job."""
        columns: list[tuple[str, slice | int]] = []
        head = ""
        seff: Draft | None = None
        for line in block:
            text = line.text.rstrip()
            plain = text.strip()
            if (state := _SEFF.match(plain)) is not None or _HEAD.match(plain):
                if seff is not None:
                    yield _judged(seff)
                    seff = None
                # Earlier versions set the first column's head to the right: blanks before it count.
                head, columns = text, []
                if state is not None:
                    seff = Draft(block=block, line=line.number, variant="seff")
                    seff.parameters |= {"state": state[1], "exit_code": state[2]}
                elif "|" in plain:
                    columns = [(name, place) for place, name in enumerate(plain.split("|")) if name]
            elif seff is not None and (fact := _FACT.match(plain)) is not None:
                _fact(seff, fact[1], fact[2].strip())
            elif head and _DASHES.match(plain) and not columns:
                columns = _fixed(head, text)
            elif columns and _ROW.match(plain + " "):
                cells = _cells(columns, plain if "|" in head else text)
                if cells is not None and line.cut and not list(cells.values())[-1]:
                    continue  # a row that has lost its end
                if cells is None:
                    draft = Draft(block=block, line=line.number, variant="sacct")
                    draft.mark_no_result("its columns do not stand below their heads")
                    yield draft.run()
                elif "." not in cells.get("JobID", cells.get("JobIDRaw", ".")):
                    yield _job(block, line, cells)
        if seff is not None:
            yield _judged(seff)


def _fixed(head: str, dashes: str) -> list[tuple[str, slice | int]]:
    spans = [slice(*found.span()) for found in re.finditer("-+", dashes)]
    return [(head[span].strip(), span) for span in spans]


def _cells(columns: list[tuple[str, slice | int]], text: str) -> dict[str, str] | None:
    """Return a row's cells by name; None where a cell reaches into what parts two columns."""
    parts = text.split("|")
    if any(isinstance(where, slice) and text[where.stop : where.stop + 1].strip() for _, where in columns):
        return None
    return {
        name: (text[where] if isinstance(where, slice) else parts[where] if where < len(parts) else "").strip()
        for name, where in columns
    }


def _fact(draft: Draft, name: str, value: str) -> None:
    if name == "Job Wall-clock time":
        _elapsed(draft, value)
    elif name == "CPU Efficiency" and (share := _SHARE.match(value)) is not None:
        draft.add_metric("cpu_efficiency", share[1], "%")
        used, whole = draft.parameters.get("cpu_utilized"), seconds_of(share[2])
        if isinstance(used, float) and whole:
            implied = 100 * used / whole
            if abs(implied - (number(share[1]) or 0)) > 0.02 + 100 / whole:
                draft.mark_invalid(
                    f"the log prints an efficiency of {share[1]} %, but {used:g} s of {whole:g} s are {implied:.4g} %"
                )
    elif name == "CPU Utilized":
        draft.parameters["cpu_utilized"] = seconds_of(value) or 0.0
    elif name in ("Nodes", "Cores per node", "Cores"):
        # What is told once more is another job's, of a site's own seff.
        draft.parameters.setdefault(name.lower().replace(" ", "_"), value)


def _elapsed(draft: Draft, printed: str) -> float | None:
    seconds = seconds_of(printed)
    if seconds is not None:
        metric = log_metric("elapsed", f"{seconds:g}", "s", registered="benchmark_time")
        assert metric is not None
        draft.metrics.append(LogMetric("elapsed", seconds, printed, "s", Direction.LOWER, normalised=metric.normalised))
    return seconds


def _job(block: Block, line: Line, cells: dict[str, str]) -> Run:
    draft = Draft(block=block, line=line.number, variant="sacct")
    draft.parameters |= {"job_id": cells.get("JobID") or cells.get("JobIDRaw", "")}
    draft.parameters |= {into: cells[name] for name, into in _NAMES.items() if cells.get(name)}
    draft.parameters |= {
        "state": cells.get("State", "").split(" ")[0].rstrip("+"),
        "exit_code": cells.get("ExitCode", ""),
    }
    if cells.get("Start"):
        draft.parameters["date"] = cells["Start"]
    seconds = _elapsed(draft, cells.get("Elapsed", ""))
    begun = ended = None
    with contextlib.suppress(KeyError, ValueError):
        begun, ended = (datetime.fromisoformat(cells[name]) for name in ("Start", "End"))
    suspended = seconds_of(cells.get("Suspended", "")) or 0
    if seconds is not None and begun and ended and abs((ended - begun).total_seconds() - suspended - seconds) > 1:
        draft.mark_invalid(
            f"the log prints {cells['Elapsed']} elapsed, but {cells['Start']} to {cells['End']} are {ended - begun}"
        )
    spent = seconds_of(cells.get("CPUTime", ""))
    cpus = str(draft.parameters.get("cpus", ""))
    if seconds is not None and spent is not None and cpus.isdecimal() and abs(spent - seconds * int(cpus)) > 1:
        draft.mark_invalid(
            f"the log prints {cells['CPUTime']} of processors, but {cpus} of them for {cells['Elapsed']} are {seconds * int(cpus):g} s"
        )
    return _judged(draft)


def _judged(draft: Draft) -> Run:
    state = str(draft.parameters.get("state", ""))
    if state in ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING"):
        draft.set_status(RunStatus.TRUNCATED, f"the job is not over: {state}")
    elif not re.match("COMPLE", state):
        draft.set_status(
            RunStatus.FAILED,
            f"the job ended as {state or 'an unknown state'}, exit code {draft.parameters['exit_code']}",
        )
    if not any(metric.name == "elapsed" for metric in draft.metrics):
        # A table without that column never has it.
        (draft.mark_incomplete if draft.variant == "seff" else draft.mark_no_result)("the elapsed time is missing")
    return draft.run()
