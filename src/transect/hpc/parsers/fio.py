"""fio 3: what its groups of jobs read and wrote, from its text (`Run status group`) or its JSON.

Text prints a bandwidth twice, in MiB/s and in MB/s, beside the bytes and the time that it is made of. Before
version 3 one letter stood for both, by an option (`kb_base`): such output is recognised and left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from transect.hpc.base import PARSERS, Parser, Proof, Run
from transect.hpc.block import Block
from transect.hpc.draft import Draft
from transect.hpc.parsers._checks import Span, apart, bytes_of, differ, span
from transect.hpc.parsers._json_block import read_object
from transect.hpc.rules import searched
from transect.hpc.text import Line, excerpt

_AMOUNT = r"[\d.]{1,20}[KMGTPEk]?i?B"
_JOB = re.compile(
    r"([^\s:][^\n:]{0,120}): \(g=(\d{1,6})\): rw=(\w{1,20}), bs=(\S[^\n]{1,120}?), ioengine=(\w{1,40}), iodepth=(\d{1,9})"
)
_VERSION = re.compile(r"(fio-[3-9]\.\d[\w.\-]{0,40})\s*$")
_BEGUN = re.compile(r"[^\s:][^\n:]{0,120}: \(groupid=(\d{1,6}), jobs=(\d{1,9})\): err=[ ]?(\d{1,6})")
_GROUP = re.compile(r"Run status group (\d{1,6}) \(all jobs\):")
_TOTAL = re.compile(
    rf"(READ|WRITE|TRIM): bw=({_AMOUNT})/s \(({_AMOUNT})/s\), [^\n]{{1,120}}?, io=({_AMOUNT}) \({_AMOUNT}\), run=(\d{{1,12}})-(\d{{1,12}})msec"
)
_IOPS = re.compile(rf"(read|write|trim) ?: IOPS=([\d.]{{1,20}})([kMG]?), BW=({_AMOUNT})/s \(({_AMOUNT})/s\)")
_ERROR = re.compile(r"fio: [^\n]{0,40}(?:error|failed|pid=\d{1,9}, err=\d)")
_SIZES = re.compile(rf"\(([RW])\) ({_AMOUNT})-({_AMOUNT})")
_SLACK = 0.02  # both are rounded to three digits or four


@PARSERS.register("fio")
class Fio(Parser):
    """Reads a run per group of jobs; of JSON one per job."""

    benchmark = "fio"
    description = "fio 3: reading and writing of files and devices, text and JSON"
    validity_notes = Proof(
        identity="`NAME: (g=0): rw=…, ioengine=…`, `fio-3.…`, `Run status group 0 (all jobs):`, JSON that begins with `fio version`",
        success="the totals of a group; a job of JSON without an error",
        failure="a bandwidth that its bytes and time refute, or its own other unit",
    )
    programs = (r"fio",)
    start_patterns = (
        *searched(_JOB, _GROUP, _BEGUN),
        rf"(?:READ|WRITE|TRIM): bw={_AMOUNT}/s \(",
        r'\{?[ \t]*"fio version"[ \t]?:[ \t]?"fio-[3-9]',
    )
    line_patterns = None

    def parse(self, block: Block) -> Iterator[Run]:
        """Yield the runs of a log, text and JSON."""
        drafts: dict[str, Draft] = {}
        version, group, done = "", "", False
        for line in block:
            text = line.text.strip()
            if '"fio version"' in text[:40]:
                yield from _json(block, line)
            elif (match := _JOB.match(text)) is not None or (match := _BEGUN.match(text)) is not None:
                group = match[2] if match.re is _JOB else match[1]
                if done:
                    yield from (_run(draft) for draft in drafts.values())
                    drafts, done = {}, False
                draft = drafts.setdefault(group, _new(block, line.number, version))
                if match.re is _JOB:
                    draft.parameters.update(rw=match[3], bs=match[4], ioengine=match[5], iodepth=int(match[6]))
                else:
                    draft.parameters["jobs"] = int(str(draft.parameters.get("jobs", 0))) + int(match[2])
                    if match[3] != "0":
                        draft.stops.append(f"err={match[3]}: {excerpt(text)}")
            elif (match := _VERSION.match(text)) is not None:
                version = match[1].removeprefix("fio-")
                for draft in drafts.values():
                    draft.version = version
            elif (match := _GROUP.match(text)) is not None:
                group, done = match[1], True
                drafts.setdefault(group, _new(block, line.number, version))
            elif (match := _TOTAL.match(text)) is not None and not line.cut:
                done = True
                draft = drafts.setdefault(group, _new(block, line.number, version))
                if draft.metrics and any(
                    metric.name == "bandwidth" and metric.phase == match[1].lower() for metric in draft.metrics
                ):
                    # Totals alone, as mails quote them: another output.
                    yield _run(drafts.pop(group))
                    draft = drafts[group] = _new(block, line.number, version)
                _total(draft, match)
            elif (match := _IOPS.match(text)) is not None and group in drafts:
                _job_rate(drafts[group], match)
            elif _ERROR.match(text) and drafts:
                next(reversed(drafts.values())).stops.append(excerpt(text))
        yield from (_run(draft) for draft in drafts.values())


def _new(block: Block, line: int, version: str) -> Draft:
    return Draft(block=block, line=line, version=version)


def _amount(text: str) -> Span | None:
    """Return what `512MiB` or `537MB` may stand for, in bytes."""
    number = text.rstrip("KMGTPEkiB")
    unit = text[len(number) :].replace("k", "K")
    return bytes_of(f"{number} {'bytes' if unit == 'B' else unit}")


def _total(draft: Draft, match: re.Match[str]) -> None:
    way, binary, decimal, moved, least, most = match.groups()
    unit = binary.lstrip("0123456789.")
    draft.add_metric(
        "bandwidth", binary.removesuffix(unit), f"{unit}/s", phase=way.lower(), registered="storage_bandwidth"
    )
    binary_rate, decimal_rate, data = _amount(binary), _amount(decimal), _amount(moved)
    if binary_rate is None or decimal_rate is None or data is None:
        draft.mark_invalid(f"{way}: {binary}/s ({decimal}/s) is no bandwidth")
        return
    if apart(binary_rate, decimal_rate, _SLACK):
        draft.mark_invalid(f"{way}: {binary}/s is not {decimal}/s, which the log prints for the same")
    seconds = int(most) / 1000, int(least) / 1000
    if seconds[1] > 0:
        # Jobs of a group may have run for less than the longest of them.
        implied = data[0] / seconds[0], data[1] / seconds[1]
        if apart(binary_rate, implied, _SLACK):
            draft.mark_invalid(
                f"{way}: the log prints {binary}/s, but {moved} in {most} ms are {sum(data) / 2 / seconds[0] / 2**20:.5g} MiB/s"
            )


def _job_rate(draft: Draft, match: re.Match[str]) -> None:
    way, printed, prefix, binary, decimal = match.groups()
    binary_rate, decimal_rate = _amount(binary), _amount(decimal)
    if binary_rate is not None and decimal_rate is not None and apart(binary_rate, decimal_rate, _SLACK):
        draft.mark_invalid(f"{way}: {binary}/s is not {decimal}/s, which the log prints for the same")
    draft.add_metric("iops", printed, f"{prefix or ''}IOPS", phase=way)
    ends, kind = span(printed), way[0].upper()
    ranges = _SIZES.findall(str(draft.parameters.get("bs")))
    sizes = [low for letter, low, high in ranges if letter == kind and low == high]
    each = _amount(sizes[0]) if sizes and way != "trim" else None
    if each is None or ends is None or binary_rate is None:
        return
    factor = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[prefix]
    if apart(binary_rate, (ends[0] * factor * each[0], ends[1] * factor * each[1]), _SLACK):
        draft.mark_invalid(f"{way}: {printed}{prefix} operations of {sizes[0]} a second are not {binary}/s")


def _run(draft: Draft) -> Run:
    draft.mark_impossible()
    totals = any(metric.name == "bandwidth" for metric in draft.metrics)
    if draft.stops and draft.ok:
        draft.mark_incomplete("a job ended with an error")
    elif not totals:
        draft.mark_incomplete("no totals of its group")
    return draft.run()


def _json(block: Block, first: Line) -> Iterator[Run]:
    line = first.number
    report = read_object(block, first)
    jobs = report.get("jobs") if report is not None else None
    if report is None or not isinstance(jobs, list):
        draft = _new(block, line, "")
        draft.mark_incomplete("its JSON is not whole")
        yield draft.run()
        return
    version = str(report.get("fio version", "")).removeprefix("fio-")
    shared: Any = report.get("global options") or {}
    jobs = [job for job in jobs if isinstance(job, dict)]
    names = [excerpt(str(job.get("jobname") or "")) for job in jobs]
    alike = Counter(names)
    for place, (job, name) in enumerate(zip(jobs, names, strict=True)):
        draft = _new(block, line, version)
        options = {**shared, **(job.get("job options") or {})}
        # Names of files say where it ran; they are no settings.
        draft.parameters |= {str(key): str(value) for key, value in options.items() if "/" not in str(value)}
        draft.parameters |= {"date": str(report.get("time", ""))}
        for way in ("read", "write"):
            # Of several jobs in one file each says which it is; clones of one (`numjobs`) have one name.
            said = "" if len(jobs) == 1 else f"{name} {place}".strip() if alike[name] > 1 else name
            _json_way(draft, way, way if said in ("", way) else f"{said} {way}", job.get(way) or {})
        if job.get("error"):
            draft.stops.append(f"error {job['error']}")
        if not draft.metrics and not draft.stops:
            draft.mark_no_result("its job neither read nor wrote")
        yield _run(draft)


def _json_way(draft: Draft, way: str, phase: str, result: dict[str, Any]) -> None:
    moved, milliseconds = result.get("io_bytes") or 0, result.get("runtime") or 0
    if not moved or not milliseconds:
        return
    exact = "bw_bytes" in result
    printed = str(result["bw_bytes"] if exact else result.get("bw"))
    draft.add_metric("bandwidth", printed, "B/s" if exact else "KiB/s", phase=phase, registered="storage_bandwidth")
    draft.add_metric("iops", str(result.get("iops")), "IOPS", phase=phase)
    rate = float(printed) * (1 if exact else 1024)
    implied = moved / (milliseconds / 1000)
    # Of a short run a millisecond is more than a digit.
    if differ(rate, implied, 1e-3 + 1.5 / milliseconds, 1024):
        draft.mark_invalid(
            f"{way}: the log prints {printed} {'B/s' if exact else 'KiB/s'}, but {moved} bytes in {milliseconds} ms are {implied:.6g} B/s"
        )
